"""``python -m symcomp.tests.golden``: write all golden files again, or the named ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from symcomp.tests.golden import files
from symcomp.tests.golden.registry import BUILDERS
from symcomp.tests.golden.sections import text_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files that differ, and remove files without a function; print their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, if none is named")
    names = parser.parse_args(arguments).names
    unknown = [name for name in names if name not in BUILDERS]
    if unknown:
        parser.error(f"no golden function is called {', '.join(unknown)}")
    for name in names or sorted(BUILDERS):
        text = text_of(name)
        if text != files.read(name):
            files.path_of(name).write_text(text, encoding="utf-8")
            print(f"written: {name}.txt")
    for path in sorted(files.FOLDER.glob("*.txt")):
        if path.stem not in BUILDERS:
            path.unlink()
            print(f"removed: {path.name}")


if __name__ == "__main__":
    main()
