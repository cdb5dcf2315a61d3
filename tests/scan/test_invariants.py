"""Variables that are passed to a loop are computed once; what the step draws is fresh."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import MissingInputError
from symcomp.ifelse import ifelse
from symcomp.sandbox.rng_mrg import MRG_RandomStreams
from symcomp.tensor.shared_randomstreams import RandomStreams

STREAMS = (T.random.RandomStream, RandomStreams, MRG_RandomStreams)
MODES = ("FAST_COMPILE", "FAST_RUN", "DebugMode")
X = np.full((6, 4), 0.5)
x = T.dmatrix("x")


def mask_of(stream: Any, shape: Any = None) -> Any:
    """Draw a mask of independent bits, by any kind of stream."""
    return stream.binomial(size=x.shape if shape is None else shape, p=0.5, n=1)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("strict", [False, True])
def test_a_draw_among_the_non_sequences_is_drawn_once(kind: Any, strict: bool) -> None:
    mask = mask_of(kind(1))
    z, updates = symcomp.scan(lambda a: a, non_sequences=mask, n_steps=2, strict=strict)
    for mode in MODES:
        f = symcomp.function([x], [mask, z], updates=updates, mode=mode)
        (first, rows), (second, others) = f(X), f(X)
        np.testing.assert_array_equal(rows, [first, first])
        np.testing.assert_array_equal(others, [second, second])
        assert (first != second).any()


def test_draws_among_all_arguments_and_fresh_ones() -> None:
    """The step sees each passed draw again by closure: it has the numbers that were passed."""
    stream = RandomStreams(2)
    rows, start, fixed = (mask_of(stream, s) for s in ((5, 4), (4,), (4,)))
    (a, b, c, fresh), updates = symcomp.scan(
        lambda row, h, k: [h + row, rows.sum() + start, k - fixed, stream.uniform((4,))],
        rows,
        [start, None, None, None],
        fixed,
    )
    assert len(updates) == 1
    f = symcomp.function([], [rows, start, a, b, c, fresh], updates=updates)
    for _ in range(2):
        r, s, states, sums, zeros, noise = f()
        np.testing.assert_array_equal(states, s + np.cumsum(r, axis=0))
        np.testing.assert_array_equal(sums, np.tile(r.sum() + s, (5, 1)))
        assert not zeros.any()
        assert np.unique(noise).size == noise.size


def test_loops_in_loops() -> None:
    """An inner step sees what the outer loop was passed, and what the outer step draws."""
    stream = RandomStreams(3)
    shared_by_all = mask_of(stream, (4,)) * 1.0

    def outer(row: Any, mask: Any) -> Any:
        own = stream.uniform(())
        (a, b), updates = symcomp.scan(lambda r, m, k: [r * m, k + 0 * r], [row, mask], None, own)
        c, more = symcomp.scan(lambda r, k: r * k + mask.sum(), row, non_sequences=own)
        return [a, b, c - row * own - mask.sum()], updates + more

    (a, b, c), updates = symcomp.scan(outer, x, non_sequences=shared_by_all)
    f = symcomp.function([x], [shared_by_all, a, b, c], updates=updates)
    for _ in range(2):
        mask, masked, own, zeros = f(X)
        np.testing.assert_array_equal(masked, X * mask)
        assert (own == own[:, :1]).all() and np.unique(own).size == len(X)
        np.testing.assert_allclose(zeros, 0, atol=1e-15)


def test_folds_and_loop() -> None:
    stream = RandomStreams(4)
    mask = mask_of(stream, (4,))
    doubled, none = symcomp.map(lambda row, m: row * m, x, mask)
    total, _ = symcomp.foldr(lambda row, s, m: s + row * m, x, T.zeros(4), mask)
    (end, kept), ys = symcomp.loop(
        lambda carry, row: ((carry[0] + row * carry[1], carry[1]), mask), (T.zeros(4), mask), x
    )
    outputs = [mask, doubled, total, end, kept, ys]
    m, a, b, c, d, e = symcomp.function([x], outputs, updates=none)(X)
    for found, wanted in ((a, X * m), (b, (X * m).sum(0)), (c, (X * m).sum(0)), (d, m)):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(e, np.tile(m, (6, 1)))


@pytest.mark.parametrize("checkpoint", [None, 2, "auto"])
def test_gradients_see_the_mask_that_was_drawn(checkpoint: Any) -> None:
    stream, w = RandomStreams(5), T.dvector("w")
    mask = mask_of(stream, (4,)) * 1.0
    h, updates = symcomp.scan(
        lambda row, h, w, m: h * w * m + row, x, T.zeros(4), [w, mask], checkpoint=checkpoint
    )
    f = symcomp.function([x, w], [mask, symcomp.grad(h[-1].sum(), w)], updates=updates)
    values = np.array([0.5, 0.25, 2.0, -1.0])
    for _ in range(3):
        m, slope = f(X, values)
        powers = np.arange(1, 6)[:, None] * values ** np.arange(5)[:, None]
        np.testing.assert_allclose(slope, 0.5 * m * powers.sum(axis=0), rtol=1e-14)


def test_jacobians_by_scan_see_the_mask_that_was_drawn() -> None:
    """The gradient of the passed ``y`` reads its mask directly."""
    v = T.dvector("v")
    mask = mask_of(RandomStreams(6), (4,)) * 1.0
    y = v**2 * mask
    rows, updates = symcomp.scan(
        lambda i, y, v: symcomp.grad(y[i], v), T.arange(4), non_sequences=[y, v], strict=True
    )
    f = symcomp.function([v], [mask, rows], updates=updates)
    for _ in range(2):
        m, jacobian = f(X[0])
        np.testing.assert_array_equal(jacobian, np.diag(m))  # 2 v = 1


def test_a_draw_reached_by_closure_belongs_to_the_step() -> None:
    """As in Theano: it is drawn in every step, for it is part of the expression of the step."""
    noise = RandomStreams(7).uniform((3,))
    z, updates = symcomp.scan(lambda: noise, n_steps=4)
    assert len(updates) == 1
    assert np.unique(symcomp.function([], z, updates=updates)()).size == 12
    with pytest.raises(ValueError, match="part of the carry"):
        symcomp.loop(lambda c, _: (c, noise), T.constant(0.0), length=2)


def test_updates_of_a_step_do_not_reach_what_was_passed() -> None:
    s = symcomp.shared(1.0, name="s")
    double = 2 * s
    (a, b), updates = symcomp.scan(
        lambda d: ([d, double + s], {s: s + 1}), non_sequences=double, n_steps=3
    )
    fixed, moving = symcomp.function([], [a, b], updates=updates)()
    assert fixed.tolist() == [2, 2, 2]
    assert moving.tolist() == [3, 4, 5]
    # A shared variable itself is what the step updates; so is an expression that was not passed.
    c, updates = symcomp.scan(lambda k: (k + double, {s: s + 1}), non_sequences=s, n_steps=2)
    s.set_value(1.0)
    assert symcomp.function([], c, updates=updates)().tolist() == [3, 6]


def test_strict_concerns_shared_variables_only() -> None:
    v, a = T.dvector("v"), T.dscalar("a")
    w, k = symcomp.shared(2.0, name="w"), symcomp.shared(3.0, name="k")
    y, _ = symcomp.scan(lambda row, w: row * w * a * T.exp(v).sum(), v, None, w, strict=True)
    assert symcomp.function([v, a], y)([0.0, 0.0], 3.0).tolist() == [0.0, 0.0]
    made = w * a
    symcomp.scan(lambda row, m: row * m, v, None, made, strict=True)
    for step in (lambda row, w: row * w * k, lambda row, w: row * w + (k * a)):
        with pytest.raises(MissingInputError, match="uses k of type float64 scalar, a shared"):
            symcomp.scan(step, v, None, w, strict=True)
    _, updates = symcomp.scan(lambda row: (row * k, {k: k + 1}), v, strict=True)
    assert list(updates) == [k]


def test_branches_and_scan_checkpoints() -> None:
    stream, v = RandomStreams(8), T.dvector("v")
    mask, noise = stream.uniform(()), stream.uniform((5,))
    (a, b), updates = symcomp.scan(
        lambda row, m: [ifelse(row > 2, m, -m), ifelse(row > 2, stream.uniform(()), row)], v, None,
        mask,
    )  # fmt: skip
    (c, d, e), more = symcomp.scan_checkpoints(
        lambda row, h, m: [h + row, m + 0 * row, noise.sum() + 0 * row], noise,
        [T.constant(0.0), None, None], mask, save_every_N=2,
    )  # fmt: skip
    f = symcomp.function([v], [mask, noise, a, b, c, d, e], updates=updates + more)
    for _ in range(2):
        m, s, signs, fresh, total, same, sums = f(np.arange(5.0))
        assert (signs / m).tolist() == [-1, -1, -1, 1, 1]
        assert fresh[:3].tolist() == [0, 1, 2] and fresh[3] != fresh[4]
        np.testing.assert_allclose([total[0], sums[0]], s.sum())
        assert same == m
