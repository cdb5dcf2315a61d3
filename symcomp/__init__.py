"""symcomp: a symbolic math compiler. Expressions, their derivatives, and fast functions from both.

>>> import symcomp
>>> import symcomp.tensor as T
>>> x = T.dvector("x")
>>> slope = symcomp.function([x], symcomp.grad(T.log(1 + T.exp(x)).sum(), x))
>>> slope([0.0])
array([0.5])
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from symcomp import errors, tensor
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.walk import clone_replace
from symcomp.errors import (
    DisconnectedInputError,
    GradientError,
    MissingInputError,
    NullTypeGradError,
    SymcompError,
    UnusedInputError,
)
from symcomp.lazy import LazyMethod, lazy_module, lazy_names, offer, set_home
from symcomp.ops.python_op import as_op

clone = clone_replace
__version__ = "0.1.0"

__all__ = [
    "Apply", "as_op", "clone", "clone_replace", "config", "Constant", "DisconnectedInputError",
    "errors", "foldl", "foldr", "Function", "function", "function_dump", "FunctionGraph", "grad",
    "gradient", "GradientError", "In", "load", "loop", "Lop", "map", "MissingInputError", "Mode",
    "NullTypeGradError", "Op", "OpFromGraph", "OrderedUpdates", "Out", "Param", "printing",
    "ProfileStats", "reduce", "Rop", "save", "scan", "scan_checkpoints", "scan_module", "shared",
    "shared_constructor", "SharedVariable", "sparse", "subgraph_grad", "SymcompError", "tensor",
    "Type", "UnusedInputError", "until", "Variable",
]  # fmt: skip

# Who only builds expressions needs nothing of these: they are imported when one is first used.
if TYPE_CHECKING:
    from symcomp import sparse
    from symcomp.later import *
else:
    __getattr__, __dir__ = lazy_names(__name__, __all__, "symcomp.later", packages=["sparse"])


class _Facade(ModuleType):
    """``symcomp.scan`` is the function, also when the package of that name has been imported."""

    @property
    def scan(self) -> Any:
        return _later.scan

    @scan.setter
    def scan(self, package: ModuleType) -> None:
        """What imports do: the package stays in ``sys.modules`` alone."""


set_home("scipy.sparse", "symcomp.compile.sparse_shared")
offer("symcomp.sparse", ("shared", "SparseSharedVariable"), "symcomp.compile.sparse_shared")
offer("symcomp.sparse", ("verify_grad", "verify_grad_sparse"), "symcomp.sparse_checks")
offer("symcomp.sparse", ("cg",), "symcomp.sparse_solvers")
offer(
    "symcomp.sparse",
    ("adagrad", "adam", "lazy_adam", "lazy_momentum", "momentum", "row_gradient", "sgd"),
    "symcomp.sparse_updates",
)
_later = lazy_module("symcomp.later")
sys.modules[__name__].__class__ = _Facade
Variable.eval = LazyMethod(  # type: ignore[attr-defined]
    Variable, "eval", "symcomp.compile.evaluation", "eval_variable"
)
for _name in ("repr_latex", "repr_html"):
    _method = LazyMethod(Variable, f"_{_name}_", "symcomp.printing.notebook", _name)
    setattr(Variable, f"_{_name}_", _method)
