"""``T``: everything that builds expressions. Users write ``import symcomp.tensor as T``."""

from typing import TYPE_CHECKING

from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.errors import NotScalarConstantError
from symcomp.lazy import lazy_names
from symcomp.ops import operators
from symcomp.ops.constant_values import *
from symcomp.ops.control.conditions import Assert, assert_op
from symcomp.ops.convert import NoneConst, as_tensor_variable, constant
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.product_remainder import *
from symcomp.ops.elementwise.scalar_differences import *
from symcomp.ops.elementwise.scalar_error import *
from symcomp.ops.elementwise.scalar_gamma import *
from symcomp.ops.elementwise.scalar_inverse import *
from symcomp.ops.elementwise.scalar_logic import *
from symcomp.ops.elementwise.scalar_logistic import *
from symcomp.ops.elementwise.scalar_math import *
from symcomp.ops.elementwise.scalar_products import *
from symcomp.ops.elementwise.scalar_special import *
from symcomp.ops.elementwise.scalar_stable import *
from symcomp.ops.elementwise.scalar_trigonometry import *
from symcomp.ops.elementwise.series_remainder import *
from symcomp.ops.indexing.diagonal import *
from symcomp.ops.indexing.diagonals import *
from symcomp.ops.indexing.gather import *
from symcomp.ops.indexing.index import *
from symcomp.ops.indexing.index_arithmetic import *
from symcomp.ops.indexing.subtensors import *
from symcomp.ops.linalg.functions import *
from symcomp.ops.reductions.accumulated import *
from symcomp.ops.reductions.cumulative import *
from symcomp.ops.reductions.functions import *
from symcomp.ops.reductions.reduce import *
from symcomp.ops.shapes.alloc import *
from symcomp.ops.shapes.axes import *
from symcomp.ops.shapes.creation import *
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.filled import *
from symcomp.ops.shapes.join import *
from symcomp.ops.shapes.joining import *
from symcomp.ops.shapes.repeat import *
from symcomp.ops.shapes.reshaping import *
from symcomp.ops.shapes.shape import *
from symcomp.ops.sorting.functions import *
from symcomp.ops.variables import *
from symcomp.tensor import deferred_names
from symcomp.tensor.suggestions import numpy_form

operators.install(numpy_form)

as_tensor = as_tensor_variable
abs = abs_  # noqa: F405
ravel = flatten  # noqa: F405
Tensor = TensorType

# Namespaces searched for names that are not defined here.
_NAMESPACES = tuple(
    f"symcomp.tensor.{name}" for name in ("nnet", "nlinalg", "slinalg", "fft", "signal.pool")
)
_NOT_OFFERED = (
    "deferred_names", "lazy_names", "numpy_form", "operators", "suggestions", "TYPE_CHECKING",
)  # fmt: skip
__all__ = [n for n in dir() if not n.startswith("_") and n not in _NOT_OFFERED]
__all__ += [*deferred_names.PLACES, *deferred_names.MODULES]

if TYPE_CHECKING:
    from symcomp.tensor.deferred_names import *
else:
    __getattr__, __dir__ = lazy_names(
        __name__, deferred_names.PLACES, _NAMESPACES, deferred_names.MODULES
    )
