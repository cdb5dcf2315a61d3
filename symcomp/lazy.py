"""Import modules when one of their names is first used, to keep `import symcomp` fast.

Importing `scipy.linalg` or `scipy.special` takes twice as long as importing NumPy.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, NoReturn

_lock = threading.Lock()
# Names of NumPy's functions that have another name here.
OTHER_NAMES = {"inv": "matrix_inverse"}


def _begin_anew() -> None:
    """Make a new lock in a forked child: the thread that holds the old one exists only in the
    parent.
    """
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class LazyModule(ModuleType):
    """Stand-in for a module; reading an attribute imports the module, and keeps the attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # inspection of modules (dunder names) does not import
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazy_module(name: str) -> ModuleType:
    """Return the module of this name, imported when an attribute of it is first read.

    Examples
    --------
    >>> special = lazy_module("scipy.special")
    >>> float(special.erf(0.0))
    0.0
    """
    return LazyModule(name)


difflib = lazy_module("difflib")


class LazyMethod:
    """A method of ``owner`` whose module is imported when the method is first used."""

    def __init__(self, owner: type, name: str, module: str, function: str) -> None:
        self.owner, self.name, self.module, self.function = owner, name, module, function

    def __get__(self, instance: Any, owner: type) -> Any:
        method = getattr(import_module(self.module), self.function)
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def lazy_names(
    package: str,
    places: Mapping[str, str],
    elsewhere: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Return ``__getattr__`` and ``__dir__`` of a package that offers names of other modules.

    Parameters
    ----------
    package : str
    places : dict of str to str
        By name, the module that defines it; imported on first use.
    elsewhere : sequence of str
        Modules to search for names that the package lacks.
    packages : sequence of str
        Its modules and subpackages, each imported on first use.
    """
    names = [*places, *packages]
    refuse = no_such_name(package, names, elsewhere)

    def get(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in places:
            refuse(name)
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names_of_all() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, names_of_all


def no_such_name(
    module: str, more: Sequence[str] = (), elsewhere: Sequence[str] = ()
) -> Callable[[str], NoReturn]:
    """Return ``__getattr__`` of a module that raises for unknown names and suggests the nearest
    one.

    Parameters
    ----------
    module : str
    more : sequence of str
        Names offered besides the attributes of the module.
    elsewhere : sequence of str
        Modules to search for the name; searching imports them.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.sofmax
    Traceback (most recent call last):
        ...
    AttributeError: module 'symcomp.tensor' has no attribute 'sofmax': did you mean 'softmax'?
    """

    def refuse(name: str) -> NoReturn:
        said = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("_"):
            said += _meant(name, [*vars(sys.modules[module]), *more], elsewhere)
        raise AttributeError(said, name=name)

    return refuse


def _meant(name: str, names: Sequence[str], elsewhere: Sequence[str]) -> str:
    """Return the end of an error message that suggests a name."""
    for place in elsewhere:
        if name in vars(import_module(place)):
            return f": it is {place}.{name}"
    public = [other for other in names if not other.startswith("_")]
    similar = [other for other in public if other == OTHER_NAMES.get(name)]
    similar += [other for other in public if other.lower() == name.lower()]
    similar += difflib.get_close_matches(name, public, 1, 0.7)
    return f": did you mean {similar[0]!r}?" if similar else ""


# Names that modules of higher layers add to packages of lower ones: package -> name -> module.
_offered: dict[str, dict[str, str]] = {}
# Module to import for the values whose classes are defined in a package: package -> module.
_homes: dict[str, str] = {}


def offer(package: str, names: Sequence[str], module: str) -> None:
    """Add names of ``module`` to a package of a lower layer, which calls ``offered_names``."""
    _offered.setdefault(package, {}).update(dict.fromkeys(names, module))


def offered_names(package: str) -> tuple[Any, list[str]]:
    """Return ``__getattr__`` of a package to which names are offered, and these names."""
    names = _offered.get(package, {})
    refuse = no_such_name(package, list(names))

    def get(name: str) -> Any:
        if name not in names:
            refuse(name)
        value = getattr(import_module(names[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, list(names)


def set_home(package: str, module: str) -> None:
    """Set the module to import for the values whose classes are defined in ``package``."""
    _homes[package] = module


def import_home(value: Any) -> None:
    """Import the module registered for the class of a value, if there is one."""
    for kind in type(value).__mro__:
        for package, module in _homes.items():
            if kind.__module__.startswith(package):
                import_module(module)
                return


def import_alone(package: str, folder: str, name: str) -> ModuleType:
    """Import the extension module ``package.folder.name`` without running ``package.folder`` first.

    The module is not left in ``sys.modules``, so that a later import binds it in its package. Both
    are the same object, as a Cython module is initialized once per process.
    """
    full_name = f"{package}.{folder}.{name}"
    with _lock:
        if full_name in sys.modules:
            return sys.modules[full_name]
        places = [os.path.join(path, folder) for path in import_module(package).__path__]
        spec = PathFinder.find_spec(full_name, places)
        if spec is None or spec.loader is None:
            return import_module(full_name)  # only the package's ``__path__`` leads to the file
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop(full_name, None)
        return module
