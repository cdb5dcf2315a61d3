"""Say which names of Theano there are in the compat layer: ``python tools/theano_names.py [FILE]``.

Without a file, print counts by module, and missing names. With a text that has entries of the form
"`theano.tensor.dot` (171, 44)", counts of names in programs, print the names that do not resolve,
in the order of the text.
"""

import re
import sys
from pathlib import Path

import symcomp
from symcomp.compat.missing import Missing
from symcomp.compat.modules import build, public_names, resolve


def is_there(dotted, modules):
    """Tell whether a name such as ``theano.tensor.dot`` resolves."""
    *path, last = dotted.split(".")
    while path and ".".join(path) not in modules:
        last = f"{path.pop()}.{last}"
    value = modules.get(dotted) or modules.get(".".join(path))
    if dotted in modules:
        return True
    for word in last.split("."):
        try:
            value = getattr(value, word)
        except (AttributeError, NotImplementedError):
            return False
    return not isinstance(value, Missing)


def usage(text):
    """Print the names and methods of a count of usage that do not resolve."""
    modules = build()
    names = re.findall(r"`(theano[\w.]*)` (\([\d, ]+\))", text)
    lacking = [f"{name} {count}" for name, count in names if not is_there(name, modules)]
    methods = re.findall(r"`([a-z_T]\w*)` (\([\d, ]+\))", text)
    own = [f"x.{name} {count}" for name, count in methods if not hasattr(symcomp.shared(0.0), name)]
    print(f"{len(names) - len(lacking)} of {len(names)} names; without: {', '.join(lacking)}")
    print(f"of methods, without: {', '.join(own)}")


def overview():
    """Print, module by module, which names are there."""
    for module in build():
        names = public_names(module)
        lacking = [n for n in names if isinstance(resolve(module, n), Missing)]
        if names:
            print(f"{module}: {len(names) - len(lacking)} of {len(names)}; {' '.join(lacking)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        usage(Path(sys.argv[1]).read_text(encoding="utf-8"))
    else:
        overview()
