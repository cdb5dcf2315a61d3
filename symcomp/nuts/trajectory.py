"""One transition of the No-U-Turn sampler: a trajectory that doubles until it turns back.

Hoffman and Gelman (2014), "The No-U-Turn sampler"; Betancourt (2017), "A conceptual introduction to
Hamiltonian Monte Carlo": states are drawn from a trajectory with weights exp(-energy), the newer
half of it preferred, and a trajectory turns when the sum of its momenta points against the velocity
at one of its ends. A subtree of 2^k leaves is not built by recursion but leaf after leaf (Phan,
Pradhan and Jankowiak, 2019, "Composable effects for flexible and accelerated probabilistic
programming"): momenta at the first leaves of the subtrees that are not complete are kept, one row
for each. So a transition is one loop, a step of which is one leapfrog step.

Momenta are in units in which their covariance is the identity: times ``scale``, the square root of
the diagonal of the inverse mass matrix, they are velocities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.random.continuous import standard_normal, standard_uniform
from symcomp.scan.invariants import invariants_of, surroundings
from symcomp.scan.layout import Layout
from symcomp.scan.loop import filled, leaves
from symcomp.scan.op import Scan

#: From positions to the log density there, a scalar, and its gradient.
LogDensity = Callable[[Any], tuple[Any, Any]]

# A step that changes the energy by more has left the trajectory.
MOST_ENERGY_ERROR = 1000.0


class Point(NamedTuple):
    """A point of a trajectory."""

    position: Any
    momentum: Any
    gradient: Any


class Proposal(NamedTuple):
    """A point that may be the next of the chain."""

    position: Any
    gradient: Any
    logp: Any
    energy: Any


class Subtree(NamedTuple):
    """Weights and momenta of a trajectory, or of the half of it that is being built.

    ``log_weight``: logarithm of the sum of weights. ``momenta``: sum of the momenta of the points.
    """

    proposal: Proposal
    log_weight: Any
    momenta: Any


class Rows(NamedTuple):
    """State of the incomplete subtrees, a row for each depth, and one to write to in vain.

    ``first``, ``before``: momenta of their first leaves, and of the leaves before these. ``sums``:
    sums of the momenta before. ``of_first``: ``sums`` times ``first``. ``of_before``: ``before``
    times ``before - sums``, unknown for the first leaf of all, where nothing reads it. ``across``:
    whether the subtree that they are the second half of turns with their first leaf as its last.
    """

    first: Any
    before: Any
    sums: Any
    of_first: Any
    of_before: Any
    across: Any


class Trajectory(NamedTuple):
    """The state of the loop over leapfrog steps.

    ``before``: the last momentum times itself, less the last times the sum of all in its half.
    """

    left: Point
    right: Point
    end: Point
    whole: Subtree
    half: Subtree
    first: Any
    before: Any
    rows: Rows
    depth: Any
    leaf: Any
    size: Any
    forward: Any
    accept: Any
    worst: Any
    diverging: Any
    turning: Any
    random: Any


class Transition(NamedTuple):
    """The result of a transition: the next point of the chain, and statistics of the trajectory."""

    proposal: Proposal
    depth: Any
    size: Any
    accept: Any
    worst: Any
    energy_error: Any
    diverging: Any
    turning: Any


def repeat(step: Callable[[Any], tuple[Any, Any]], begin: Any, most: Any, name: str) -> Any:
    """Repeat ``state, done = step(state)`` until it is done, and return the last state.

    Unlike ``symcomp.loop`` it keeps no states but the last, so it has no gradient.
    """
    starts = leaves(begin)
    inner = [x.type(x.name) for x in starts]
    invariants = invariants_of([most, *starts])
    with invariants.around_step():
        state, done = step(filled(begin, inner))
    outputs = [
        x if x.type == y.type else T.specify_shape(x, y.type.shape)
        for x, y in zip(leaves(state), inner, strict=True)
    ]
    captured = surroundings([*outputs, done], inner, invariants)
    body = ClosedGraph([*inner, *captured], [*outputs, done])
    loop = Scan(body, Layout((), len(inner), 0, 0, until=True), name=name)
    return filled(begin, loop(most, *starts, *captured)[: len(inner)])


def transition(
    density: LogDensity,
    start: Proposal,
    variance: Any,
    step_size: Any,
    most_depth: Any,
    rows: int,
    random: Any,
) -> tuple[Any, Transition]:
    """Draw the next point of a chain.

    Parameters
    ----------
    density : callable
    start : Proposal
        The present point; its energy is not read.
    variance : vector
        The inverse of the diagonal mass matrix.
    step_size : scalar
    most_depth : int64 scalar
        A trajectory has at most ``2 ** most_depth - 1`` steps.
    rows : int
        At least ``most_depth``.
    random : random state

    Returns
    -------
    random, Transition
    """
    random, momentum = standard_normal(random, size=[start.position.shape[0]])
    scale = T.sqrt(variance)
    energy = 0.5 * T.sum(momentum * momentum) - start.logp
    random, u = standard_uniform(random, size=[1])
    begin = _begin(start, momentum, energy, T.lt(u[0], 0.5), rows, random)

    def step(now: Trajectory) -> tuple[Trajectory, Any]:
        return _leapfrog(density, now, scale, step_size, energy, most_depth)

    end = repeat(step, begin, T.left_shift(T.constant(1), most_depth), "trajectory")
    chosen = end.whole.proposal
    found = Transition(
        chosen, end.depth, end.size, end.accept / T.cast(end.size, "float64"), end.worst,
        chosen.energy - energy, end.diverging, end.turning,
    )  # fmt: skip
    return end.random, found


def _begin(
    start: Proposal, momentum: Any, energy: Any, forward: Any, rows: int, random: Any
) -> Trajectory:
    """Return the trajectory of one point."""
    point = Point(start.position, momentum, start.gradient)
    proposal = Proposal(start.position, start.gradient, start.logp, energy)
    whole = Subtree(proposal, T.constant(0.0), momentum)
    nothing = T.zeros_like(momentum)
    half = Subtree(proposal, T.constant(-np.inf), nothing)
    matrix, vector = T.zeros([rows + 1, momentum.shape[0]]), T.zeros([rows + 1])
    blank = Rows(matrix, matrix, matrix, vector, vector, T.zeros([rows + 1], dtype="bool"))
    count, false = T.constant(np.int64(0)), T.constant(False)
    return Trajectory(
        point, point, point, whole, half, nothing, T.constant(0.0), blank,
        count, count, count,
        forward, T.constant(0.0), T.constant(0.0), false, false, random,
    )  # fmt: skip


def _leapfrog(
    density: LogDensity, now: Trajectory, scale: Any, step_size: Any, start: Any, most_depth: Any
) -> tuple[Trajectory, Any]:
    """Add one leaf; if it completes the new half of the trajectory, double the trajectory."""
    random, u = standard_uniform(now.random, size=[3])
    length = T.switch(now.forward, step_size, -step_size) * scale
    middle = now.end.momentum + 0.5 * length * now.end.gradient
    position = now.end.position + length * middle
    logp, gradient = density(position)
    momentum = middle + 0.5 * length * gradient
    end = Point(position, momentum, gradient)
    square = T.sum(momentum * momentum)
    energy = 0.5 * square - logp
    error = T.switch(T.isnan(energy), np.inf, energy - start)
    diverging = T.ge(error, MOST_ENERGY_ERROR)
    leaf = Proposal(position, gradient, logp, energy)
    half = _with_leaf(now.half, leaf, momentum, -error, u[0])
    first = T.switch(T.eq(now.leaf, 0), momentum, now.first)
    rows, turning, along = _rows_and_turning(now, momentum, square)
    stopped = T.or_(diverging, turning)
    complete = T.and_(T.eq(now.leaf + 1, T.left_shift(T.constant(1), now.depth)), T.invert(stopped))
    next_ = now._replace(
        first=first, before=square - along, rows=rows, size=now.size + 1, end=end, half=half,
        random=random, accept=now.accept + T.exp(T.minimum(-error, 0.0)),
        worst=T.switch(T.gt(T.abs_(error), T.abs_(now.worst)), error, now.worst),
        diverging=diverging,
    )  # fmt: skip
    doubled = _doubled(next_, u[1], u[2])
    merged = _branched(complete, doubled, next_._replace(leaf=now.leaf + 1, turning=turning))
    # The depth counts the last doubling also if it was not completed.
    merged = merged._replace(depth=merged.depth + T.cast(stopped, "int64"))
    done = T.or_(T.or_(stopped, merged.turning), T.ge(merged.depth, most_depth))
    return merged, done


def _with_leaf(half: Subtree, leaf: Proposal, momentum: Any, log_weight: Any, u: Any) -> Subtree:
    """Return the new half with one more point, which becomes its proposal with a probability given
    by its weight.
    """
    weight = T.logaddexp(half.log_weight, log_weight)
    taken = T.lt(T.log(u), log_weight - weight)
    return Subtree(_chosen(taken, leaf, half.proposal), weight, half.momenta + momentum)


def _doubled(now: Trajectory, u: Any, v: Any) -> Trajectory:
    """Return the trajectory joined with its new half, and the start of the next half."""
    whole, half, forward = now.whole, now.half, now.forward
    taken = T.lt(T.log(u), half.log_weight - whole.log_weight)
    momenta = whole.momenta + half.momenta
    tree = Subtree(
        _chosen(taken, half.proposal, whole.proposal),
        T.logaddexp(whole.log_weight, half.log_weight),
        momenta,
    )
    near = T.switch(forward, now.right.momentum, now.left.momentum)
    far = T.switch(forward, now.left.momentum, now.right.momentum)
    last = now.end.momentum
    # Test the whole, and each half together with the first point of the other half.
    turning = T.or_(
        _turns(momenta, far, last),
        T.or_(
            _turns(whole.momenta + now.first, far, now.first),
            _turns(half.momenta + near, near, last),
        ),
    )
    left = _chosen(forward, now.left, now.end)
    right = _chosen(forward, now.end, now.right)
    onward = T.lt(v, 0.5)
    return now._replace(
        left=left, right=right, end=_chosen(onward, right, left), whole=tree, forward=onward,
        half=Subtree(half.proposal, T.constant(-np.inf), T.zeros_like(half.momenta)),
        depth=now.depth + 1, leaf=T.zeros_like(now.leaf), turning=turning,
    )  # fmt: skip


# -- turning back


def _turns(momenta: Any, one: Any, other: Any) -> Any:
    """Tell whether a sum of momenta points against one of those at the two ends."""
    return T.or_(T.le(T.sum(momenta * one), 0.0), T.le(T.sum(momenta * other), 0.0))


def _rows_and_turning(now: Trajectory, momentum: Any, square: Any) -> tuple[Rows, Any, Any]:
    """Return the rows after a leaf with this momentum, whether a subtree that it completes makes a
    U-turn, and the momentum times the sum of all in this half.

    Row j is that of subtrees whose first leaves have numbers with j ones before the last digit. An
    even leaf begins subtrees, an odd one completes as many as its number has ones at the end; the
    largest of them began in the lowest row.

    A subtree turns if the sum of its momenta points against its first or its last one. The sum is
    that of all leaves up to now without that before the subtree: so all rows are tested by products
    of a matrix and a vector.
    """
    leaf, rows, sums = now.leaf, now.rows, now.half.momenta
    total = sums + momentum
    with_all = T.sum(total * momentum)
    even = T.eq(leaf % 2, 0)
    number = _numbers(rows.of_first)
    top = _ones(T.right_shift(leaf, 1), rows.of_first)
    complete = _ones(T.bitwise_and(leaf, T.invert(leaf + 1)), rows.of_first)
    begins = T.and_(T.gt(number, top - complete), T.le(number, top))
    along = with_all - T.dot(rows.sums, momentum)
    turns = T.or_(T.le(T.dot(rows.first, total) - rows.of_first, 0.0), T.le(along, 0.0))
    # Each half is checked with the first point of the other: the second begins one row higher.
    with_before = T.or_(
        T.le(T.dot(rows.before, total) + rows.of_before, 0.0),
        T.le(T.dot(rows.before, momentum) + along, 0.0),
    )
    across = T.and_(begins[:-1], T.and_(begins[1:], T.or_(rows.across, with_before)[1:]))
    turning = T.and_(T.invert(even), T.or_(T.any(T.and_(begins, turns)), T.any(across)))
    at = T.dimshuffle(T.switch(even, top, rows.of_first.type.shape[0] - 1), "x")
    lower = T.dimshuffle(turns[T.maximum(top - 1, 0)], "x")
    new = Rows(
        _set_row(rows.first, at, momentum),
        _set_row(rows.before, at, now.end.momentum),
        _set_row(rows.sums, at, sums),
        T.set_subtensor(rows.of_first[at], T.dimshuffle(with_all - square, "x")),
        T.set_subtensor(rows.of_before[at], T.dimshuffle(now.before, "x")),
        T.set_subtensor(rows.across[at], lower),
    )
    return new, turning, with_all


def _set_row(rows: Any, at: Any, row: Any) -> Any:
    return T.set_subtensor(rows[at], T.dimshuffle(row, "x", 0))


def _numbers(rows: Any) -> Any:
    """Return 0, 1, ... for each row."""
    return T.constant(np.arange(rows.type.shape[0]))


def _ones(number: Any, rows: Any) -> Any:
    """Return the number of ones in the binary form of a number."""
    return T.sum(T.bitwise_and(T.right_shift(number, _numbers(rows)), 1))


def _branched(condition: Any, x: Any, y: Any) -> Any:
    """Compute ``x`` or ``y``, named tuples of equal structure; only parts that differ."""
    pairs = list(zip(leaves(x), leaves(y), strict=True))
    differ = [(a, b) for a, b in pairs if a is not b]
    found = iter(ifelse(condition, [a for a, _ in differ], [b for _, b in differ]))
    return filled(x, [a if a is b else next(found) for a, b in pairs])


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    """Select ``x`` or ``y``, named tuples of equal structure."""
    if not isinstance(x, tuple):
        return x if x is y else T.switch(condition, x, y)
    parts = [_chosen(condition, a, b) for a, b in zip(x, y, strict=True)]
    return type(x)(*parts)
