"""Lazy choice (IfElse), and conditions checked at run time (Assert)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Natural
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to
from symcomp.ops.reductions.functions import all as all_


@record
class IfElse(Op):
    """z_k = x_k if the condition is true (not 0), else y_k. Inputs: condition, x_1 .. x_n, y_1 ..
    y_n.

    Only the chosen side is computed: an IfElse becomes a program with a branch for each side.
    """

    n_outputs: Natural

    moves = True
    multiple_outputs = True

    def output_types(self, condition: TensorVariable, *branches: Variable) -> list[Type]:
        n = self.n_outputs
        if len(branches) != 2 * n:
            raise ShapeError(f"ifelse: {len(branches)} values for {n} outputs, {2 * n} are needed")
        if condition.ndim != 0 or dtypes.is_complex(condition.dtype):
            raise DTypeError(
                f"ifelse: the condition must be a real scalar, got {condition} ({condition.type}); "
                "for an elementwise choice use switch"
            )
        types = []
        for k, (x, y) in enumerate(zip(branches[:n], branches[n:], strict=True)):
            joined = _joined_type(x.type, y.type)
            if joined is None:
                raise ShapeError(
                    f"ifelse: value {k} is {x.type} in one branch and {y.type} in the other"
                )
            types.append(joined)
        return types

    def perform(self, condition: Any, *branches: Any) -> tuple[Any, ...]:
        return branches[: self.n_outputs] if condition else branches[self.n_outputs :]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        n, condition = self.n_outputs, node.inputs[0]
        result: list[Any] = []
        for x, y in zip(shapes[1 : 1 + n], shapes[1 + n :], strict=True):
            if x is None:
                result.append(None)
                continue
            result.append(
                tuple(
                    a if a == b else ifelse(condition, _scalar(a), _scalar(b))
                    for a, b in zip(x, y, strict=True)
                )
            )
        return result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n = self.n_outputs
        rows = [[i == k for k in range(n)] for i in range(n)]
        return [[True] * n, *rows, *rows]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        condition = inputs[0]
        live = [k for k, g in enumerate(output_grads) if g is not None]
        n = self.n_outputs
        grads: list[Any] = [None] * (2 * n)
        for side in (0, 1):
            given = [output_grads[k] for k in live]
            nothing = [inputs[1 + side * n + k].zeros_like(output_grads[k].dtype) for k in live]
            chosen, other = (given, nothing) if side == 0 else (nothing, given)
            for k, g in zip(live, IfElse(len(live))(condition, *chosen, *other), strict=True):
                grads[side * n + k] = g
        return [None, *grads]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        n = self.n_outputs
        live = [
            k for k in range(n) if tangents[1 + k] is not None or tangents[1 + n + k] is not None
        ]
        filled = [
            inputs[1 + i].zeros_like(outputs[i % n].dtype) if dx is None else dx
            for i, dx in enumerate(tangents[1:])
            if i % n in live
        ]
        found: list[Any] = [None] * n
        for k, dz in zip(live, IfElse(len(live))(inputs[0], *filled), strict=True):
            found[k] = dz
        return found

    @property
    def view_map(self) -> dict[int, tuple[int, ...]]:  # type: ignore[override]
        """Each output may share memory with either of its two values."""
        return {k: (1 + k, 1 + self.n_outputs + k) for k in range(self.n_outputs)}

    def __str__(self) -> str:
        return "ifelse"


def _scalar(n: Any) -> TensorVariable:
    return as_tensor_variable(n, dtype="int64") if isinstance(n, int) else n


def _joined_type(x: Type, y: Type) -> Type | None:
    """Return the common type of both; None if there is none."""
    if isinstance(x, TensorType) and isinstance(y, TensorType):
        if x.dtype != y.dtype or x.ndim != y.ndim:
            return None
        return TensorType(
            x.dtype, [a if a == b else None for a, b in zip(x.shape, y.shape, strict=True)]
        )
    return x.joined(y)


def ifelse(condition: Any, then_branch: Any, else_branch: Any, name: str | None = None) -> Any:
    """Return ``then_branch`` if the scalar ``condition`` is true (not 0), else ``else_branch``;
    only that side is computed.

    Parameters
    ----------
    condition : real scalar
    then_branch, else_branch : Variable or number, or list or tuple of them
        Of equal number, and of the same rank and kind, one by one. Dtypes are brought together.
    name : str, optional

    Returns
    -------
    Variable, or list of Variable
        A length that differs between the branches is unknown in the result's type.

    Raises
    ------
    ShapeError, DTypeError

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.ifelse import ifelse
    >>> x = T.dscalar("x")
    >>> ifelse(x > 0, x, -x).eval({x: -3.0})
    array(3.)
    """
    condition = as_tensor_variable(condition)
    several = isinstance(then_branch, list | tuple)
    if several != isinstance(else_branch, list | tuple):
        raise TypeError("ifelse: one branch is a list and the other is not")
    firsts = list(then_branch) if several else [then_branch]
    seconds = list(else_branch) if several else [else_branch]
    if len(firsts) != len(seconds):
        raise ShapeError(f"ifelse: {len(firsts)} values in one branch, {len(seconds)} in the other")
    pairs = [_matched(x, y) for x, y in zip(firsts, seconds, strict=True)]
    outputs = IfElse(len(pairs))(condition, *(x for x, _ in pairs), *(y for _, y in pairs))
    if name is not None:
        for k, out in enumerate(outputs):
            out.name = f"{name}{k}" if several else name
    return outputs if several else outputs[0]


def _matched(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the two values at their common dtype."""
    if any(isinstance(v, Variable) and not isinstance(v, TensorVariable) for v in (x, y)):
        return x, y
    x, y = as_common(x, y)
    common = dtypes.upcast(x.dtype, y.dtype)
    return cast_to(x, common), cast_to(y, common)


@record
class Assert(Op):
    """z = x, a view; raises ``exc(message)`` if a condition is false.   Inputs: x, conditions.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> float(T.Assert("x must be positive")(x, x > 0).eval({x: 2.0}))
    2.0
    """

    message: str = "Assert failed"
    exc: type[Exception] = AssertionError

    moves = True

    def as_inputs(self, *args: Any) -> list[Variable]:
        x, *conditions = (as_tensor_variable(a) for a in args)
        return [x, *(c if c.ndim == 0 else all_(c) for c in conditions)]

    def output_types(self, x: TensorVariable, *conditions: TensorVariable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any, *conditions: Any) -> Any:
        if not np.all(conditions):
            raise self.exc(self.message)
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0]] + [None] * (len(inputs) - 1)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]

    view_map = {0: (0,)}


def assert_op(x: Any, *conditions: Any, msg: str = "Assert failed") -> TensorVariable:
    """Return ``x``; at run time, raise an AssertionError if a condition is not true.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> T.assert_op(T.sqrt(x), x >= 0).eval({x: 4.0})
    array(2.)
    """
    return Assert(msg)(x, *conditions)


__all__ = ["Assert", "IfElse", "assert_op", "ifelse"]
