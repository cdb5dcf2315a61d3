"""Names of ``symcomp.tensor`` that are imported when one is first used."""

from symcomp.autodiff.check import NumericGradient
from symcomp.autodiff.higher import hessian, jacobian
from symcomp.autodiff.lop import Lop, grad
from symcomp.autodiff.rop import Rop
from symcomp.compile.verify_grad import verify_grad
from symcomp.tensor import (
    fft,
    inplace,
    linalg,
    nlinalg,
    random,
    shared_randomstreams,
    signal,
    slinalg,
)

__all__ = [
    "fft", "grad", "hessian", "inplace", "jacobian", "linalg", "Lop", "nlinalg", "NumericGradient",
    "random", "Rop", "shared_randomstreams", "signal", "slinalg", "verify_grad",
]  # fmt: skip
