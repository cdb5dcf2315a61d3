"""Step sizes and mass matrices that adapt while a chain is tuned."""

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


class Moments(NamedTuple):
    """Running means and sums of squared deviations (Welford, 1962) of draws and of the gradients
    there.
    """

    mean: Any
    squares: Any
    slope: Any
    slope_squares: Any
    count: Any


class MassMatrix(NamedTuple):
    """The variances that trajectories use, and the moments that they are estimated from.

    ``variance`` is the inverse of the diagonal mass matrix. ``used`` are the moments of this window
    and the one before, from which it is estimated; ``next`` are those of this window alone, which
    has ``length`` draws.
    """

    variance: Any
    used: Moments
    next: Moments
    length: Any


#: Draws of the first window, and how much longer each window is than the one before.
WINDOW, GROWTH = 10, 1.5
#: An estimate is used from this many draws on.
FEWEST = 3
#: Variances are kept between these.
LEAST, MOST = 1e-40, 1e40


def first_mass_matrix(gradient: np.ndarray) -> MassMatrix:
    """Return the state before the first transition.

    Parameters
    ----------
    gradient : numpy.ndarray
        That of the log density at the start, (n,). The first variances are the inverses of its
        magnitudes, which is what the gradients of a normal distribution at a typical draw tell.

    Returns
    -------
    MassMatrix
    """
    size = np.clip(np.abs(gradient), LEAST, MOST)
    zeros = np.zeros_like(size)

    def empty() -> Moments:
        return Moments(zeros, zeros, zeros, zeros, np.float64(0))

    variance = np.where(gradient == 0, 1.0, 1.0 / size)
    return MassMatrix(variance, empty(), empty(), np.float64(WINDOW))


def adapted_mass_matrix(now: MassMatrix, draw: Any, gradient: Any, counted: Any) -> MassMatrix:
    """Return the state after a draw; unchanged if ``counted`` is false.

    The variance of a parameter is the standard deviation of its draws over that of the gradients
    of the log density there: exact for a normal distribution after a few draws, and in general
    what minimizes the Fisher divergence between the distribution as the trajectories see it and
    a standard normal one (Seyboldt, Carlson and Carpenter, 2026, "Preconditioning Hamiltonian
    Monte Carlo by minimizing Fisher divergence").
    """
    used, following = (_with_draw(v, draw, gradient, counted) for v in (now.used, now.next))
    # Avoid 0 / 0: the quotient of equal draws is computed but not selected.
    quotient = used.squares / T.maximum(used.slope_squares, np.finfo(float).tiny)
    found = T.and_(T.gt(quotient, LEAST**2), T.lt(quotient, MOST**2))
    found = T.and_(found, T.and_(counted, T.ge(used.count, FEWEST)))
    variance = T.switch(found, T.sqrt(quotient), now.variance)
    ends = T.and_(counted, T.ge(following.count, now.length))
    used = Moments(*(T.switch(ends, a, b) for a, b in zip(following, used, strict=True)))
    following = Moments(*(T.switch(ends, T.zeros_like(v), v) for v in following))
    length = T.switch(ends, T.floor(now.length * GROWTH), now.length)
    return MassMatrix(variance, used, following, length)


def _with_draw(now: Moments, draw: Any, gradient: Any, counted: Any) -> Moments:
    count = now.count + T.cast(counted, "float64")
    share = 1.0 / T.maximum(count, 1.0)
    mean, squares = _with_value(now.mean, now.squares, draw, share, counted)
    slope, slope_squares = _with_value(now.slope, now.slope_squares, gradient, share, counted)
    return Moments(mean, squares, slope, slope_squares, count)


def _with_value(mean: Any, squares: Any, value: Any, share: Any, counted: Any) -> tuple[Any, Any]:
    gap = T.switch(counted, value - mean, 0.0)
    new = mean + gap * share
    return new, squares + T.switch(counted, gap * (value - new), 0.0)
