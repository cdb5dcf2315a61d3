"""``T``: everything that builds expressions. Users write ``import symcomp.tensor as T``."""

from symcomp.autodiff.check import NumericGradient
from symcomp.autodiff.higher import hessian, jacobian
from symcomp.autodiff.lop import Lop, grad
from symcomp.autodiff.rop import Rop
from symcomp.core.tensor import TensorConstant, TensorType, TensorVariable
from symcomp.ops import nnet, operators
from symcomp.ops.alloc import *  # noqa: F403
from symcomp.ops.axes import *  # noqa: F403
from symcomp.ops.control import Assert, assert_op
from symcomp.ops.convert import (
    NoneConst,
    as_tensor_variable,
    constant,
    get_scalar_constant_value,
)
from symcomp.ops.creation import *  # noqa: F403
from symcomp.ops.cumulative import *  # noqa: F403
from symcomp.ops.diagonal import *  # noqa: F403
from symcomp.ops.dimshuffle import DimShuffle
from symcomp.ops.einsum import einsum
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.extra import *  # noqa: F403
from symcomp.ops.gather import *  # noqa: F403
from symcomp.ops.index import *  # noqa: F403
from symcomp.ops.join import *  # noqa: F403
from symcomp.ops.linalg import *  # noqa: F403
from symcomp.ops.nnet import log_softmax, relu, softmax
from symcomp.ops.reduce import *  # noqa: F403
from symcomp.ops.repeat import *  # noqa: F403
from symcomp.ops.scalar_logic import *  # noqa: F403
from symcomp.ops.scalar_math import *  # noqa: F403
from symcomp.ops.scalar_special import *  # noqa: F403
from symcomp.ops.shape import *  # noqa: F403
from symcomp.ops.sort import *  # noqa: F403
from symcomp.ops.variables import *  # noqa: F403
from symcomp.tensor import inplace

operators.install()

as_tensor = as_tensor_variable
Tensor = TensorType
