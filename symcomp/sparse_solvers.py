"""``sparse.cg``: conjugate gradients as a loop, with the derivative of the solution, not of the
steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import symcomp.scan_module as loops
from symcomp.autodiff.lop import Lop
from symcomp.autodiff.rop import Rop
from symcomp.compile.builders import OpFromGraph
from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant, Variable
from symcomp.core.tensor import TensorVariable
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import eq, le, switch
from symcomp.ops.elementwise.scalar_math import maximum, real, sqr
from symcomp.ops.linalg.functions import dot as dense_dot
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.shape import ShapeI
from symcomp.sparse.op import as_sparse_variable
from symcomp.sparse.products import dot as sparse_dot
from symcomp.sparse.structure import diag
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.values import is_sparse


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    rtol: float = 1e-8,
    atol: float = 0.0,
    maxiter: Any = None,
    M: Any = None,
    return_steps: bool = False,
) -> Any:
    """Solve ``A x = b`` for a symmetric (Hermitian) positive definite A by conjugate gradients.

    The steps are a loop that ends as soon as the residual is small enough. Derivatives are those of
    the solution (by further systems with A), not those of the steps: exact to the tolerance, of any
    order, in both modes, and without keeping steps.

    Parameters
    ----------
    A : sparse or dense matrix, or callable
        A callable takes and returns a vector (a matrix, if ``b`` is one): it may compute A x in any
        way.
    b : vector or matrix, (n,) or (n, k)
        The columns of a matrix are solved for side by side.
    x0 : like ``b``, optional
        The initial vector, by default 0. The solution does not depend on it.
    rtol, atol : float
        Steps end when the norm of the residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int or scalar, optional
        The most steps, by default 10 n.
    M : callable or "jacobi", optional
        The preconditioner, which approximates the inverse of A; ``"jacobi"`` divides by the
        diagonal of a matrix A. The solution does not depend on it.
    return_steps : bool
        Return the number of steps, too.

    Returns
    -------
    TensorVariable, or (TensorVariable, int64 scalar)

    Examples
    --------
    >>> import scipy.sparse
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> A, b = sparse.csr_matrix("A"), T.dvector("b")
    >>> x = sparse.cg(A, b)
    >>> x.eval({A: scipy.sparse.csr_array([[4.0, 1.0], [1.0, 3.0]]), b: [5.0, 4.0]}).round(6)
    array([1., 1.])
    """
    A = _as_operator_argument(A)
    b = as_tensor_variable(b)
    if b.ndim not in (1, 2):
        raise ShapeError(f"cg: b is {b} ({b.type}); a vector or a matrix is needed")
    dtype = dtypes.to_float(b.dtype if callable(A) else dtypes.upcast(A.dtype, b.dtype))
    b = cast_to(b, dtype)
    start = b.zeros_like() if x0 is None else cast_to(as_tensor_variable(x0), dtype)
    if maxiter is None:
        maxiter = ShapeI(0)(b) * 10
    n = cast_to(as_tensor_variable(maxiter), "int64")
    probe = b.type("x")
    image, approximation = _applied(A, probe), _preconditioned(A, M, probe)
    if not isinstance(image, TensorVariable) or image.ndim != b.ndim:
        raise DTypeError(f"cg: A maps {probe.type} to {getattr(image, 'type', image)}")
    x, steps = _Solver(probe, image, approximation, rtol, atol).solution(b, start, n)
    return (x, steps) if return_steps else x


def _as_operator_argument(A: Any) -> Any:
    if isinstance(A, SparseVariable) or is_sparse(A):
        return as_sparse_variable(A)
    if callable(A) and not isinstance(A, Variable):
        return A
    A = as_tensor_variable(A)
    if A.ndim != 2:
        raise ShapeError(f"cg: A is {A} ({A.type}); a matrix or a callable is needed")
    return A


def _applied(A: Any, x: Any) -> Any:
    """Return A x."""
    if isinstance(A, SparseVariable):
        return sparse_dot(A, x)
    return dense_dot(A, x) if isinstance(A, Variable) else A(x)


def _preconditioned(A: Any, M: Any, r: Any) -> Any:
    """Return M r."""
    if M is None:
        return r
    if callable(M):
        return M(r)
    if M != "jacobi" or not isinstance(A, Variable):
        raise ValueError(f"cg: M={M!r}: a callable, or 'jacobi' where A is a matrix, is needed")
    d = diag(A) if isinstance(A, SparseVariable) else cast(Any, A).diagonal()
    return r / (d if r.ndim == 1 else d.dimshuffle(0, "x"))


class _Solver:
    """Systems with one operator, and their derivatives.

    Parameters
    ----------
    probe : variable
    image, approximation : variables
        A and the preconditioner, applied to ``probe``.
    rtol, atol : float
    """

    def __init__(
        self, probe: Any, image: Any, approximation: Any, rtol: float, atol: float
    ) -> None:
        self._probe, self._image, self._approximation = probe, image, approximation
        self._rtol, self._atol = rtol, atol
        # Variables that A and M are computed from: they are inputs of the op, which gives gradients
        # for those of A.
        self._captured = _captured([image, approximation], probe)

    def apply(self, x: Any) -> Any:
        """Return A x."""
        return rebuild([self._image], {self._probe: x})[0]

    def precondition(self, r: Any) -> Any:
        """Return M r."""
        return rebuild([self._approximation], {self._probe: r})[0]

    def of(self, given: Sequence[Any]) -> _Solver:
        """Return the same solver, made of other variables."""
        pairs = dict(zip(self._captured, given, strict=True))
        ends = rebuild([self._image, self._approximation], pairs)
        return _Solver(self._probe, ends[0], ends[1], self._rtol, self._atol)

    def solution(self, b: Any, start: Any, n: Any) -> tuple[Any, Any]:
        """Return x and the number of steps, with the derivatives of a solution."""
        k = len(self._captured)
        inputs = [*self._captured, b, start, n]
        own = [v.type(v.name) for v in inputs]
        ends = self.of(own[:k])._loop(*own[k:])
        op = OpFromGraph(
            own, list(ends), inline=True, lop_overrides=self._pulled, rop_overrides=self._pushed,
            connection_pattern=[[True, False]] * (k + 1) + [[False, False]] * 2, name="cg",
        )  # fmt: skip
        x, steps = op(*inputs)
        return x, steps

    def _pulled(self, given: Sequence[Any], outputs: Sequence[Any], grads: Any) -> list[Any]:
        """Return the gradients: A gb = g, and -<gb, A x> differentiated in the variables of A."""
        k = len(self._captured)
        solver = self.of(given[:k])
        gb, _ = solver.solution(grads[0], grads[0].zeros_like(), given[k + 2])
        moving = [v for v in given[:k] if _is_continuous(v)]
        pulled = Lop(solver._image, moving, -gb, disconnected_inputs="ignore") if moving else []
        pulled = rebuild(pulled, {self._probe: outputs[0]})
        found = dict(zip(moving, pulled, strict=True))
        return [*(found.get(v) for v in given[:k]), gb, None, None]

    def _pushed(self, given: Sequence[Any], points: Sequence[Any]) -> list[Any]:
        """Return the tangents: A dx = db - dA x."""
        k = len(self._captured)
        solver = self.of(given[:k])
        b, start, n = given[k:]
        x, _ = solver.solution(b, start, n)
        change = b.zeros_like() if points[k] is None else points[k]
        moving = [
            (v, d) for v, d in zip(given[:k], points[:k], strict=True)
            if d is not None and _is_continuous(v)
        ]  # fmt: skip
        if moving:
            wrt, directions = map(list, zip(*moving, strict=True))
            pushed = Rop(solver._image, wrt, directions, disconnected_outputs="ignore")
            change = change - rebuild([pushed], {self._probe: x})[0]
        dx, _ = solver.solution(change, change.zeros_like(), n)
        return [dx, None]

    def _loop(self, b: Any, start: Any, n: Any) -> tuple[Any, Any]:
        limit = maximum(
            self._rtol**2 * _squares(b), as_tensor_variable(self._atol**2, dtype=_real(b))
        )
        r = b - self.apply(start)
        z = self.precondition(r)

        def step(carry: Any, _: Any) -> Any:
            x, r, p, rz, count = carry
            image = self.apply(p)
            alpha = _ratio(rz, _inner(p, image))
            x, r = x + alpha * p, r - alpha * image
            z = self.precondition(r)
            after = _inner(r, z)
            p = z + _ratio(after, rz) * p
            done = all_(le(_squares(r), limit))
            return (x, r, p, after, count + 1), None, loops.until(done)

        zero = as_tensor_variable(0, dtype="int64")
        (x, _, _, _, count), _ = loops.loop(
            step, (start, r, z, _inner(r, z), zero), length=n, name="cg"
        )
        return x, count


def _captured(outputs: Sequence[Any], probe: Variable) -> list[Any]:
    """Return the variables that the ``probe``-dependent part of the graph reads from outside of it.
    """
    moving = {probe}
    found: dict[Any, None] = {}
    for node in toposort(outputs):
        if moving.isdisjoint(node.inputs):
            continue
        moving.update(node.outputs)
        for x in node.inputs:
            if x not in moving and not isinstance(x, Constant):
                found[x] = None
    return list(found)


def _is_continuous(v: Any) -> bool:
    dtype = getattr(v.type, "dtype", None)
    return isinstance(dtype, str) and dtype in dtypes.CONTINUOUS


def _inner(x: Any, y: Any) -> Any:
    """Return the inner products of columns, which are real."""
    product = x.conj() * y if dtypes.is_complex(x.dtype) else x * y
    return real(sum_(product, axis=0)) if dtypes.is_complex(x.dtype) else sum_(product, axis=0)


def _squares(x: Any) -> Any:
    return _inner(x, x) if dtypes.is_complex(x.dtype) else sum_(sqr(x), axis=0)


def _real(x: Any) -> str:
    return dtypes.real_part(x.dtype)


def _ratio(above: Any, below: Any) -> Any:
    """Return a quotient, 0 where the divisor is 0: then the residual is 0."""
    return switch(eq(below, 0), 0, above / switch(eq(below, 0), 1, below))


__all__ = ["cg"]
