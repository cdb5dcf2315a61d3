"""Make build/mypy_view, where every package lies in the folder that its name tells.

mypy finds a package by its path and does not know pyproject.toml's map of folders, so it is given
a tree of links: build/mypy_view/symcomp/rewrite -> rewrite, and so on.

Run it from anywhere:  python tools/mypy_view.py
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VIEW = ROOT / "build" / "mypy_view" / "symcomp"


def wanted_links() -> dict[Path, Path]:
    """Map each link of the view to what it points at."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folder_of = dict(pyproject["tool"]["setuptools"]["package-dir"])
    links = {
        VIEW / entry.name: entry
        for entry in (ROOT / folder_of.pop("symcomp")).iterdir()
        if entry.name != "__pycache__"
    }
    for package, folder in folder_of.items():
        links[VIEW / package.removeprefix("symcomp.")] = ROOT / folder
    return links


def main() -> None:
    """Bring the tree up to date; a mypy that reads it meanwhile never sees it empty."""
    VIEW.mkdir(parents=True, exist_ok=True)
    links = wanted_links()
    for link in VIEW.iterdir():
        if link not in links or link.readlink() != links[link]:
            link.unlink()
    for link, target in links.items():
        if not link.is_symlink():
            link.symlink_to(target)


if __name__ == "__main__":
    main()
