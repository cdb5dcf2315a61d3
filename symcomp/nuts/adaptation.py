"""Step sizes and mass matrices that adapt while a chain is tuned, as PyMC's do by default."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import symcomp.tensor as T


class StepSize(NamedTuple):
    """Nesterov's dual averaging (Hoffman and Gelman, 2014, section 3.2).

    ``log_step`` is used while tuning, ``log_average`` after; ``error`` is the average of how far
    the acceptance was from its target.
    """

    log_step: Any
    log_average: Any
    error: Any
    count: Any
    log_start: Any


# gamma, kappa and t_0 in the paper
SHRINKAGE, FORGETTING, EARLY = 0.05, 0.75, 10.0


def first_step_size(start: float) -> StepSize:
    """Return the state before the first transition."""
    log = np.log(np.float64(start))
    zero, one, goal = np.float64(0), np.float64(1), np.log(10 * np.float64(start))
    return StepSize(log, log, zero, one, goal)


def adapted_step_size(now: StepSize, accept: Any, target: Any, tuning: Any) -> StepSize:
    """Return the state after a transition with this mean acceptance; unchanged if ``tuning`` is
    false.
    """
    weight = 1.0 / (now.count + EARLY)
    error = (1.0 - weight) * now.error + weight * (target - accept)
    log_step = now.log_start - error * T.sqrt(now.count) / SHRINKAGE
    share = now.count**-FORGETTING
    log_average = share * log_step + (1.0 - share) * now.log_average
    new = now._replace(
        log_step=log_step, log_average=log_average, error=error, count=now.count + 1.0
    )
    return StepSize(*[T.switch(tuning, a, b) for a, b in zip(new, now, strict=True)])


class RunningVariance(NamedTuple):
    """A running mean and sum of squares (Welford, 1962)."""

    mean: Any
    squares: Any
    count: Any


class MassMatrix(NamedTuple):
    """The variances of the draws of two windows, the older of which is used.

    ``variance`` is what the trajectories use: the inverse of the diagonal mass matrix.
    """

    variance: Any
    used: RunningVariance
    next: RunningVariance
    count: Any


#: Draws of a window; the first draws are not counted.
WINDOW, DISCARDED = 101, 50
FIRST_WEIGHT = 10.0


def first_mass_matrix(mean: np.ndarray) -> MassMatrix:
    """Return the state before the first transition: variances of 1, with the weight of ten draws.
    """
    ones, zeros = np.ones_like(mean), np.zeros_like(mean)
    used = RunningVariance(mean.copy(), ones * FIRST_WEIGHT, np.float64(FIRST_WEIGHT))
    return MassMatrix(ones, used, RunningVariance(zeros, zeros, np.float64(0)), np.int64(0))


def adapted_mass_matrix(now: MassMatrix, draw: Any, tuning: Any) -> MassMatrix:
    """Return the state after a draw; unchanged if ``tuning`` is false."""
    counted = T.and_(tuning, T.gt(now.count, DISCARDED))
    used, following = (_with_draw(v, draw, counted) for v in (now.used, now.next))
    reads = T.and_(tuning, T.gt(now.count, WINDOW))
    # Avoid 0 / 0: the quotient of an empty window is computed but not selected.
    variance = T.switch(reads, used.squares / T.maximum(used.count, 1.0), now.variance)
    ends = T.and_(tuning, T.and_(T.gt(now.count, 0), T.eq(now.count % WINDOW, 0)))
    used = RunningVariance(*(T.switch(ends, a, b) for a, b in zip(following, used, strict=True)))
    empty = (T.zeros_like(v) for v in following)
    following = RunningVariance(
        *(T.switch(ends, a, b) for a, b in zip(empty, following, strict=True))
    )
    return MassMatrix(variance, used, following, now.count + T.cast(tuning, "int64"))


def _with_draw(now: RunningVariance, draw: Any, counted: Any) -> RunningVariance:
    count = now.count + T.cast(counted, "float64")
    gap = draw - now.mean
    mean = now.mean + T.switch(counted, gap / T.maximum(count, 1.0), 0.0)
    return RunningVariance(mean, now.squares + T.switch(counted, gap * (draw - mean), 0.0), count)
