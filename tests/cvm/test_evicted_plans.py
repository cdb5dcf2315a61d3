"""The plans not used for longest are forgotten when there are as many as the bound says."""

import gc

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import config
from symcomp.ifelse import ifelse
from symcomp.tests.cvm.together import together


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True, linker="cvm"):
        yield


def elements_not_zero():
    """Return a function whose lengths are read from its argument."""
    x = T.dvector("x")
    return symcomp.function([x], T.exp(x[T.nonzero(x)]).sum(), profile=True)


def with_ones(n, size=200):
    return np.repeat([1.0, 0.0], [n, size - n])


def segments(f):
    return sum("calls, arena of" in line for line in f.plan().split("\n"))


def test_a_new_outcome_is_kept_after_many():
    f = elements_not_zero()
    for n in range(60):
        for _ in range(2):
            np.testing.assert_allclose(f(with_ones(n)), n * np.exp(1))
    assert segments(f) <= config.most_plans
    before = f.repeated
    for _ in range(500):
        np.testing.assert_allclose(f(with_ones(100)), 100 * np.exp(1))
    assert f.repeated - before >= 450
    plans = f.profile.to_dict()["functions"][0]["plans"]
    assert plans["kept"] == f.repeated and plans["runs"] == 620


def test_the_outcome_not_used_for_longest_goes_first():
    with config.change_flags(most_plans=4):
        f = elements_not_zero()
        for n in (1, 2, 3, 4):  # the first one begins with the inputs, the others after the guard
            f(with_ones(n))
        f(with_ones(1))
        f(with_ones(2))
        f(with_ones(9))  # 3 goes
        assert segments(f) == 4
        before = f.repeated
        for n in (1, 2, 4, 9):
            f(with_ones(n))
        assert f.repeated - before == 4
        f(with_ones(3))
        assert f.repeated - before == 4 and segments(f) == 4


def test_profiles_count_what_forgotten_plans_did():
    with config.change_flags(most_plans=3):
        f = elements_not_zero()
        for k in range(200):
            f(with_ones(1 + k % 7))
    tally = f.executable.machine.tally
    counted = tally.counted()
    assert f.repeated > 0 and tally.runs == 200
    assert {c.runs for c in counted} == {200}
    # Each shape is one variant, whichever plans its runs were of.
    last = counted[-1].variants
    assert len({v.inputs for v in last}) == len(last) == 7
    assert sum(v.timed for v in last) >= 16


def test_ends_go_before_what_they_follow():
    """A plan is forgotten only after all plans that follow its guards."""
    with config.change_flags(most_plans=3):
        f = elements_not_zero()
        for n in (1, 2, 3):
            f(with_ones(n))
        for size in (50, 60, 70):
            f(with_ones(1, size))
            assert segments(f) <= 3
        before = f.repeated
        f(with_ones(1, 60))
        f(with_ones(1, 70))
        assert f.repeated - before == 2
        f(with_ones(1))
        assert f.repeated - before == 2


@pytest.mark.parametrize("most_plans", [0, 1])
def test_small_bounds(most_plans):
    with config.change_flags(most_plans=most_plans):
        f = elements_not_zero()
        for n in (3, 4, 3, 4):
            np.testing.assert_allclose(f(with_ones(n)), n * np.exp(1))
        assert segments(f) == most_plans


def steps_that_read_lengths():
    """Return a loop in whose steps lengths are read, and a choice follows."""
    x = T.dmatrix("x")

    def step(row):
        found = row[T.nonzero(row)]
        return ifelse(T.gt(row[0], 0), T.exp(found).sum(), T.sin(found).sum() - 1)

    states, _ = symcomp.scan(step, x)
    return symcomp.function([x], states)


def rows(counts, size=90):
    return np.array([with_ones(n, size) for n in counts])


def expected_rows(counts):
    return [n * np.exp(1) if n else -1.0 for n in counts]


def test_steps_of_loops():
    f = steps_that_read_lengths()
    for first in range(0, 80, 8):
        counts = [first + k for k in range(8)] * 3
        np.testing.assert_allclose(f(rows(counts)), expected_rows(counts))
    assert segments(f) <= config.most_plans + 1
    _check_steps_are_kept(f)


def _check_steps_are_kept(f):
    """Check that plans of steps with two new outcomes are repeated after a few calls."""
    counts = [85, 3] * 12
    for _ in range(30):
        f(rows(counts))
    (body,) = (how.body for how in f.executable.machine.lowered if how and how.body)
    before = body.planning
    f(rows(counts))
    after = body.planning
    assert after["runs"] - before["runs"] == 24 and after["kept"] - before["kept"] == 24


def test_threads_forget_what_others_run():
    # Large enough for the lock of Python to be given up.
    size = 60_000
    with config.change_flags(most_plans=4):
        f = elements_not_zero()
    rng = np.random.default_rng(1)
    orders = rng.integers(1, 12, (4, 60))

    def work(k):
        for n in orders[k]:
            np.testing.assert_allclose(f(with_ones(5000 * n, size)), 5000 * n * np.exp(1))

    together(4, work)
    assert segments(f) <= 4
    before = f.repeated
    for _ in range(200):
        f(with_ones(7, size))
    # At least one in MOST_UNKEPT (64, cvm/plan/tree.h) of the calls with new plans keeps its plan.
    assert f.repeated - before >= 200 - 64


def test_threads_forget_steps_that_others_run():
    with config.change_flags(most_plans=4):
        f = steps_that_read_lengths()
    f(rows([1, 2]))
    orders = np.random.default_rng(2).integers(0, 12, (4, 40, 30))

    def work(k):
        for counts in orders[k]:
            np.testing.assert_allclose(f(rows(counts, 3000)), expected_rows(counts))

    together(4, work)
    gc.collect()
    assert segments(f) <= 2 * (4 + 1)
    f.free()
