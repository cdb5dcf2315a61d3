"""Where NVIDIA's libraries are: in wheels, or where the system looks for libraries."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: The versions of each library that are looked for, the newest first; and the wheel that has it.
VERSIONS = {
    "cublas": (13, 12), "cudnn": (9, 8), "cufft": (12, 11), "cusolver": (12, 11),
    "cusparse": (12,),
}  # fmt: skip
WHEELS = {
    "cublas": "nvidia-cublas", "cudnn": "nvidia-cudnn-cu13", "cufft": "nvidia-cufft",
    "cusolver": "nvidia-cusolver", "cusparse": "nvidia-cusparse",
}  # fmt: skip


def folders_of_wheels() -> list[Path]:
    """Return the folders in which NVIDIA's wheels keep their libraries."""
    spec = find_spec("nvidia")
    places = [Path(p) for p in spec.submodule_search_locations or ()] if spec else []
    return [folder for place in places for folder in sorted(place.glob("**/lib"))]


@cache
def path_of(name: str) -> str | None:
    """Return the file of a library that can be loaded, if there is one.

    Parameters
    ----------
    name : str
        "cublas" and the like.
    """
    files = [f"lib{name}.so.{version}" for version in VERSIONS[name]]
    paths = [folder / file for folder in folders_of_wheels() for file in files]
    for path in [*(str(p) for p in paths if p.exists()), *files]:
        try:
            ctypes.CDLL(path)
        except OSError:
            continue  # not there, or not loadable
        return path
    return None


def found_and_missing() -> list[tuple[str, str]]:
    """Return the name of each library, and its file, or which wheel has it."""
    return [
        (name, path_of(name) or f"none (pip install {WHEELS[name]})") for name in sorted(VERSIONS)
    ]
