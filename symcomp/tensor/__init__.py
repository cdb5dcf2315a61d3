"""``T``: everything that builds expressions. Users write ``import symcomp.tensor as T``."""

from typing import TYPE_CHECKING

from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.errors import NotScalarConstantError
from symcomp.lazy import lazy_names
from symcomp.ops import operators
from symcomp.ops.alloc import *
from symcomp.ops.axes import *
from symcomp.ops.constant_values import *
from symcomp.ops.contiguous import *
from symcomp.ops.control import Assert, assert_op
from symcomp.ops.convert import NoneConst, as_tensor_variable, constant
from symcomp.ops.creation import *
from symcomp.ops.cumulative import *
from symcomp.ops.debugging import *
from symcomp.ops.diagonal import *
from symcomp.ops.dimshuffle import DimShuffle, dimshuffle
from symcomp.ops.einsum import einsum
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.gather import *
from symcomp.ops.index import *
from symcomp.ops.index_arithmetic import *
from symcomp.ops.join import *
from symcomp.ops.linalg import *
from symcomp.ops.nnet import log_softmax, relu, softmax
from symcomp.ops.over_argument import *
from symcomp.ops.reduce import *
from symcomp.ops.repeat import *
from symcomp.ops.scalar_error import *
from symcomp.ops.scalar_gamma import *
from symcomp.ops.scalar_inverse import *
from symcomp.ops.scalar_logic import *
from symcomp.ops.scalar_logistic import *
from symcomp.ops.scalar_math import *
from symcomp.ops.scalar_products import *
from symcomp.ops.scalar_special import *
from symcomp.ops.scalar_stable import *
from symcomp.ops.shape import *
from symcomp.ops.softmax import *
from symcomp.ops.sort import *
from symcomp.ops.statistics import *
from symcomp.ops.variables import *
from symcomp.tensor import nnet
from symcomp.tensor.suggestions import numpy_form

operators.install(numpy_form)

as_tensor = as_tensor_variable
abs = abs_  # noqa: F405
ravel = flatten  # noqa: F405
Tensor = TensorType

_DEFERRED = (
    "fft", "grad", "hessian", "inplace", "jacobian", "linalg", "Lop", "nlinalg", "NumericGradient",
    "random", "Rop", "shared_randomstreams", "signal", "slinalg", "verify_grad",
)  # fmt: skip
# Namespaces searched for names that are not defined here.
_NAMESPACES = tuple(
    f"symcomp.tensor.{name}" for name in ("nnet", "nlinalg", "slinalg", "fft", "signal.pool")
)
_NOT_OFFERED = ("lazy_names", "numpy_form", "operators", "suggestions", "TYPE_CHECKING")
__all__ = [n for n in dir() if not n.startswith("_") and n not in _NOT_OFFERED]
__all__ += _DEFERRED

if TYPE_CHECKING:
    from symcomp.tensor.deferred_names import *
else:
    __getattr__, __dir__ = lazy_names(
        __name__, _DEFERRED, "symcomp.tensor.deferred_names", _NAMESPACES
    )
