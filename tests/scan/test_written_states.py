"""States of loops of which a step writes parts: in place, where nothing needs the old values."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.tests.cvm.looking import bodies_of


def set_from_before(i, s):
    return T.set_subtensor(s[i], s[i - 1] + 1)


def moved(i, s):
    return T.set_subtensor(s[1:], s[:-1])


def moved_backwards(i, s):
    return T.inc_subtensor(s[::-1][: s.shape[0] - 1], s[1:])


def scattered(i, s):
    return T.inc_subtensor(s[T.stack([i, i - 1, i])], s[:3] * 2)


def scattered_from_itself(i, s):
    return T.inc_subtensor(s[T.stack([i, i - 1, i])], s[:3])


def at_its_own_places(i, s):
    return T.set_subtensor(s[T.cast(s[:2] % s.shape[0], "int64")], s[2:4])


def twice(i, s):
    t = T.set_subtensor(s[i], s[0] + i)
    return T.inc_subtensor(t[0], t.sum())


def read_afterwards(i, s):
    t = T.set_subtensor(s[i], 7)
    return T.set_subtensor(t[0], s[i] + t[i])


def whole_sum_read_before(i, s):
    return T.set_subtensor(s[i], (s * T.arange(s.shape[0])).sum())


def in_a_branch(i, s):
    return ifelse(T.eq(i % 2, 0), T.set_subtensor(s[i], 3), s + 1)


def by_python(i, s):
    return T.set_subtensor(s[i], opaque(s).sum())


@symcomp.as_op([T.dvector], [T.dvector])
def opaque(x):
    return x[::-1] * 0.5


STEPS = {
    set_from_before: True, moved: True, moved_backwards: False, scattered: True,
    scattered_from_itself: False, at_its_own_places: False, twice: True, read_afterwards: False,
    whole_sum_read_before: True, in_a_branch: False, by_python: True,
}  # fmt: skip


def final(step, mode=None):
    """Return a function from the initial state to the last one."""
    start, n = T.dvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(step, sequences=T.arange(1, n), outputs_info=start)
    return symcomp.function([start, n], rows[-1], mode=mode)


def overwritten(f):
    (body,) = bodies_of(f)
    return dict(body.program.written_over)


@pytest.mark.parametrize("step", STEPS)
def test_like_python(step):
    f, plain = final(step), final(step, symcomp.Mode(linker="py"))
    assert bool(overwritten(f)) == STEPS[step]
    start = np.random.default_rng(1).integers(0, 5, 6).astype(float)
    kept = start.copy()
    for n in (2, 3, 6, 6, 5, 6):
        np.testing.assert_array_equal(f(start, n), plain(start, n))
        np.testing.assert_array_equal(start, kept)


@pytest.mark.parametrize("step", STEPS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_lengths_and_layouts(step, data):
    f, plain = FUNCTIONS[step]
    for _ in range(3):
        n = data.draw(st.integers(2, 9))
        length = data.draw(st.integers(max(n, 4), 12))
        whole = np.arange(2.0 * length) % 5
        start = data.draw(st.sampled_from([whole[:length], whole[::2], whole[::-2]]))
        np.testing.assert_array_equal(f(start, n), plain(start, n))


FUNCTIONS = {step: (final(step), final(step, symcomp.Mode(linker="py"))) for step in STEPS}


def carried_only(f):
    (body,) = bodies_of(f)
    return body.program.written_over


def test_states_change_places():
    a, b, n = T.dvector("a"), T.dvector("b"), T.lscalar("n")

    def step(i, x, y):
        return T.set_subtensor(y[i], x[i] + 1), T.inc_subtensor(x[0], y[i])

    (x, y), _ = symcomp.scan(step, sequences=T.arange(n), outputs_info=[a, b])
    f = symcomp.function([a, b, n], [x[-1], y[-1]])
    assert not carried_only(f)
    u, v = np.arange(5.0), np.arange(5.0) * 10
    got = f(u, v, 5)
    for i in range(5):
        new = v.copy(), u.copy()
        new[0][i] = u[i] + 1
        new[1][0] += v[i]
        u, v = new
    np.testing.assert_array_equal(got, [u, v])


def test_another_state_reads_the_old_and_the_new_value():
    a, b, n = T.dvector("a"), T.dvector("b"), T.lscalar("n")

    def step(i, x, y):
        new = T.set_subtensor(x[i], y[i] + 1)
        return new, new[::-1]

    (x, y), _ = symcomp.scan(step, sequences=T.arange(n), outputs_info=[a, b])
    f = symcomp.function([a, b, n], [x[-1], y[-1]])
    assert list(carried_only(f).values()) == [0]
    u, v = np.arange(5.0), np.arange(5.0) * 10
    got = f(u, v, 5)
    for i in range(5):
        u = u.copy()
        u[i] = v[i] + 1
        v = u[::-1]
    np.testing.assert_array_equal(got, [u, v])


def test_an_output_shows_the_state():
    a, n = T.dvector("a"), T.lscalar("n")

    def step(i, x):
        new = T.set_subtensor(x[i], x[i - 1] + 1)
        return new, new[1:] * 2, x[:2]

    (x, doubled, old), _ = symcomp.scan(
        step, sequences=T.arange(1, n), outputs_info=[a, None, None]
    )
    f = symcomp.function([a, n], [x[-1], doubled, old])
    u, want, before = np.arange(5.0) * 3, [], []
    got = f(u, 5)
    for i in range(1, 5):
        before.append(u[:2].copy())
        u = u.copy()
        u[i] = u[i - 1] + 1
        want.append(u[1:] * 2)
    for mine, theirs in zip(got, [u, want, before], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_loops_that_end_early():
    a = T.dvector("a")

    def step(i, x):
        new = T.set_subtensor(x[i], x[i - 1] + 2)
        return new, symcomp.until(new[i] > 5)

    rows, _ = symcomp.scan(step, sequences=T.arange(1, 9), outputs_info=a)
    f = symcomp.function([a], rows[-1])
    assert carried_only(f)
    for _ in range(3):
        np.testing.assert_array_equal(f(np.zeros(9)), [0, 2, 4, 6, 0, 0, 0, 0, 0])


def test_failed_steps_leave_the_initial_state():
    shared = symcomp.shared(np.zeros(4), "state")
    n = T.lscalar("n")
    rows, _ = symcomp.scan(set_from_before, sequences=T.arange(1, n), outputs_info=shared)
    f = symcomp.function([n], rows[-1], updates=[(shared, rows[-1])])
    with pytest.raises(IndexError):
        f(6)
    np.testing.assert_array_equal(shared.get_value(), np.zeros(4))
    f(4)
    np.testing.assert_array_equal(shared.get_value(), [0, 1, 2, 3])
    with pytest.raises(IndexError):
        f(6)
    np.testing.assert_array_equal(shared.get_value(), [0, 1, 2, 3])


def test_no_step_copies_the_state():
    f = final(set_from_before)
    (body,) = bodies_of(f)
    f(np.zeros(8), 8)
    plan = body.plan()
    assert "set part" in plan and "copy" not in plan
