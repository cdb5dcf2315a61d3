"""Sparse matrices: compressed row and column types, their ops, derivatives and lowerings.

What belongs here: the types of sparse variables, ops on sparse matrices and on the arrays that hold
them, and the rules by which compiled functions work on these arrays alone. What does not: shared
variables and solvers that are loops, which higher layers add to the names of this package.
"""

from types import ModuleType

from symcomp.lazy import offered_names
from symcomp.sparse.arithmetic import *
from symcomp.sparse.constructors import *
from symcomp.sparse.convert import *
from symcomp.sparse.elementwise import *
from symcomp.sparse.exponential import *
from symcomp.sparse.indexing import *
from symcomp.sparse.joins import *
from symcomp.sparse.op import as_sparse_or_tensor_variable, as_sparse_variable
from symcomp.sparse.operators import install
from symcomp.sparse.phases import register
from symcomp.sparse.products import *
from symcomp.sparse.reductions import *
from symcomp.sparse.sampling import *
from symcomp.sparse.solve import *
from symcomp.sparse.structure import *
from symcomp.sparse.type import SparseConstant, SparseType, SparseVariable, is_sparse_variable

# At the root of a clone the folder is found as the library `sparse`, which xarray tries to import.
if __name__ != "symcomp.sparse":
    raise ImportError("this is symcomp.sparse, not the library sparse")

install()
register()
__getattr__, _added = offered_names(__name__)

__all__ = [
    name
    for name, value in list(globals().items())
    if not name.startswith("_")
    and not isinstance(value, ModuleType)
    and name not in ("ModuleType", "install", "offered_names", "register")
]
__all__ += _added


def __dir__() -> list[str]:
    """Return the names defined here and those added by higher layers."""
    return sorted({*globals(), *_added})
