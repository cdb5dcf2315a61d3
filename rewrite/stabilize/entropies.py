"""Entropies of softmax weights, sum(p log(p)) for p = softmax(x), and divergences of two of them,
sum(p log(p / q)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.ops.nnet.softmax import LogSoftmax, LogSumExp, Softmax
from symcomp.ops.nnet.weighted_mean import WeightedMean
from symcomp.ops.reductions.reduce import Reduce
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.means import unless_empty
from symcomp.rewrite.views import (
    SUMS,
    Product,
    Sum,
    as_product,
    as_sum,
    rearranged,
    scaled,
    sum_of,
    through_views,
)


@rule(Reduce, why="the derivative is a small difference to the mean, which is known exactly")
def entropy_of_softmax(node: Apply, graph: Any) -> Any:
    """sum(c softmax(x) log_softmax(x)) -> c negative_entropy(x), also over more axes;
    sum(xlogx(softmax(x))) likewise
    """
    op, out = node.op, node.outputs[0]
    if op.reduction.name != "sum" or op.acc_dtype:
        return None
    p = as_product(node.inputs[0])
    weights = [f for f in p.factors if _weighs(f)]
    if len(weights) != 1 or set(p.factors.values()) != {1.0}:
        return None
    softmax, entire = _weights_of(weights[0])
    (x,), axis = softmax.inputs, softmax.op.axis
    others = [computed_by(f, LogSoftmax) for f in p.factors if f is not weights[0]]
    if len(others) != (not entire) or axis not in op.axes or x.dtype != out.dtype:
        return None
    if any(n is None or n.op.axis != axis or n.inputs[0] is not x for n in others):
        return None
    return scaled(p.coefficient, _summed(node, NegativeEntropy((axis,))(x), axis))


def _weighs(x: Any) -> bool:
    return _weights_of(x)[0] is not None


def _weights_of(x: Any) -> tuple[Any, bool]:
    """Return (node of the softmax, whether with its logarithm) if ``x`` is a softmax or its
    xlogx.
    """
    inner = elementwise(x, "xlogx")
    return computed_by(x if inner is None else inner.inputs[0], Softmax), inner is not None


@rule(*SUMS, why="both may be large where their difference, and its derivative, are small")
def entropy_of_mean(node: Apply, graph: Any) -> Any:
    """sum(x exp(x)) / sum(exp(x)) - log(sum(exp(x))) -> negative_entropy(x);
    sum(x softmax(x)) - logsumexp(x) likewise
    """
    for pair in _opposites(node, LogSumExp):
        if _is_mean(pair.other, pair.node):
            (x,), axes = pair.node.inputs, pair.node.op.axes
            empty = math.inf if computed_by(pair.other, Reduce) else math.nan
            return pair.replaced(unless_empty(NegativeEntropy(axes)(x), x, axes, empty), -pair.c)
    return None


class _Opposites(NamedTuple):
    """Two terms of a sum, seen through the same views, with opposite coefficients.

    Attributes
    ----------
    node : Apply
        Of the first term, whose coefficient is ``c``.
    other : Variable
        The second term, within its views.
    rest : Sum
        The sum without them.
    out : Variable
        The sum.
    """

    node: Apply
    other: Any
    c: float
    views: Any
    rest: Sum
    out: Any

    def replaced(self, z: Any, k: float) -> Any:
        """Return the sum with k z in place of both."""
        rest = self.rest.plus(Sum(0.0, {rearranged(z, self.views): k}))
        return sum_of(rest.constant, rest.pairs(), self.out)


def _opposites(node: Apply, kind: type[Op]) -> Iterator[_Opposites]:
    """Yield the terms that an op of this class computes, each with every one of the opposite
    coefficient.
    """
    (out,) = node.outputs
    s = as_sum(out)
    for term, c in s.terms.items():
        if _is_elementwise(term):
            continue
        inner, views = through_views(term)
        found = computed_by(inner, kind)
        if found is None:
            continue
        for second, k in s.pairs():
            other, others = through_views(second)
            if k == -c and [v.op for v in others] == [v.op for v in views]:
                rest = s.plus(Sum(0.0, {term: -c, second: -k}))
                yield _Opposites(found, other, c, views, rest, out)


def _is_elementwise(x: Any) -> bool:
    return x.owner is None or type(x.owner.op) is Elemwise


def _is_mean(x: Any, logarithm: Apply) -> bool:
    """Tell whether ``x`` is the mean of the exponents of ``logarithm``, weighted by exponentials.
    """
    (z,), axes = logarithm.inputs, logarithm.op.axes
    if (mean := computed_by(x, WeightedMean)) is not None:
        return bool(mean.op.axes == axes and all(y is z for y in mean.inputs))
    total = computed_by(x, Reduce)
    if total is None or total.op.reduction.name != "sum" or total.op.axes != axes:
        return False
    p = as_product(total.inputs[0])
    softmaxes = [n for f in p.factors if (n := computed_by(f, Softmax)) is not None]
    powers = p.factors if len(softmaxes) == 1 else {}
    if p.coefficient != 1 or set(powers.values()) != {1.0} or len(powers) != 2 or z not in powers:
        return False
    return bool(softmaxes[0].inputs[0] is z and axes == (softmaxes[0].op.axis,))


@rule(Reduce, why="the terms of the sum nearly cancel where the weights are nearly equal")
def divergence_of_softmaxes(node: Apply, graph: Any) -> Any:
    """sum(softmax(x) (log_softmax(x) - log_softmax(y))) -> divergence(x, y), also over more axes"""
    op, out = node.op, node.outputs[0]
    if op.reduction.name != "sum" or op.acc_dtype:
        return None
    p = as_product(node.inputs[0])
    for f in p.factors:
        softmax = computed_by(f, Softmax)
        if softmax is None or p.factors != dict.fromkeys(p.factors, 1.0) or len(p.factors) != 2:
            continue
        (other,) = p.without(f).factors
        (x,), axis = softmax.inputs, softmax.op.axis
        ratio = _log_ratio(other, axis)
        for own, y, c in ((*ratio, 1.0), (*ratio[::-1], -1.0)) if ratio and axis in op.axes else ():
            if own is x and _alike(x, y, out):
                found = _summed(node, Divergence((axis,))(x, y), axis)
                return scaled(c * p.coefficient, found)
    return None


def _log_ratio(z: Any, axis: int) -> tuple[Any, Any] | None:
    """Return (x, y) if ``z`` is log_softmax(x) - log_softmax(y) along the axis."""
    s = as_sum(z)
    terms = sorted(s.pairs(), key=lambda pair: -pair[1])
    if s.constant or [c for _, c in terms] != [1.0, -1.0]:
        return None
    logs = [n for t, _ in terms if (n := computed_by(t, LogSoftmax)) is not None]
    if len(logs) != 2 or any(n.op.axis != axis for n in logs):
        return None
    return logs[0].inputs[0], logs[1].inputs[0]


def _alike(x: Any, y: Any, out: Any) -> bool:
    patterns: list[Any] = [v.type.broadcastable for v in (x, y)]
    return bool(x.dtype == y.dtype == out.dtype) and patterns[0] == patterns[1]


def _summed(node: Apply, z: Any, axis: int) -> Any:
    """Sum ``z``, from which one axis is gone, over the other axes that the node reduces."""
    left = tuple(a - (a > axis) for a in node.op.axes if a != axis)
    return Reduce(node.op.reduction, left)(z) if left else z


@rule(*SUMS, why="the sums nearly cancel where the weights are nearly equal")
def divergence_of_entropies(node: Apply, graph: Any) -> Any:
    """negative_entropy(x) - sum(softmax(x) log_softmax(y)) -> divergence(x, y)"""
    for pair in _opposites(node, NegativeEntropy):
        y = _logits_beside(pair.other, pair.node)
        if y is not None:
            return pair.replaced(Divergence(pair.node.op.axes)(pair.node.inputs[0], y), pair.c)
    return None


def _logits_beside(cross: Any, entropy: Any) -> Any:
    """Return y if ``cross`` is sum(softmax(x) log_softmax(y)) for the x of an entropy."""
    total, (x,), axes = computed_by(cross, Reduce), entropy.inputs, entropy.op.axes
    if total is None or total.op.reduction.name != "sum" or total.op.axes != axes:
        return None
    p = as_product(total.inputs[0])
    weights = [n for f in p.factors if (n := computed_by(f, Softmax)) is not None]
    logs = [n for f in p.factors if (n := computed_by(f, LogSoftmax)) is not None]
    if len(weights) != 1 or len(logs) != 1 or p != Product(1.0, dict.fromkeys(p.factors, 1.0)):
        return None
    (y,) = logs[0].inputs
    same = weights[0].inputs[0] is x and (weights[0].op.axis,) == (logs[0].op.axis,) == axes
    return y if same and len(p.factors) == 2 and _alike(x, y, cross) else None


ENTROPY_RULES = RuleSet(
    [entropy_of_softmax, entropy_of_mean, divergence_of_softmaxes, divergence_of_entropies]
)
