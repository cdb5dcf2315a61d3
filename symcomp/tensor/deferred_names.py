"""Names of ``symcomp.tensor`` that are imported when one is first used."""

from symcomp.autodiff.check import NumericGradient
from symcomp.autodiff.higher import hessian, jacobian
from symcomp.autodiff.lop import Lop, grad
from symcomp.autodiff.rop import Rop
from symcomp.compile.verify_grad import verify_grad
from symcomp.ops.linalg.einsum import einsum
from symcomp.ops.nnet.functions import log_softmax, logsumexp, relu, softmax
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

__all__ = [
    "einsum", "fft", "grad", "hessian", "inplace", "jacobian", "linalg", "log_softmax", "logsumexp",
    "Lop", "nlinalg", "nnet", "NumericGradient", "piecewise_polynomial", "random", "relu", "Rop",
    "shared_randomstreams", "signal", "slinalg", "softmax", "verify_grad",
]  # fmt: skip
