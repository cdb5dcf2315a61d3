"""Entropies of softmax weights: sum(p log(p)) for p = exp(x) / sum(exp(x)), however written."""

from __future__ import annotations

import math
from typing import Any

from symcomp.core.node import Apply
from symcomp.ops.nnet.entropy import NegativeEntropy
from symcomp.ops.nnet.softmax import LogSoftmax, LogSumExp, Softmax
from symcomp.ops.nnet.weighted_mean import WeightedMean
from symcomp.ops.reductions.reduce import Reduce
from symcomp.rewrite.rule import RuleSet, computed_by, elementwise, rule
from symcomp.rewrite.stabilize.means import unless_empty
from symcomp.rewrite.views import (
    SUMS,
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
    entropy = NegativeEntropy((axis,))(x)
    if len(op.axes) > 1:
        left = tuple(a - (a > axis) for a in op.axes if a != axis)
        entropy = Reduce(op.reduction, left)(entropy)
    return scaled(p.coefficient, entropy)


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
    s = as_sum(node.outputs[0])
    for total, c in s.pairs():
        inner, views = through_views(total)
        logarithm = computed_by(inner, LogSumExp)
        if logarithm is None:
            continue
        for term, k in s.pairs():
            mean, others = through_views(term)
            if k != -c or [v.op for v in others] != [v.op for v in views]:
                continue
            if _is_mean(mean, logarithm):
                (x,), axes = logarithm.inputs, logarithm.op.axes
                empty = math.inf if computed_by(mean, Reduce) else math.nan
                entropy = unless_empty(NegativeEntropy(axes)(x), x, axes, empty)
                found = rearranged(entropy, views)
                rest = s.plus(Sum(0.0, {total: -c, term: -k, found: k}))
                return sum_of(rest.constant, rest.pairs(), node.outputs[0])
    return None


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


ENTROPY_RULES = RuleSet([entropy_of_softmax, entropy_of_mean])
