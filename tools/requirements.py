"""Print the requirements of symcomp, and of its extras, one per line.

Usage: python tools/requirements.py EXTRA ... > requirements.txt
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def requirements(extras: list[str]) -> Iterator[str]:
    """Yield the requirements of pyproject.toml, those of the build too; extras may name others."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    yield from pyproject["build-system"]["requires"]
    yield from project["dependencies"]
    for extra in extras:
        for wanted in project["optional-dependencies"][extra]:
            if wanted.startswith(f"{project['name']}["):
                yield from requirements(wanted.partition("[")[2].rstrip("]").split(","))
            else:
                yield wanted


if __name__ == "__main__":
    print(*dict.fromkeys(requirements(sys.argv[1:])), sep="\n")
