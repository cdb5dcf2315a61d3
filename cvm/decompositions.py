"""The routine of LAPACK for each op on matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.cvm import machine
from symcomp.cvm.blas_threads import limit_of_decompositions
from symcomp.cvm.kernels import threads_to_use
from symcomp.cvm.machine import Lowered
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.determinant import Adjugate, Det, SLogDet
from symcomp.ops.linalg.eigen import Eig, Eigh, Eigvalsh
from symcomp.ops.linalg.inverse import MatrixInverse, MatrixPinv
from symcomp.ops.linalg.lstsq import Lstsq
from symcomp.ops.linalg.pivoted_qr import PivotedQR, PivotedQRRaw
from symcomp.ops.linalg.qr import QR, QRRaw
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.linalg.stable_linalg import (
    InverseForm,
    Invertible,
    StableInverse,
    StableSLogDet,
    StableSolve,
)
from symcomp.ops.linalg.svd import SVD, SingularValues
from symcomp.vm.program import Instruction

LAPACK_DTYPES = ("float32", "float64", "complex64", "complex128")
# The options of solve, in decompositions.h.
STRUCTURES = ("general", "positive_definite", "symmetric", "hermitian")
# The options of svd, in eigen_svd.h.
VALUES, SHORT_SIDES, WHOLE_SIDES = 0, 1, 2


@record
class Routine:
    """The arguments of ``machine.Decomposition``. ``wide``: NumPy always computes in double
    precision, SciPy does not; this follows the one used in Python.
    """

    name: str
    shapes: tuple[str, ...]
    square: bool = True
    lower: bool = True
    option: int = 0
    rcond: tuple[float, float] = (0.0, 0.0)
    wide: bool = True
    cores: tuple[int, ...] = (2,)
    order: tuple[int, ...] = (0,)


def _cholesky(op: Any, node: Apply) -> Routine:
    return Routine("cholesky", ("mm",), lower=op.lower, option=int(op.on_error == "nan"))


def _system(name: str, node: Apply, lower: bool, option: int, wide: bool) -> Routine:
    """Lower a system of vectors or of matrices."""
    a, b = node.inputs
    core = 2 - (a.ndim - b.ndim)
    shapes = ("mk",) if core == 2 else ("m",)
    return Routine(
        name, shapes, lower=lower, option=option, wide=wide, cores=(2, core), order=(0, 1)
    )


def _solve(op: Any, node: Apply) -> Routine | None:
    if op.A_structure == "banded":
        return None
    if op.is_triangular:
        return _system("solve_triangular", node, op.lower, int(op.unit_diagonal), False)
    option = STRUCTURES.index(op.A_structure)
    return _system("solve", node, op.lower, option, op.A_structure == "general")


def _refined_solve(op: Any, node: Apply) -> Routine:
    return _system("refined_solve", node, False, 0, True)


def _qr(op: Any, node: Apply) -> Routine:
    return Routine("qr", ("mm", "mn") if op.complete else ("mp", "pn"), square=False)


def _pivoted_qr(op: Any, node: Apply) -> Routine:
    """SciPy computes in the precision that is given."""
    shapes = ("mm", "mn", "n") if op.complete else ("mp", "pn", "n")
    return Routine("qr", shapes, square=False, option=1, wide=False)


def _svd(op: Any, node: Apply) -> Routine:
    if op.full_matrices:
        return Routine("svd", ("mm", "p", "nn"), square=False, option=WHOLE_SIDES)
    return Routine("svd", ("mp", "p", "pn"), square=False, option=SHORT_SIDES)


def _rcond(op: Any, dtype: str) -> tuple[float, float]:
    """None stands for the rounding unit times the longer side."""
    if op.rcond is None:
        return 0.0, float(np.finfo(dtype).eps)
    return op.rcond, 0.0


def _pinv(op: Any, node: Apply) -> Routine:
    rcond = _rcond(op, node.inputs[0].dtype)
    if op.hermitian:
        return Routine("pseudo_inverse_of_hermitian", ("mm",), rcond=rcond)
    return Routine("pseudo_inverse", ("nm",), square=False, rcond=rcond)


def _least_squares(op: Any, node: Apply) -> Routine:
    rcond = _rcond(op, "float64")
    return Routine(
        "least_squares", ("nk", "r", "", "p"), square=False, rcond=rcond, cores=(2, 2), order=(0, 1)
    )


def _always(routine: Routine) -> Callable[[Any, Apply], Routine]:
    return lambda op, node: routine


ROUTINES: dict[type, Callable[[Any, Apply], Routine | None]] = {
    Adjugate: _always(Routine("adjugate", ("mm",))),
    Cholesky: _cholesky,
    Det: _always(Routine("determinant", ("",))),
    Eig: _always(Routine("eig", ("m", "mm"))),
    Eigh: lambda op, node: Routine("eigh", ("m", "mm"), lower=op.UPLO == "L", option=1),
    Eigvalsh: lambda op, node: Routine("eigh", ("m",), lower=op.lower),
    InverseForm: _always(Routine("inverse_form", ("",), cores=(2, 1, 1), order=(1, 0, 2))),
    Invertible: _always(Routine("check_invertible", ())),
    Lstsq: _least_squares,
    MatrixInverse: _always(Routine("solve", ("mm",))),
    MatrixPinv: _pinv,
    PivotedQR: _pivoted_qr,
    PivotedQRRaw: _always(Routine("qr_raw", ("nm", "p", "n"), square=False, option=1, wide=False)),
    QR: _qr,
    QRRaw: _always(Routine("qr_raw", ("nm", "p"), square=False)),
    SingularValues: _always(Routine("svd", ("p",), square=False, option=VALUES)),
    SLogDet: _always(Routine("log_determinant", ("", ""))),
    Solve: _solve,
    StableInverse: _always(Routine("refined_solve", ("mm",))),
    StableSLogDet: _always(Routine("refined_log_determinant", ("", ""))),
    StableSolve: _refined_solve,
    SVD: _svd,
}


def decomposition(step: Instruction) -> Lowered | None:
    """Lower one of these ops; None for dtypes that LAPACK has not, and for bands."""
    node: Any = step.node
    if any(x.dtype not in LAPACK_DTYPES for x in node.inputs):
        return None
    routine = ROUTINES[type(node.op)](node.op, node)
    if routine is None:
        return None
    dtypes = [x.dtype for x in (node.inputs[0], *node.outputs)]
    return machine.decomposition(
        step, routine.name, routine.order, routine.cores, routine.shapes, routine.square,
        routine.lower, routine.option, routine.rcond, routine.wide, dtypes, threads_to_use(),
        limit_of_decompositions(),
    )  # fmt: skip
