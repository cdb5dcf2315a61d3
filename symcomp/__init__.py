"""symcomp: a symbolic math compiler. Expressions, their derivatives, and fast functions from both.

>>> import symcomp
>>> import symcomp.tensor as T
>>> x = T.dvector("x")
>>> slope = symcomp.function([x], symcomp.grad(T.log(1 + T.exp(x)).sum(), x))
>>> slope([0.0])
array([0.5])
"""

from symcomp import errors, gradient, printing, scan_module, tensor
from symcomp.autodiff.lop import Lop, grad, subgraph_grad
from symcomp.autodiff.rop import Rop
from symcomp.compile.builders import OpFromGraph
from symcomp.compile.callable import Function
from symcomp.compile.dump import function_dump
from symcomp.compile.evaluation import eval_variable
from symcomp.compile.function import function
from symcomp.compile.io import In, Out
from symcomp.compile.mode import Mode
from symcomp.compile.saving.files import load, save
from symcomp.compile.shared import SharedVariable, shared, shared_constructor
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
from symcomp.ops.python_op import as_op
from symcomp.profiling.stats import ProfileStats
from symcomp.scan_module import (
    OrderedUpdates,
    foldl,
    foldr,
    loop,
    map,
    reduce,
    scan,
    scan_checkpoints,
    until,
)

Variable.eval = eval_variable  # type: ignore[attr-defined]
clone = clone_replace
Param = In
__version__ = "0.1.0"

__all__ = [
    "Apply", "as_op", "clone", "clone_replace", "config", "Constant", "DisconnectedInputError",
    "errors", "foldl", "foldr", "Function", "function", "function_dump", "FunctionGraph", "grad",
    "gradient", "GradientError", "In", "load", "loop", "Lop", "map", "MissingInputError", "Mode",
    "NullTypeGradError", "Op", "OpFromGraph", "OrderedUpdates", "Out", "Param", "printing",
    "ProfileStats", "reduce", "Rop", "save", "scan", "scan_checkpoints", "scan_module", "shared",
    "shared_constructor", "SharedVariable", "subgraph_grad", "SymcompError", "tensor", "Type",
    "UnusedInputError", "until", "Variable",
]  # fmt: skip
