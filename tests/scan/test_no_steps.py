"""Loops whose number of steps may be 0 when they run are planned, and repeated, without Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import config
from symcomp.core.closed import ClosedGraph
from symcomp.errors import ShapeError
from symcomp.scan.layout import Layout
from symcomp.scan.op import Scan
from symcomp.tensor.random import RandomStream
from symcomp.tests.cvm.looking import asked

MOST = 3
X, H, W, PAIR = T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("pair")
N, WIDE = T.lscalar("n"), T.lscalar("wide")
RNG = np.random.default_rng(3)
AT = {
    H: RNG.normal(size=2), W: RNG.normal(size=(2, 2)), PAIR: RNG.normal(size=(3, 2)),
    WIDE: np.asarray(3),
}  # fmt: skip


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


def outputs_of_all_kinds() -> list[Any]:
    """Build a state, a sum over another, and rows of fixed, known and computed lengths."""

    def step(v, s, t):
        return [
            T.tanh(s + T.dot(v, W)), t * v.sum(), T.concatenate([v, v]), T.zeros(4, "int8"),
            T.ones((WIDE, v.shape[0])) * v, T.arange(WIDE), T.outer(v, T.arange(WIDE - 1)),
            v.sum() > 0,
        ]  # fmt: skip

    rows, _ = symcomp.scan(step, X, [H, H, *[None] * 6])
    return [*rows[:1], rows[1].sum(axis=0), *rows[2:]]


def last_states() -> list[Any]:
    (s, t), _ = symcomp.scan(lambda s, t: [T.dot(s, W), t + s], None, [H, H * 2], n_steps=N)
    return [T.concatenate([H.dimshuffle("x", 0), s])[-1], t[-1:], (N + 1) * s.sum()]


def ends_of_loop() -> list[Any]:
    end, _ = symcomp.loop(lambda c, _: (T.sin(c) + 1, None), H, length=N)
    return [end, *symcomp.grad(end.sum(), [H])]


def taps() -> list[Any]:
    info = {"initial": PAIR, "taps": [-3, -1]}
    sequence = {"input": T.concatenate([PAIR[:1], X]), "taps": [0, 1]}
    rows, _ = symcomp.scan(lambda v, u, s, t: s * v + t - u, sequence, info)
    return [rows, *symcomp.grad((rows**2).sum(), [X, PAIR])]


def until() -> list[Any]:
    def step(v, s):
        return [s + v * v, s.sum() * v], symcomp.until(s.sum() > 100)

    (s, z), _ = symcomp.scan(step, X, [H, None])
    return [s, z, s.shape[0] + T.zeros((z.shape[0] + 1,))]


def gradients() -> list[Any]:
    s, _ = symcomp.scan(lambda v, s: T.tanh(v + T.dot(s, W)), X, H)
    first = symcomp.grad((s**2).sum(), [X, H, W])
    return [*first, *symcomp.grad((first[2] ** 2).sum(), [X, H, W])]


def checkpoints() -> list[Any]:
    s, _ = symcomp.scan(lambda v, s: T.tanh(v + T.dot(s, W)), X, H, checkpoint=2)
    return [s, *symcomp.grad((s**2).sum(), [X, H, W])]


def nested() -> list[Any]:
    """Step i of the outer loop has i steps of the inner one."""

    def step(i, v):
        (s, z), _ = symcomp.scan(lambda s: [s + v, T.outer(s, v)], None, [H, None], n_steps=i)
        return T.concatenate([H.dimshuffle("x", 0), s])[-1], z.sum(axis=0), s.sum()

    rows, _ = symcomp.scan(step, [T.arange(X.shape[0]), X])
    return [*rows, *symcomp.grad((rows[2] ** 2).sum(), [X, H])]


def draws() -> list[Any]:
    stream = RandomStream(5)
    s, _ = symcomp.scan(lambda v, s: s + v * stream.normal(size=(2,)), X, H)
    return [s, stream.uniform(size=(2,))]


def jacobians() -> list[Any]:
    return [T.jacobian(T.dot(T.tanh(X).sum(axis=1), X), X), T.jacobian(X[:, 0] ** 2, X)]


BUILDS: list[Callable[[], list[Any]]] = [
    outputs_of_all_kinds, last_states, ends_of_loop, taps, until, gradients, checkpoints, nested,
    draws, jacobians,
]  # fmt: skip


def compiled(build: Callable[[], list[Any]], linker: str) -> Any:
    with config.change_flags(linker=linker):
        return symcomp.function(
            [N, X, *AT], build(), on_unused_input="ignore", profile=linker == "cvm"
        )


def arguments(steps: int) -> list[Any]:
    rng = np.random.default_rng(steps)
    return [np.asarray(steps), rng.normal(size=(steps, 2)), *AT.values()]


def compare(found: list[Any], wanted: list[Any]) -> None:
    for x, y in zip(found, wanted, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("build", BUILDS)
def test_plans_are_repeated(build):
    f, python = compiled(build, "cvm"), compiled(build, "vm")
    for steps in (0, 1, 0, 1, 0, 0):
        compare(f(*arguments(steps)), python(*arguments(steps)))
    plans = f.profile.to_dict()["functions"][0]["plans"]
    assert plans["runs"] == 6 and plans["kept"] == f.repeated == 4
    assert plans["call_declined"] == plans["not_kept"] == 0
    if build is not draws:  # the states of generators are inputs, too
        assert asked(f, arguments(0)) == []
    assert "python" not in f.plan()


@pytest.mark.parametrize("build", BUILDS)
@settings(max_examples=8, deadline=None)
@given(turns=st.lists(st.integers(0, MOST), min_size=4, max_size=12))
def test_lengths_in_turn(build, turns):
    """Callers hold all results until the last call."""
    f, python = compiled(build, "cvm"), compiled(build, "vm")
    held = [f(*arguments(steps)) for steps in turns]
    for found, steps in zip(held, turns, strict=True):
        compare(found, python(*arguments(steps)))


def test_lengths_that_values_tell():
    """Other values have another plan; equal ones repeat it, whichever array they are in."""
    k, shape, mask = T.lscalar("k"), T.lvector("shape"), T.bvector("mask")
    rows, _ = symcomp.scan(
        lambda v: [
            T.zeros((k,)) + v.sum(), T.ones((6,)).reshape(shape, ndim=2), v[T.nonzero(mask)],
            T.zeros((shape[0], k)),
        ],
        X,
    )  # fmt: skip
    f = symcomp.function([X, k, shape, mask], rows)
    x = np.ones((0, 3))
    cases = [(2, [2, 3], [1, 0, 1]), (2, [3, 2], [1, 0, 1]), (0, [3, 2], [0, 0, 0])]
    for turn in range(3):
        for k_, shape_, mask_ in cases:
            apart = np.repeat(np.array(shape_), 2)[::2]  # with other strides
            found = f(x, k_, apart if turn == 1 else apart.copy(), np.array(mask_, "int8"))
            wanted = [(0, k_), (0, *shape_), (0, sum(mask_)), (0, shape_[0], k_)]
            assert [y.shape for y in found] == wanted
    assert f.repeated == 3


def test_the_rest_relies_on_the_lengths():
    """Lengths of empty rows are read where they are multiplied, and summed."""
    k = T.lscalar("k")
    rows, _ = symcomp.scan(lambda v: T.ones((k,)) * v.sum(), X)
    f = symcomp.function([X, k], [rows.sum(axis=0), T.dot(rows, T.ones((k, 2)))])
    for width in (1, 4, 1, 4, 0):
        for steps in (0, 2, 0):
            total, product = f(np.ones((steps, 3)), width)
            np.testing.assert_array_equal(total, np.full(width, 3.0 * steps))
            np.testing.assert_array_equal(product, np.full((steps, 2), 3.0 * width))


def test_lengths_of_ends():
    """A carried value that steps make of another length has its own before the first step."""
    body = ClosedGraph([H, W], [T.dot(W, H)])
    end = Scan(body, Layout((), 1, 0, 0))(N, H, W)[0]
    f, shape = (symcomp.function([N, H, W], y) for y in (end, end.shape))
    for steps, length in ((0, 2), (1, 3)):
        at = (np.asarray(steps), np.ones(2), np.ones((3, 2)))
        assert f(*at).shape == (length,)
        assert [*shape(*at)] == [length]
    assert not [node for node in shape.maker.fgraph.toposort() if isinstance(node.op, Scan)]


def test_errors_are_those_of_python():
    rows, _ = symcomp.scan(lambda v, s: s + v, X[:, 0], T.zeros(()), n_steps=N)
    f = symcomp.function([X, N], rows)
    for _ in range(2):
        assert f(np.ones((4, 1)), 0).shape == (0,)
        with pytest.raises(ValueError, match="the number of steps is -1; it must not be negative"):
            f(np.ones((4, 1)), -1)
        with pytest.raises(ShapeError, match="5 steps need 5"):
            f(np.ones((4, 1)), 5)
