"""``theano.tensor.blas``: the ops of BLAS by Theano's names, in place and not."""

from __future__ import annotations

from typing import Any

from symcomp.compat.missing import Adapted
from symcomp.core.tensor import TensorVariable
from symcomp.ops.elementwise.scalar_math import mul
from symcomp.ops.linalg import blas
from symcomp.ops.linalg.functions import batched_dot, batched_tensordot, dot
from symcomp.ops.linalg.products import BatchedDot, Dot

__all__ = ["BLAS"]


def _op(name: str, kind: Any, flag: str = "inplace") -> Adapted:
    """Return Theano's class ``name``, whose parameter says whether it works in place."""

    def make(*given: bool, **named: bool) -> Any:
        return kind(inplace=bool(given[0] if given else named.get(flag, False)))

    return Adapted(f"theano.tensor.blas.{name}", kind, make)


def dot22scalar(x: Any, y: Any, a: Any) -> TensorVariable:
    """Return the product of two matrices times a scalar."""
    return mul(dot(x, y), a)


_IN_PLACE = {
    "Gemm": ("gemm", "gemm_no_inplace", "gemm_inplace"),
    "Gemv": ("gemv", "gemv_no_inplace", "gemv_inplace", "cgemv_no_inplace", "cgemv_inplace"),
    "Ger": ("ger", "cger_no_inplace", "ger_destructive", "cger_inplace", "scipy_ger_inplace"),
}
BLAS: dict[str, Any] = {
    **{
        name: getattr(blas, kind)(inplace=name.endswith(("_inplace", "_destructive"))
        and not name.endswith("no_inplace"))
        for kind, names in _IN_PLACE.items()
        for name in names
    },
    "BatchedDot": Adapted("theano.tensor.blas.BatchedDot", BatchedDot, lambda: batched_dot),
    "batched_dot": batched_dot,
    "batched_tensordot": batched_tensordot,
    "CGemv": _op("CGemv", blas.Gemv),
    "CGer": _op("CGer", blas.Ger, "destructive"),
    "Dot22": Adapted("theano.tensor.blas.Dot22", Dot, lambda: dot),
    "Dot22Scalar": Adapted("theano.tensor.blas.Dot22Scalar", blas.ScaledDot, lambda: dot22scalar),
    "Gemm": _op("Gemm", blas.Gemm),
    "Gemv": _op("Gemv", blas.Gemv),
    "Ger": _op("Ger", blas.Ger, "destructive"),
    "_dot22": dot,
    "_dot22scalar": dot22scalar,
}  # fmt: skip
