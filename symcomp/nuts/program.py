"""The compiled sampler: a loop over transitions, each a loop over leapfrog steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import symcomp.tensor as T
from symcomp.compile.callable import Function
from symcomp.compile.function import function
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.nuts.adaptation import (
    MassMatrix,
    StepSize,
    adapted_mass_matrix,
    adapted_step_size,
    first_mass_matrix,
    first_step_size,
)
from symcomp.nuts.trajectory import LogDensity, Proposal, transition
from symcomp.ops.random.state import state as random_state
from symcomp.ops.random.state import words_of
from symcomp.scan.loop import filled, leaves
from symcomp.scan_module import loop

#: While tuning, the depth of the first trajectories has a lower limit.
EARLY_DEPTH, EARLY_DRAWS = 8, 200

#: Statistics of a transition, in the order in which the program gives them: PyMC's names.
STATISTICS = (
    "depth", "tree_size", "mean_tree_accept", "max_energy_error", "energy_error", "diverging",
    "reached_max_treedepth", "energy", "model_logp", "step_size", "step_size_bar",
)  # fmt: skip


class Chain(NamedTuple):
    """A chain between two calls of the program; its leaves are arrays."""

    point: Proposal
    step_size: StepSize
    mass: MassMatrix
    draws: Any
    random: Any


@record(frozen=False)
class Sampler:
    """A log density with its sampler, compiled.

    Attributes
    ----------
    density : Function
        Maps a position to the log density and its gradient there.
    program : Function
        Transitions of one chain; called from several threads at once, it samples several chains.
    size : int
        The length of positions.
    """

    density: Function
    program: Function
    size: int

    def begin(self, position: Any, random: Any) -> Chain:
        """Return a chain that is at ``position``.

        Parameters
        ----------
        position : array_like
            With a finite log density.
        random : numpy.random.Generator

        Raises
        ------
        ValueError
            If the log density or its gradient is not finite there.
        """
        position = np.array(position, np.float64)
        logp, gradient = self.density(position)
        if not (np.isfinite(logp) and np.isfinite(gradient).all()):
            raise ValueError(
                f"nuts: the log density is {logp} at the start, where its gradient has "
                f"{np.count_nonzero(~np.isfinite(gradient))} entries that are not finite: start "
                "elsewhere"
            )
        point = Proposal(position, gradient, logp, np.asarray(0.0))
        start = 0.25 / self.size**0.25
        return Chain(
            point, first_step_size(start), first_mass_matrix(gradient), np.int64(0),
            words_of(random),
        )  # fmt: skip

    def advance(
        self, chain: Chain, count: int, tuning: bool, target: float = 0.8, most_depth: int = 10
    ) -> tuple[Chain, np.ndarray, dict[str, np.ndarray]]:
        """Draw ``count`` times.

        Parameters
        ----------
        chain : Chain
        count : int
        tuning : bool
            If true, step size and mass matrix adapt.
        target : float
            The mean acceptance that the step size aims at.
        most_depth : int
            The most doublings of a trajectory, up to the number that the sampler was compiled for.

        Returns
        -------
        chain, draws, statistics
            ``draws``: (count, size). ``statistics``: one array for each name of ``STATISTICS``.
        """
        given = [np.asarray(v) for v in leaves(chain)]
        ends = [np.asarray(v) for v in (np.int64(count), bool(tuning), float(target))]
        *found, draws = self.program(*given, *ends, np.asarray(np.int64(most_depth)))
        statistics = dict(zip(STATISTICS, found[len(given) :], strict=True))
        return filled(chain, found[: len(given)]), draws, statistics


def compile_sampler(density: LogDensity, size: int, most_depth: int = 10) -> Sampler:
    """Compile the No-U-Turn sampler of a log density.

    Parameters
    ----------
    density : callable
        Maps a float64 vector to the log density, a scalar, and its gradient.
    size : int
        The length of the vector.
    most_depth : int
        The most doublings of a trajectory.

    Returns
    -------
    Sampler

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> from symcomp.nuts import compile_sampler
    >>> def density(x):
    ...     logp = -0.5 * (x ** 2).sum()
    ...     return logp, symcomp.grad(logp, x)
    >>> sampler = compile_sampler(density, 2)
    >>> chain = sampler.begin([1.0, 1.0], np.random.default_rng(0))
    >>> chain, _, _ = sampler.advance(chain, 100, tuning=True)
    >>> chain, draws, statistics = sampler.advance(chain, 200, tuning=False)
    >>> draws.shape, bool(abs(draws.mean()) < 0.5), int(statistics["diverging"].sum())
    ((200, 2), True, 0)
    """
    vector = TensorType("float64", (size,))
    x = vector("position")
    evaluated = function([x], list(density(x)), name="log density", trust_input=True)
    model = _symbolic_chain(size)
    count, depth = (TensorType("int64", ())(name) for name in ("count", "most_depth"))
    tuning = TensorType("bool", ())("tuning")
    target = TensorType("float64", ())("target_accept")

    def step(chain: Chain, _: Any) -> Any:
        return _advanced(density, chain, tuning, target, depth, most_depth)

    end, (draws, statistics) = loop(step, model, length=count, name="transitions")
    program = function(
        [*leaves(model), count, tuning, target, depth], [*leaves(end), *statistics, draws],
        name="nuts", trust_input=True,
    )  # fmt: skip
    return Sampler(evaluated, program, size)


def _symbolic_chain(size: int) -> Chain:
    """Return a chain of variables."""
    point = np.zeros(size)
    nothing = np.float64(0)
    model = Chain(
        Proposal(point, point, nothing, nothing), first_step_size(1.0), first_mass_matrix(point),
        np.int64(0), None,
    )  # fmt: skip
    kinds = [np.asarray(v) for v in leaves(model)]
    variables = [TensorType(v.dtype, v.shape)() for v in kinds]
    chain: Chain = filled(model, variables)
    return chain._replace(random=random_state("random"))


def _advanced(
    density: LogDensity, chain: Chain, tuning: Any, target: Any, depth: Any, rows: int
) -> Any:
    """Return the chain after a transition, and the values to record of it."""
    log_step = T.switch(tuning, chain.step_size.log_step, chain.step_size.log_average)
    early = T.and_(tuning, T.lt(chain.draws, EARLY_DRAWS))
    depth = T.minimum(depth, rows)
    most_depth = T.switch(early, T.minimum(depth, EARLY_DEPTH), depth)
    random, found = transition(
        density, chain.point, chain.mass.variance, T.exp(log_step), most_depth, rows, chain.random
    )
    step_size = adapted_step_size(chain.step_size, found.accept, target, tuning)
    counted = T.and_(tuning, T.invert(found.diverging))
    mass = adapted_mass_matrix(
        chain.mass, found.proposal.position, found.proposal.gradient, counted
    )
    stopped = T.or_(found.diverging, found.turning)
    statistics = [
        found.depth, found.size, found.accept, found.worst, found.energy_error, found.diverging,
        T.and_(T.invert(stopped), T.invert(tuning)), found.proposal.energy, found.proposal.logp,
        T.exp(step_size.log_step), T.exp(step_size.log_average),
    ]  # fmt: skip
    new = Chain(found.proposal, step_size, mass, chain.draws + 1, random)
    return new, (found.proposal.position, statistics)
