"""Scan: all kinds of states, loops that stop, gradients, random numbers, loops in loops."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt  # noqa: E402
from pytensor.scan.op import Scan, ScanInfo  # noqa: E402
from pytensor.scan.utils import until  # noqa: E402

from symcomp.tests.pytensor_backend.compare import agree, compare  # noqa: E402

X = np.random.default_rng(8).normal(size=(7, 3))


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


def test_states_and_sequences():
    x, s = pt.dmatrix("x"), pt.dvector("s")
    states = scan(lambda row, a, b: (pt.tanh(a + row), b + 1), [x], [s, pt.zeros((), "int64")])
    mapped = scan(lambda row: pt.exp(row).sum(), [x])
    steps = scan(lambda a: a * 2, outputs_info=[s], n_steps=5)
    back = scan(lambda row, a: a * 0.5 + row, [x], [s], go_backwards=True)
    compare([x, s], [*states, mapped, steps, steps[-1], states[0][-2:], back], [X, X[0]])


def test_taps():
    x, s = pt.dvector("x"), pt.dvector("s")
    fib = scan(lambda a, b: a + b, outputs_info=[{"initial": s[:2], "taps": [-2, -1]}], n_steps=6)
    mixed = scan(
        lambda now, before, a, b: a * now + b * before,
        [{"input": x, "taps": [0, -1]}], [{"initial": s, "taps": [-3, -1]}],
    )  # fmt: skip
    outputs = [fib, mixed, fib[-1], mixed[2:4], *pytensor.grad(fib.sum() + mixed.sum(), [s, x])]
    compare([x, s], outputs, [X[:, 0], X[0]])


def test_numbers_of_steps():
    n, s = pt.lscalar("n"), pt.dscalar("s")
    states = scan(lambda a: a * 1.5, outputs_info=[s], n_steps=n)
    f = compare([n, s], [states, states[-3:]], [np.int64(5), np.array(2.0)])
    for count in (1, 2, 9):
        agree(f(count, 2.0)[0], 2.0 * 1.5 ** np.arange(1, count + 1), 1e-12, 0)
    assert f(0, 2.0)[0].shape == (0,)


def test_loops_that_stop():
    s, limit = pt.dscalar("s"), pt.dscalar("limit")
    states, squares = scan(
        lambda a: ((a * 2, a**2), until(a * 2 > limit)), outputs_info=[s, None], n_steps=50
    )
    outputs = [
        states,
        squares,
        states[-1],
        pytensor.grad(states[-1], s),
        pytensor.grad(squares.sum(), s),
    ]
    f = compare([s, limit], outputs, [np.array(1.5), np.array(100.0)])
    assert len(f(1.5, 2.0)[0]) == 1


def test_several_taps_of_a_gradient():
    """Gradients of states that are read twice write several rows of a buffer in each step."""
    s = pt.dvector("s")
    states = scan(
        lambda a, b, c: pt.sin(a) * b + c,
        outputs_info=[{"initial": s, "taps": [-3, -2, -1]}],
        n_steps=8,
    )
    cost = (states**2).sum()
    first = pytensor.grad(cost, s)
    compare([s], [cost, first, pytensor.grad(first.sum(), s)], [X[0]], rtol=1e-8)


def test_buffers_that_are_read_and_written_around_each_step():
    """A mit-mot state with taps on both sides, as none of PyTensor's gradients has today."""
    rows = [pt.dscalar(f"r{k}") for k in range(3)]
    info = {
        "n_seqs": 0, "mit_mot_in_slices": ((0, 1, 2),), "mit_mot_out_slices": ((0, 2),),
        "mit_sot_in_slices": (), "sit_sot_in_slices": (), "n_nit_sot": 1, "n_untraced_sit_sot": 0,
        "n_non_seqs": 0, "as_while": False,
    }  # fmt: skip
    a, b, c = rows
    op = Scan(rows, [a + b, c * 2 + a, a * b], ScanInfo(**info))
    buffer, n = pt.dvector("buffer"), pt.lscalar("n")
    outputs = op(n, buffer, n)
    compare([buffer, n], outputs, [np.arange(1.0, 9.0), np.int64(5)])


def test_truncated_gradients_have_zeros():
    x, s = pt.dvector("x"), pt.dscalar("s")
    states = scan(lambda row, a: a * row, [x], [s], truncate_gradient=3)
    compare([x, s], pytensor.grad(states[-1], [x, s]), [X[:, 0], np.array(1.0)])


def test_second_derivatives_and_jacobians():
    s = pt.dvector("s")
    states = scan(lambda a: pt.sin(a) * 2, outputs_info=[s], n_steps=4)
    cost = (states[-1] ** 3).sum()
    hessian = pytensor.gradient.hessian(cost, s)
    compare([s], [hessian, pytensor.gradient.jacobian(states[-1], s)], [X[0]], rtol=1e-8)


def test_loops_in_loops():
    x = pt.dmatrix("x")

    def row_sum(row):
        return scan(lambda v, total: total + v**2, [row], [pt.zeros(())])[-1]

    sums = scan(row_sum, [x])
    compare([x], [sums, pytensor.grad(sums.prod(), x)], [X], rtol=1e-9)


def test_values_that_are_carried_alone():
    """States of which only the last value is read, and matrices."""
    p0 = pt.dmatrix("p0")
    f = pt.as_tensor(np.array([[1.0, 1.0], [0.0, 1.0]]))

    def step(p, total):
        moved = f @ p @ f.T + pt.eye(2)
        gain = moved[:, 0] / moved[0, 0]
        return moved - pt.outer(gain, moved[0]), total + pt.log(moved[0, 0])

    p, total = scan(step, outputs_info=[p0, pt.zeros(())], n_steps=20)
    outputs = [p[-1], total[-1], pytensor.grad(total[-1], p0)]
    compare([p0], outputs, [np.eye(2) * 3], rtol=1e-8)


def test_random_numbers_in_loops():
    rng = pytensor.shared(np.random.default_rng(4), name="rng")

    def step(a, state):
        new, z = pt.random.normal(a, 1.0, rng=state, size=(3,), return_next_rng=True)
        return z, new

    draws, last = pytensor.scan(
        step, outputs_info=[pt.zeros(3), rng], n_steps=4, return_updates=False
    )
    f = pytensor.function([], draws, updates={rng: last}, mode="SYMCOMP")
    expected, generator, state = [], np.random.default_rng(4), np.zeros(3)
    for _ in range(8):
        state = generator.normal(state, 1.0)
        expected.append(state)
    np.testing.assert_array_equal(f(), expected[:4])
    restart = np.array(f()) - np.array(expected[4:])
    assert np.isfinite(restart).all()
