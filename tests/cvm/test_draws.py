"""Draws in the native machine: the numbers of NumPy's generators, and what they leave to Python."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm import prepare
from symcomp.cvm.machine import DRAWS_OF_NUMPY
from symcomp.errors import ShapeError
from symcomp.tests.cvm.looking import bodies_of, kinds_of

NATIVE = symcomp.Mode(linker="cvm")
SHAPES = np.array([[0.0, 0.3, 1.0, 7.5]])
CASES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("standard_normal", (), 1000),
    ("standard_normal", (), (2, 0, 3)),
    ("standard_uniform", (), (31, 7)),
    ("standard_uniform", (), ()),
    ("standard_exponential", (), 20000),
    ("standard_gamma", (2.5,), (4, 5)),
    ("standard_gamma", (SHAPES.repeat(3, axis=0),), (3, 4)),
    ("standard_gamma", (SHAPES,), (1, 4)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}{c[2]}")
def test_numbers_and_states_are_numpys(case: Any, dtype: str) -> None:
    name, args, size = case
    state = T.random.state()
    after, z = getattr(T.random, name)(state, *args, size=size, dtype=dtype)
    f = symcomp.function([state], [after, z], mode=NATIVE)
    assert kinds_of(f).count("draw") == 1
    rng = np.random.default_rng(3)
    words, found = f(rng)
    method = rng.random if name == "standard_uniform" else getattr(rng, name)
    wanted = method(*args, size=size, dtype=dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    rng.bit_generator.state = {**rng.bit_generator.state, "has_uint32": 0, "uinteger": 0}
    np.testing.assert_array_equal(words, T.random.RandomType().filter(rng))


def test_half_of_a_word_is_not_kept() -> None:
    """An odd number of float32 leaves half a word; Python and C agree that it is dropped."""
    found = []
    for linker in ("py", "cvm"):
        state = T.random.state()
        after, a = T.random.uniform(state, size=3, dtype="float32")
        _, b = T.random.uniform(after, size=3, dtype="float32")
        f = symcomp.function([state], [a, b], mode=symcomp.Mode(linker=linker))
        found.append(f(np.random.default_rng(1)))
    np.testing.assert_array_equal(*found)


def test_what_does_not_fit_is_left_to_python() -> None:
    state, shape, n = T.random.state(), T.dvector("shape"), T.lscalar("n")
    _, z = T.random.standard_gamma(state, shape, size=3)
    f = symcomp.function([state, shape], z, mode=NATIVE)
    rng = np.random.default_rng(1)
    strided = np.linspace(1, 6, 6)[::2]
    np.testing.assert_array_equal(f(rng, strided), rng.standard_gamma(strided))
    with pytest.raises(ValueError, match="standard_gamma: shape < 0"):
        f(rng, [1.0, -1.0, 2.0])
    assert np.isnan(f(rng, [1.0, np.nan, 2.0])).tolist() == [False, True, False]
    with pytest.raises(ShapeError, match="which does not fit size"):
        f(rng, [1.0])
    g = symcomp.function([state, n], T.random.normal(state, size=n)[1], mode=NATIVE)
    assert kinds_of(g).count("draw") == 1
    with pytest.raises(ShapeError, match="lengths must not be negative"):
        g(rng, -2)


def test_numbers_go_into_arrays_that_are_there() -> None:
    state, x = T.random.state(), T.dvector("x")
    y = T.exp(x).sum()
    _, z = T.random.standard_normal(state, size=x.shape)
    state2 = T.random.state()
    _, w = T.random.standard_normal(state2, size=x.shape)
    total = (z * 2).sum() + (w * 3).sum() + y
    mode = symcomp.Mode(linker="cvm").excluding("fusion")
    f = symcomp.function([state, state2, x], total, mode=mode)
    assert any(step.into for step in f.program.instructions if "Draw" in step.line())
    a, b = np.random.default_rng(1), np.random.default_rng(2)
    got = f(a, b, np.zeros(50))
    assert got == pytest.approx(2 * a.normal(size=50).sum() + 3 * b.normal(size=50).sum() + 50)


def test_another_numpy_draws_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DRAWS_OF_NUMPY == np.__version__
    monkeypatch.setattr(prepare, "DRAWS_OF_NUMPY", "0.0")
    state = T.random.state()
    f = symcomp.function([state], T.random.normal(state, size=3)[1], mode=NATIVE)
    assert "draw" not in kinds_of(f) and "PythonCall" in kinds_of(f)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(f(rng), rng.normal(size=3))


# -- loops


def test_steps_that_draw_need_no_python() -> None:
    with symcomp.config.change_flags(kernels=True):
        stream = T.random.RandomStream(1)
        n = T.lscalar("n")
        walk, updates = symcomp.scan(
            lambda x: 0.5 * x + stream.normal(size=x.shape) * stream.uniform(size=n),
            outputs_info=T.zeros(n),
            n_steps=30,
        )
        f = symcomp.function([n], walk, updates=updates, mode=NATIVE)
        starts = [state.get_value() for state, _ in stream.state_updates]
        found = np.concatenate([f(4), f(4)])
    (body,) = bodies_of(f)
    runs, planned = body.counts
    assert runs == 60 and planned <= 2
    x, wanted = np.zeros(4), []
    for step in range(60):
        x = np.zeros(4) if step == 30 else x
        x = 0.5 * x + starts[0].normal(size=4) * starts[1].random(4)
        wanted.append(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_sizes_that_change_from_step_to_step() -> None:
    with symcomp.config.change_flags(kernels=True):
        stream = T.random.RandomStream(1)
        sums, updates = symcomp.scan(
            lambda k: stream.uniform(5.0, 6.0, size=k).sum(), T.arange(1, 20)
        )
        f = symcomp.function([], sums, updates=updates, mode=NATIVE)
        found = f()
    stream.seed()
    start = stream.state_updates[0][0].get_value()
    wanted = [start.uniform(5, 6, k).sum() for k in range(1, 20)]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
