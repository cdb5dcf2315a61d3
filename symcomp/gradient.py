"""``symcomp.gradient``: derivatives and what changes or checks them."""

from symcomp.autodiff.check import NumericGradient
from symcomp.autodiff.higher import hessian, hessian_vector_product, jacobian
from symcomp.autodiff.lop import Lop, grad, grad_not_implemented, grad_undefined, subgraph_grad
from symcomp.autodiff.markers import (
    consider_constant,
    disconnected_grad,
    grad_clip,
    grad_scale,
    undefined_grad,
    zero_grad,
)
from symcomp.autodiff.rop import Rop
from symcomp.compile.verify_grad import verify_grad
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.errors import DisconnectedInputError, GradientError, NullTypeGradError

__all__ = [
    "consider_constant", "disconnected_grad", "DisconnectedInputError", "DisconnectedType",
    "grad", "grad_clip", "grad_not_implemented", "grad_scale", "grad_undefined",
    "GradientError", "hessian", "hessian_vector_product", "jacobian", "Lop", "NullType",
    "NullTypeGradError", "NumericGradient", "Rop", "subgraph_grad", "undefined_grad",
    "verify_grad", "zero_grad",
]  # fmt: skip
