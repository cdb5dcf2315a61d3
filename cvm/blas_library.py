"""The choice of BLAS and LAPACK: SciPy's, or NumPy's if it is a newer version of the same library.

The OpenBLAS 0.3.31 of the wheels of NumPy 2.4 multiplies matrices of some ten rows faster than the
0.3.30 of those of SciPy 1.17, on processors with AVX2 (`benchmarks/thin_products.py --scipy`).
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

# The name in wheels of NumPy and SciPy; with integers of 64 bits its routines have other names.
OPENBLAS, WIDE = "scipy-openblas", "USE64BITINT"
FOLDERS, FILES = ("../numpy.libs", ".dylibs"), "libscipy_openblas64_*"


@cache
def library_of_numpy() -> ctypes.CDLL | None:
    """NumPy's, if its routines are to be called: ``scipy_dgemm_64_`` and others, whose integers
    have 64 bits, the lower of which come first.
    """
    if sys.byteorder != "little" or not is_newer(_blas_of("numpy"), _blas_of("scipy")):
        return None
    base = Path(np.__file__).parent
    found = [path for folder in FOLDERS for path in (base / folder).glob(FILES)]
    try:
        library = ctypes.CDLL(str(found[0])) if len(found) == 1 else None
    except OSError:
        return None
    has_all = all(hasattr(library, f"scipy_{name}_64_") for name in ("dgemm", "dgesdd"))
    return library if has_all else None


def is_newer(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether one BLAS, as ``show_config`` describes it, is a later version of another, with
    integers of 64 bits.
    """
    if one.get("name") != OPENBLAS or other.get("name") != OPENBLAS:
        return False
    if WIDE not in one.get("openblas configuration", ""):
        return False
    try:
        versions = [[int(n) for n in str(x["version"]).split(".")] for x in (one, other)]
    except (KeyError, ValueError):
        return False
    return versions[0] > versions[1]


def _blas_of(package: str) -> dict[str, Any]:
    """Return how a package says it was built, without importing it, which takes long."""
    found = find_spec(package)
    if found is None or found.origin is None:
        return {}
    path = Path(found.origin).with_name("__config__.py")
    spec = spec_from_file_location(f"{package}.__config__", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        return {}
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    told: dict[str, Any] = getattr(module, "CONFIG", {}).get("Build Dependencies", {})
    return told.get("blas", {})
