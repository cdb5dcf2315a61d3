"""Forward mode: one walk from the inputs to the outputs, calling each node's pushforward (R-op)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

from symcomp.autodiff.lop import (
    _check_choice,
    _connected_to,
    _is_discrete,
    _reached_from,
    _targets,
    first_connected,
    stops_at,
    zeros_for,
)
from symcomp.autodiff.stable import StableForm
from symcomp.core import dtype as dtypes
from symcomp.core.mentions import mention
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.pause import without_garbage_collection
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.errors import DisconnectedInputError, GradientError, NullTypeGradError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to


@without_garbage_collection
def Rop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
) -> Any:
    """Return the Jacobian-vector product: the Jacobian of ``f`` with respect to ``wrt`` times
    ``eval_points``.

    Parameters
    ----------
    f : Variable or list or tuple of Variable
    wrt : Variable or list or tuple of Variable
    eval_points : tensor_like or sequence of tensor_like or None
        A direction for each element of ``wrt``, of its shape; None is a zero direction.
    disconnected_outputs : {"raise", "warn", "ignore"}
        The action if an element of ``f`` does not depend on ``wrt``.
    return_disconnected : {"zero", "None", "Disconnected"}
        The derivative of a disconnected output.
    null_gradients : {"raise", "return"}
        The action where the derivative is undefined or not implemented.

    Returns
    -------
    Variable or list or tuple of Variable
        Tensors of the shapes of ``f``.

    Raises
    ------
    DisconnectedInputError, NullTypeGradError, ShapeError

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, v = T.dvectors("x", "v")
    >>> symcomp.Rop(x ** 2, x, v).eval({x: [1.0, 2.0], v: [1.0, 10.0]})
    array([ 2., 40.])
    """
    _check_choice("disconnected_outputs", disconnected_outputs, ("raise", "warn", "ignore"))
    _check_choice("return_disconnected", return_disconnected, ("zero", "None", "Disconnected"))
    _check_choice("null_gradients", null_gradients, ("raise", "return"))
    sources = _targets(wrt, "Rop")
    outputs = list(f) if isinstance(f, list | tuple) else [f]
    for position, y in enumerate(outputs):
        if not isinstance(y, Variable):
            raise TypeError(f"Rop: f[{position}] is {y!r}, not a variable")
    tangents = _directions(sources, eval_points)
    asked, points = list(outputs), set(tangents.values())
    stable = StableForm(outputs, sources)
    tangents = {stable.image(x): dx for x, dx in tangents.items()}
    sources = [stable.image(x) for x in sources]
    outputs = [stable.image(y) for y in outputs]
    order = toposort(outputs, sources)
    patterns = {node: node.op.connection_pattern(node) for node in order}
    connected = _connected_to(outputs, order, patterns)
    moving = _reached_from(tangents, order, patterns)
    for node in order:
        if any(y in connected for y in node.outputs):
            _push(node, patterns[node], tangents, moving)
    reached = _reached_from(sources, [n for n in order if not _stops(n)], patterns)
    results = []
    for y in outputs:
        dy = tangents.get(y)
        if dy is not None and isinstance(dy.type, NullType):
            if null_gradients == "raise":
                raise NullTypeGradError(f"the derivative of {y}: {dy.type.reason}")
            results.append(dy)
        elif y not in reached:
            results.append(_disconnected(y, disconnected_outputs, return_disconnected))
        else:
            results.append(zeros_for(y) if dy is None else dy)
    results = stable.original(results)
    for y, dy in zip(asked, results, strict=True):
        if dy is not None and dy.owner is not None and dy not in points:
            mention(dy, y)
    if isinstance(f, tuple):
        return tuple(results)
    return results if isinstance(f, list) else results[0]


def _directions(sources: Sequence[Variable], eval_points: Any) -> dict[Variable, Any]:
    points = list(eval_points) if isinstance(eval_points, list | tuple) else [eval_points]
    if len(points) != len(sources):
        raise ShapeError(f"Rop: {len(sources)} variables in wrt but {len(points)} eval_points")
    tangents: dict[Variable, Any] = {}
    for x, point in zip(sources, points, strict=True):
        if point is None:
            continue
        point = point if isinstance(point, Variable) else as_tensor_variable(point)
        point = _fit_tangent(x, point, "eval_points")
        tangents[x] = tangents[x] + point if x in tangents else point
    return tangents


def _fit_tangent(x: Variable, dx: Any, who: str) -> Any:
    """Return ``dx`` checked against, and cast to, the type of ``x``."""
    if isinstance(dx.type, NullType):
        return dx
    if not isinstance(x.type, TensorType):
        return x.type.filter_gradient(x, dx, who)
    if not isinstance(dx.type, TensorType):
        raise GradientError(f"{who} gave a {dx.type} as the tangent of {x} ({x.type})")
    if dx.ndim != x.type.ndim or any(
        a is not None and b is not None and a != b
        for a, b in zip(dx.type.shape, x.type.shape, strict=True)
    ):
        raise ShapeError(
            f"{who} gave a tangent of type {dx.type} for {x} of type {x.type}; shapes must agree"
        )
    if dtypes.is_discrete(x.type.dtype):
        return dx
    if dtypes.is_complex(dx.dtype) and not dtypes.is_complex(x.type.dtype):
        raise GradientError(f"{who} gave a complex tangent for {x}, which is real ({x.type})")
    return cast_to(dx, x.type.dtype)


def _stops(node: Apply) -> bool:
    """Tell whether an op gives positions or orders, and so has no R-op rule: in forward mode, as in
    Theano, its results do not depend on its inputs.
    """
    return type(node.op).pushforward is Op.pushforward and all(map(_is_discrete, node.outputs))


def _push(
    node: Apply,
    pattern: list[list[bool]],
    tangents: dict[Variable, Any],
    moving: Collection[Variable],
) -> None:
    given = [
        tangents.get(x) if any(row) else None for x, row in zip(node.inputs, pattern, strict=True)
    ]
    nulls = [dx if dx is not None and isinstance(dx.type, NullType) else None for dx in given]
    usable = [dx if null is None else None for dx, null in zip(given, nulls, strict=True)]
    poisoned = [first_connected(column, nulls) for column in zip(*pattern, strict=True)]
    continuous = not all(stops_at(node, y) for y in node.outputs)
    asked = continuous and any(dx is not None for dx in usable) and None in poisoned
    # An op that contains a graph does not pass inputs without a tangent to its pushforward.
    if not asked or node.op.inner_graphs():
        poisoned = _undefined(node, poisoned, moving)
    found: list[Any] = poisoned
    if asked:
        pushed = node.op.pushforward(node.inputs, node.outputs, usable)
        if len(pushed) != len(node.outputs):
            raise GradientError(
                f"pushforward of {node.op} gave {len(pushed)} tangents for {len(node.outputs)} "
                "outputs"
            )
        found = [dy if null is None else null for dy, null in zip(pushed, poisoned, strict=True)]
    for y, dy in zip(node.outputs, found, strict=True):
        if dy is None or isinstance(dy.type, DisconnectedType):
            continue
        if isinstance(dy.type, NullType) or not stops_at(node, y):
            tangents[y] = _fit_tangent(y, dy, f"the pushforward of {node.op}")


def _undefined(node: Apply, poisoned: list[Any], moving: Collection[Variable]) -> list[Any]:
    """Return ``poisoned``, with null tangents for the outputs without a derivative in an input that
    depends on the sources.
    """
    if not any(x in moving for x in node.inputs):
        return poisoned
    reasons = node.op.undefined_derivatives(node, forward=True)
    rows = [row for x, row in zip(node.inputs, reasons, strict=bool(reasons)) if x in moving]
    why = [next(filter(None, column), None) for column in zip(*rows, strict=True)]
    found = [null if null is not None or not text else NullType(text)()
             for null, text in zip(poisoned, why, strict=bool(rows))]  # fmt: skip
    return found or poisoned


def _disconnected(y: Variable, action: str, instead: str) -> Any:
    message = (
        f"Rop: {y} of type {y.type} does not depend on wrt (or only through shapes, "
        "positions, orders or disconnected_grad); pass disconnected_outputs='ignore' to get zeros"
    )
    if action == "raise":
        raise DisconnectedInputError(message)
    if action == "warn":
        warnings.warn(message, stacklevel=3)
    if instead == "None":
        return None
    return zeros_for(y) if instead == "zero" else DisconnectedType()()
