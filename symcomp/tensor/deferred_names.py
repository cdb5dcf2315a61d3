"""Where names of ``symcomp.tensor`` are defined; their modules are imported one by one, on first
use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symcomp.autodiff.check import NumericGradient
    from symcomp.autodiff.higher import hessian, jacobian
    from symcomp.autodiff.lop import Lop, grad
    from symcomp.autodiff.rop import Rop
    from symcomp.compile.verify_grad import verify_grad
    from symcomp.ops.control.debugging import PdbBreakpoint, Print, Raise
    from symcomp.ops.linalg.einsum import einsum
    from symcomp.ops.nnet.functions import log_softmax, logsumexp, relu, softmax
    from symcomp.ops.reductions.statistics import bincount, cov
    from symcomp.ops.sorting.piecewise import piecewise_polynomial
    from symcomp.tensor import (
        fft,
        inplace,
        linalg,
        nlinalg,
        nnet,
        random,
        shared_randomstreams,
        signal,
        slinalg,
    )

MODULES = (
    "fft", "inplace", "linalg", "nlinalg", "nnet", "random", "shared_randomstreams", "signal",
    "slinalg",
)  # fmt: skip
_NAMES = {
    "symcomp.autodiff.check": ("NumericGradient",),
    "symcomp.autodiff.higher": ("hessian", "jacobian"),
    "symcomp.autodiff.lop": ("Lop", "grad"),
    "symcomp.autodiff.rop": ("Rop",),
    "symcomp.compile.verify_grad": ("verify_grad",),
    "symcomp.ops.control.debugging": ("PdbBreakpoint", "Print", "Raise"),
    "symcomp.ops.linalg.einsum": ("einsum",),
    "symcomp.ops.nnet.functions": ("log_softmax", "logsumexp", "relu", "softmax"),
    "symcomp.ops.reductions.statistics": ("bincount", "cov"),
    "symcomp.ops.sorting.piecewise": ("piecewise_polynomial",),
}
PLACES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "bincount", "cov", "einsum", "fft", "grad", "hessian", "inplace", "jacobian", "linalg",
    "log_softmax", "logsumexp", "Lop", "nlinalg", "nnet", "NumericGradient", "PdbBreakpoint",
    "piecewise_polynomial", "Print", "Raise", "random", "relu", "Rop", "shared_randomstreams",
    "signal", "slinalg", "softmax", "verify_grad",
]  # fmt: skip
