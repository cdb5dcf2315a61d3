"""What differentiates: names of ``symcomp.tensor``, imported when one is first used."""

from symcomp.autodiff.check import NumericGradient
from symcomp.autodiff.higher import hessian, jacobian
from symcomp.autodiff.lop import Lop, grad
from symcomp.autodiff.rop import Rop
from symcomp.compile.verify_grad import verify_grad

__all__ = ["grad", "hessian", "jacobian", "Lop", "NumericGradient", "Rop", "verify_grad"]
