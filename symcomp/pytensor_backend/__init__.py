"""PyTensor's graphs compiled by symcomp: ``import symcomp.pytensor_backend``, then mode "SYMCOMP".

Here belongs what knows PyTensor: its types, its ops one by one, its linkers and modes. Functions
that symcomp lacks are made in ``symcomp.ops`` first. Needs ``pip install symcomp[pytensor]``.
"""

from symcomp.pytensor_backend.versions import check_versions

check_versions()

# isort: split
from symcomp.pytensor_backend import (  # noqa: E402
    control,
    indexing,
    linalg,
    random,
    random_vectors,
    scalar,
    scan,
    shape,
    signal,
    sparse,
    splines,
)
from symcomp.pytensor_backend.dispatch import translate  # noqa: E402
from symcomp.pytensor_backend.linker import SymcompLinker  # noqa: E402
from symcomp.pytensor_backend.mode import (  # noqa: E402
    SYMCOMP,
    cfunc,
    compiled_of,
    fallbacks,
    function_of,
    profiled,
    register,
)

register()

__all__ = [
    "SYMCOMP", "SymcompLinker", "cfunc", "compiled_of", "control", "fallbacks", "function_of",
    "indexing", "linalg", "profiled", "random", "random_vectors", "scalar", "scan", "shape",
    "signal", "sparse", "splines", "translate",
]  # fmt: skip
