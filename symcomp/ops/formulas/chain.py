"""The chain rule inside one op: derivatives of an op that computes a graph, from its nodes' rules.

The walks over whole graphs, with their checks, are in the layer ``autodiff``, above the ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.special_types import NullType
from symcomp.core.walk import toposort
from symcomp.ops.convert import cast_to


def pull_through(
    inputs: Sequence[Any], outputs: Sequence[Any], output_grads: Sequence[Any]
) -> list[Any]:
    """Compute the L-op of the nodes from ``inputs`` to ``outputs``: a gradient or None for each
    input.
    """
    gradients: dict[Variable, Any] = {}

    def give(x: Any, term: Any) -> None:
        if term is None or dtypes.is_discrete(x.dtype):
            return
        given = gradients.get(x)
        if given is not None and isinstance(given.type, NullType):
            return
        term = _fit(x, term)
        gradients[x] = term if given is None or isinstance(term.type, NullType) else given + term

    for y, gy in zip(outputs, output_grads, strict=True):
        give(y, gy)
    for node in reversed(toposort(outputs, inputs)):
        given = [gradients.get(y) for y in node.outputs]
        null = next((g for g in given if g is not None and isinstance(g.type, NullType)), None)
        if null is not None:
            terms = [null] * len(node.inputs)
        elif any(g is not None for g in given):
            terms = node.op.pullback(node.inputs, node.outputs, given)
        else:
            continue
        for x, term in zip(node.inputs, terms, strict=True):
            give(x, term)
    return [gradients.get(x) for x in inputs]


def push_through(
    inputs: Sequence[Any], outputs: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """Compute the R-op of the nodes from ``inputs`` to ``outputs``: a tangent or None for each
    output.
    """
    known: dict[Variable, Any] = dict(zip(inputs, tangents, strict=True))
    for node in toposort(outputs, inputs):
        given = [known.get(x) for x in node.inputs]
        null = next((t for t in given if t is not None and isinstance(t.type, NullType)), None)
        pushed = [null] * len(node.outputs)
        discrete = all(dtypes.is_discrete(y.dtype) for y in node.outputs)
        if null is None and not discrete and any(t is not None for t in given):
            pushed = node.op.pushforward(node.inputs, node.outputs, given)
        for y, dy in zip(node.outputs, pushed, strict=True):
            known[y] = None if dy is None or dtypes.is_discrete(y.dtype) else _fit(y, dy)
    return [known.get(y) for y in outputs]


def _fit(x: Any, term: Any) -> Any:
    """Return ``term`` in the dtype of ``x``."""
    if isinstance(term.type, NullType):
        return term
    if dtypes.is_complex(term.dtype) and not dtypes.is_complex(x.dtype):
        term = term.real
    return cast_to(term, x.dtype)
