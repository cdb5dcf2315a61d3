"""PyTensor's graphs compiled by symcomp: ``import symcomp.pytensor_backend``, then mode "SYMCOMP".

Here belongs what knows PyTensor: its types, its ops one by one, its linkers and modes. Functions
that symcomp lacks are made in ``symcomp.ops`` first. Needs ``pip install symcomp[pytensor]``.
"""

from symcomp.core.pause import age_objects, garbage_collection_off
from symcomp.pytensor_backend.versions import check_versions

check_versions()

# Modules are no garbage, and a collection scans all objects of PyMC.
with garbage_collection_off():
    from symcomp.pytensor_backend import (
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
    from symcomp.pytensor_backend.dispatch import translate
    from symcomp.pytensor_backend.linker import SymcompLinker
    from symcomp.pytensor_backend.mode import (
        SYMCOMP,
        cfunc,
        compiled_of,
        fallbacks,
        function_of,
        profiled,
        register,
    )

    age_objects()

register()

__all__ = [
    "SYMCOMP", "SymcompLinker", "cfunc", "compiled_of", "control", "fallbacks", "function_of",
    "indexing", "linalg", "profiled", "random", "random_vectors", "scalar", "scan", "shape",
    "signal", "sparse", "splines", "translate",
]  # fmt: skip
