"""The entropy of softmax weights, whose derivative is small where the weights are nearly even."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.fields import Axes
from symcomp.core.record import record
from symcomp.ops.nnet.softmax import (
    AxisReduction,
    SubtractWeightedMean,
    even_weights,
    log_total_of_lines,
)
from symcomp.ops.reductions.functions import sum as sum_


@record
class NegativeEntropy(AxisReduction):
    """z = sum_i p_i log(p_i) over ``axes``, where p_i = exp(x_i) / sum_j exp(x_j): the sum of
    two negative terms, the mean of x_i - max x and minus the logarithm of sum_j exp(x_j - max x);
    0 if there are no elements.
    """

    axes: Axes

    def perform(self, x: Any) -> Any:
        (lines,) = self._lines(x)
        with np.errstate(all="ignore"):
            _, d, terms, log_total = log_total_of_lines(lines)
            mean = (terms * d).sum(axis=-1) / terms.sum(axis=-1)
            z = mean - log_total[..., 0] if lines.shape[-1] else np.zeros(lines.shape[:-1])
            return np.asarray(z, x.dtype)

    def _slope(self, x: Any) -> Any:
        """Return the derivative by x: the weights times the deviations of x from its mean."""
        w = even_weights(x, self.axes)
        return w * SubtractWeightedMean(self.axes)(x, w)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [self._keep(gz, x.ndim) * self._slope(x)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [sum_(self._slope(x) * dx, axis=self.axes)]
