"""Where the repository is, and which file is which module: for the tests that read the sources."""

import tomllib
from pathlib import Path

#: The root of the clone that these tests lie in.
ROOT = Path(__file__).resolve().parent.parent


def folder_of_package(root: Path = ROOT) -> dict[str, Path]:
    """Read the map of folders from pyproject.toml: `symcomp.rewrite` -> root/rewrite."""
    pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    folders = pyproject["tool"]["setuptools"]["package-dir"]
    return {package: root / folder for package, folder in folders.items()}


#: Packages that need other libraries than the rest; what imports all modules leaves them out.
EXTRAS = ("symcomp.pytensor_backend", "symcomp.pymc")


def modules_without_extras() -> list[str]:
    """List the modules that an installation without extras can import."""
    found = path_of_module(folder_of_package())
    return [name for name in found if ".".join(name.split(".")[:2]) not in EXTRAS]


def path_of_module(folders: dict[str, Path], pattern: str = "*.py") -> dict[str, Path]:
    """Name the module of every file below the folders, sorted; the tests themselves left out."""
    path_of = {}
    for package, folder in folders.items():
        if package == "symcomp.tests":
            continue
        for path in folder.rglob(pattern):
            below = path.relative_to(folder).with_suffix("").parts
            parts = below[:-1] if below[-1] == "__init__" else below
            path_of[".".join((package, *parts))] = path
    return dict(sorted(path_of.items()))
