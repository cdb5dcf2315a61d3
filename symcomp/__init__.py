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

from symcomp import deferred_names, errors, tensor
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.members import add_members
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.tensor import TensorVariable
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
from symcomp.ops.casting import offer_cast_policy
from symcomp.ops.control.python_op import as_op

clone = clone_replace
__version__ = "0.1.0"

__all__ = [
    "Apply", "as_op", "clone", "clone_replace", "config", "Constant", "DisconnectedInputError",
    "errors", "foldl", "foldr", "Function", "function", "function_dump", "FunctionGraph", "gpu",
    "grad", "gradient", "GradientError", "In", "load", "loop", "Lop", "map", "MissingInputError",
    "Mode", "NullTypeGradError", "Op", "OpFromGraph", "OrderedUpdates", "Out", "Param", "printing",
    "ProfileStats", "reduce", "Rop", "save", "scan", "scan_checkpoints", "scan_module", "shared",
    "shared_constructor", "SharedVariable", "sparse", "subgraph_grad", "SymcompError", "tensor",
    "Type", "UnusedInputError", "until", "Variable",
]  # fmt: skip

# Building expressions needs none of these; they are imported on first use.
if TYPE_CHECKING:
    from symcomp import gpu, sparse
    from symcomp.deferred_names import *
else:
    __getattr__, __dir__ = lazy_names(
        __name__, deferred_names.PLACES, packages=[*deferred_names.MODULES, "gpu", "sparse"]
    )


class _Facade(ModuleType):
    """``symcomp.scan`` is the function, also when the package of that name has been imported."""

    @property
    def scan(self) -> Any:
        return _scan_module.scan

    @scan.setter
    def scan(self, package: ModuleType) -> None:
        """Ignore the assignment that importing the package makes: it stays in ``sys.modules``
        alone.
        """


set_home("scipy.sparse", "symcomp.compile.sparse_shared")
offer("symcomp.sparse", ("shared", "SparseSharedVariable"), "symcomp.compile.sparse_shared")
offer("symcomp.sparse", ("verify_grad", "verify_grad_sparse"), "symcomp.sparse_checks")
offer("symcomp.sparse", ("cg",), "symcomp.sparse_solvers")
offer(
    "symcomp.sparse",
    ("adagrad", "adam", "lazy_adam", "lazy_momentum", "momentum", "row_gradient", "sgd"),
    "symcomp.sparse_updates",
)
_scan_module = lazy_module("symcomp.scan_module")
sys.modules[__name__].__class__ = _Facade
add_members(
    Variable,
    {
        "eval": LazyMethod(Variable, "eval", "symcomp.compile.evaluation", "eval_variable"),
        **{
            f"_{name}_": LazyMethod(Variable, f"_{name}_", "symcomp.printing.notebook", name)
            for name in ("repr_latex", "repr_html")
        },
    },
)
add_members(
    TensorVariable,
    {"transfer": LazyMethod(TensorVariable, "transfer", "symcomp.gpu.transfers", "transfer")},
)
offer_cast_policy("theano", "symcomp.compat.casting")
