"""The entropy of softmax weights, and the divergence of two: both, or their derivatives, are small
where the weights are nearly equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from symcomp.core.fields import Axes
from symcomp.core.record import record
from symcomp.ops.elementwise.scalar_logic import eq, lt, switch
from symcomp.ops.elementwise.scalar_math import expm1
from symcomp.ops.nnet.softmax import (
    AxisReduction,
    SubtractWeightedMean,
    centred,
    even_weights,
    log_total_of_lines,
)
from symcomp.ops.shapes.axes import expand_dims

# The Maclaurin series of (exp(-h) - 1 + h) / h^2, to full precision for |h| <= NEAR.
NEAR = 0.5
EXCESS_SERIES = tuple((-1) ** k / math.factorial(k + 2) for k in range(15))


@record
class NegativeEntropy(AxisReduction):
    """z = sum_i p_i log(p_i) over ``axes``, where p_i = exp(x_i) / sum_j exp(x_j): the sum of
    two negative terms, the mean of x_i - max x and minus the logarithm of sum_j exp(x_j - max x);
    0 if there are no elements. Elements without weight, as x_i = -inf, do not count.
    """

    axes: Axes

    def perform(self, x: Any) -> Any:
        (lines,) = self._lines(x)
        with np.errstate(all="ignore"):
            _, d, terms, log_total = log_total_of_lines(lines)
            mean = np.where(d == -np.inf, 0, terms * d).sum(axis=-1) / terms.sum(axis=-1)
            z = mean - log_total[..., 0] if lines.shape[-1] else np.zeros(lines.shape[:-1])
            return np.asarray(z, x.dtype)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        """Return the weights times the deviations of x from its mean."""
        (x,) = inputs
        w = even_weights(x, self.axes)
        return [w * SubtractWeightedMean(self.axes)(switch(eq(w, 0), 0, x), w)]


@record
class Divergence(AxisReduction):
    """z = sum_i p_i log(p_i / q_i) over ``axes``, where p is the softmax of x and q that of y:
    the divergence of Kullback and Leibler, with all digits and never negative where p and q are
    nearly equal; 0 if there are no elements. Elements without weight in both do not count.
    """

    axes: Axes

    n_inputs: ClassVar[int] = 2

    def perform(self, x: Any, y: Any) -> Any:
        lines = self._lines(x, y)
        if not lines[0].shape[-1]:
            return np.zeros(lines[0].shape[:-1], x.dtype)
        with np.errstate(all="ignore"):
            return np.asarray(_divergence(*lines), x.dtype)

    def _slopes(self, inputs: Sequence[Any], z: Any) -> Sequence[Any]:
        """Return p_i (log(p_i / q_i) - z), and q_i - p_i."""
        x, y = inputs
        p, q = (even_weights(v, self.axes) for v in (x, y))
        gap = SubtractWeightedMean(self.axes)(switch(eq(x, y), 0, x - y), p)
        logarithm = gap + expand_dims(z, self.axes)
        return p * gap, switch(lt(logarithm, -0.5), q - p, p * expm1(-logarithm))


def _divergence(x: Any, y: Any) -> Any:
    """Compute log(1 + sum_i p_i f(h_i)), where h_i is x_i - y_i less its mean by the weights p, and
    f(h) = exp(-h) - 1 + h; where that overflows, mean(x - y) - logsumexp(x) + logsumexp(y).
    """
    (top, d, terms, log), (other, _, _, other_log) = map(log_total_of_lines, (x, y))
    total = terms.sum(axis=-1, keepdims=True)
    p, gap = terms / total, np.where(x == y, 0, x - y)
    h = centred(gap, p)
    series = np.polynomial.polynomial.polyval(h, EXCESS_SERIES)
    near, far = p * (series * h * h), np.exp(d - h) / total - p + p * h
    excess = np.where(np.abs(h) > NEAR, far, near).sum(axis=-1)
    apart = (p * gap).sum(axis=-1) - ((top - other) + (log - other_log))[..., 0]
    return np.where(excess == np.inf, apart, np.log1p(excess))
