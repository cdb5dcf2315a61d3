"""The No-U-Turn sampler: its trajectories against recursion, its adaptation.

Moments and calibration of its draws are tested in tests/pymc."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.nuts import compile_sampler
from symcomp.nuts.adaptation import (
    adapted_mass_matrix,
    adapted_step_size,
    first_mass_matrix,
    first_step_size,
)
from symcomp.nuts.trajectory import Point, Rows, Subtree, _rows_and_turning
from symcomp.scan.loop import filled, leaves


def with_gradient(logp):
    def density(x):
        value = logp(x)
        return value, symcomp.grad(value, x)

    return density


# -- subtrees


def turns(momenta, one, other):
    return momenta @ one <= 0 or momenta @ other <= 0


def recursion_turns(p):
    """Tell whether any subtree of the leaves with momenta ``p`` turns, checking its halves first.
    """
    if len(p) == 1:
        return False
    middle = len(p) // 2
    left, right = p[:middle], p[middle:]
    if recursion_turns(left) or recursion_turns(right):
        return True
    if turns(p.sum(0), p[0], p[-1]):
        return True
    across = (left.sum(0) + right[0], p[0], right[0]), (left[-1] + right.sum(0), left[-1], p[-1])
    return len(p) > 2 and any(turns(*parts) for parts in across)


def test_leaf_after_leaf_finds_what_recursion_finds():
    """For random momenta, the first leaf at which a subtree is complete that turns."""
    rows, size = 5, 3
    leaf, momentum, before = T.lscalar("leaf"), T.dvector("momentum"), T.dvector("before")
    sums = T.dvector("sums")
    blank = Rows(
        *(np.zeros((rows + 1, size)) for _ in range(3)),
        np.zeros(rows + 1), np.zeros(rows + 1), np.zeros(rows + 1, bool),
    )  # fmt: skip
    kept = Rows(*(T.tensor(dtype=x.dtype, shape=x.shape) for x in blank))
    nothing, rest = T.zeros_like(momentum), T.dscalar("rest")

    class Now:
        end = Point(nothing, before, nothing)
        half = Subtree(None, None, sums)

    Now.leaf, Now.rows, Now.before = leaf, kept, rest
    square = T.sum(momentum * momentum)
    new, turning, along = _rows_and_turning(Now, momentum, square)
    f = symcomp.function(
        [leaf, momentum, before, sums, rest, *kept], [turning, square - along, *new]
    )
    rng, found = np.random.default_rng(2), set()
    for _ in range(200):
        count = 2 ** int(rng.integers(1, 6))
        steps = rng.normal(0.0, rng.choice([0.05, 2.0]), (count + 1, size))
        p = np.cumsum(steps, axis=0) + rng.normal(0.0, 1.0, size)
        # Rows that earlier trajectories have left make no difference.
        state = [rng.normal(size=x.shape).astype(x.dtype) for x in blank]
        total, turned, last = np.zeros(size), False, rng.normal()
        for k in range(count):
            now, last, *state = f(k, p[k + 1], p[k], total, last, *state)
            total = total + p[k + 1]
            assert k % 2 == 1 or not now
            turned = turned or bool(now)
        assert turned == recursion_turns(p[1:])
        found.add((count, turned))
    assert found == {(2**k, turned) for k in range(1, 6) for turned in (True, False)}


# -- adaptation


def test_step_sizes_adapt_as_by_the_formula():
    state = first_step_size(0.5)
    inner = [T.dscalar() for _ in state]
    accept = T.dscalar()
    f = symcomp.function(
        [*inner, accept],
        list(adapted_step_size(type(state)(*inner), accept, 0.8, T.constant(True))),
    )
    error, mean, log_step, log_average = 0.0, np.log(5.0), np.log(0.5), np.log(0.5)
    values = list(state)
    for t, a in enumerate([0.1, 0.9, 0.5, 1.0], start=1):
        values = f(*values, a)
        error = (1 - 1 / (t + 10)) * error + (0.8 - a) / (t + 10)
        log_step = mean - np.sqrt(t) / 0.05 * error
        log_average = t**-0.75 * log_step + (1 - t**-0.75) * log_average
    np.testing.assert_allclose(values[:3], [log_step, log_average, error], rtol=1e-12)


def compiled_mass_matrix(size):
    """Compile the adaptation of a mass matrix for ``size`` parameters."""
    model = first_mass_matrix(np.zeros(size))
    kinds = [np.asarray(v) for v in leaves(model)]
    inner = [T.tensor(dtype=v.dtype, shape=v.shape) for v in kinds]
    draw, gradient = (T.tensor(dtype="float64", shape=(size,)) for _ in range(2))
    counted = T.scalar(dtype="bool")
    new = adapted_mass_matrix(filled(model, inner), draw, gradient, counted)
    return symcomp.function([*inner, draw, gradient, counted], leaves(new))


def test_variances_are_those_of_a_window_and_the_one_before():
    rng = np.random.default_rng(1)
    draws, gradients = rng.normal(2.0, [0.5, 3.0], (90, 2)), rng.normal(1.0, [4.0, 0.1], (90, 2))
    f = compiled_mass_matrix(2)
    values = [np.asarray(v) for v in leaves(first_mass_matrix(np.array([4.0, 0.0])))]
    np.testing.assert_array_equal(values[0], [0.25, 1.0])
    # Windows end at these draws; the estimate is from the second last end on.
    ends, length = [0, 10], 10.0
    while ends[-1] < len(draws):
        length = np.floor(1.5 * length)
        ends.append(ends[-1] + int(length))
    for i in range(len(draws)):
        values = f(*values, draws[i], gradients[i], True)
        if i + 1 < 3:
            np.testing.assert_array_equal(values[0], [0.25, 1.0])
            continue
        begun = [e for e in ends if e <= i]
        since = begun[-2] if len(begun) > 1 else 0
        right = draws[since : i + 1].std(0) / gradients[since : i + 1].std(0)
        np.testing.assert_allclose(values[0], right, rtol=1e-12)


def test_a_normal_distribution_is_found_from_few_draws():
    """Draws and gradients of one are proportional, so that their quotient is the variance."""
    scale = np.array([1e-12, 0.3, 1.0, 1e12])
    f = compiled_mass_matrix(4)
    values = [np.asarray(v) for v in leaves(first_mass_matrix(1 / scale))]
    for draw in np.random.default_rng(3).normal(0.0, scale, (5, 4)):
        values = f(*values, draw, -draw / scale**2, True)
    np.testing.assert_allclose(values[0], scale**2, rtol=1e-12)


def test_variances_stay_where_nothing_can_be_told():
    f = compiled_mass_matrix(3)
    values = start = [np.asarray(v) for v in leaves(first_mass_matrix(np.array([2.0, 4.0, 8.0])))]
    for i in range(20):
        draw, gradient = np.array([1.0, i, i]), np.array([i, 1.0, 0.0])
        values = f(*values, draw, gradient, True)
        np.testing.assert_array_equal(values[0], start[0])
    frozen = f(*values, np.array([1e9, 7.0, 3.0]), np.array([3.0, 2.0, 1e9]), False)
    for got, before in zip(frozen, values, strict=True):
        np.testing.assert_array_equal(got, before)


# -- trajectories


def test_divergences_and_bad_starts():
    density = with_gradient(lambda x: T.sum(T.switch(x > 0, T.log(x) * 0.0 - x, -np.inf)))
    sampler = compile_sampler(density, 2, most_depth=3)
    with pytest.raises(ValueError, match="the log density is -inf at the start"):
        sampler.begin([-1.0, 1.0], np.random.default_rng(0))
    chain = sampler.begin([1.0, 1.0], np.random.default_rng(0))
    chain, draws, _ = sampler.advance(chain, 40, tuning=True)
    _, more, statistics = sampler.advance(chain, 30, tuning=False, most_depth=2)
    assert (draws > 0).all() and (more > 0).all()
    assert 0 < statistics["diverging"].sum() < 30
    assert statistics["tree_size"].max() == 3
    whole = statistics["reached_max_treedepth"]
    assert whole.any() and not statistics["diverging"][whole].any()
    assert (statistics["depth"][whole] == 2).all()
