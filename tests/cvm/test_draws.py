"""Draws in the native machine: the numbers of NumPy's generators, and what they leave to Python."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm import prepare
from symcomp.cvm.machine import DRAWS_OF_NUMPY
from symcomp.errors import ShapeError
from symcomp.ops.random.draw import Draw
from symcomp.ops.random.state import HALVED, RandomType, halved_words_of, words_of
from symcomp.ops.random.table import TABLE
from symcomp.tests.cvm.looking import asked, bodies_of, kinds_of
from symcomp.tests.ops.random.test_draw import PARAMETERS

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


#: Names of draws without kernels.
IN_PYTHON = {"categorical", "choice", "choice_by_p", "multinomial"}


@pytest.mark.parametrize("words", [4, 6])
@pytest.mark.parametrize("name", [n for n in TABLE if n not in IN_PYTHON])
def test_kernels_draw_as_numpys_methods_do(name: str, words: int) -> None:
    """Parameters that are one number, one for each, stretched along some axes, and strided."""
    row, values = TABLE[name], PARAMETERS.get(name, ())
    state = RandomType()("state") if words == 4 else HALVED("state")
    start = words_of if words == 4 else halved_words_of
    for pattern in ("one", "each", "rows", "strided"):
        given, symbols = [], []
        for value, kind, is_vector in zip(values, row.dtypes, row.vectors, strict=True):
            shape = {"one": (1, 1), "rows": (3, 1)}.get(pattern, (3, 4))
            x = np.broadcast_to(np.array(value, kind), (*shape, *np.shape(value))).copy()
            given.append(x[::-1, ::-1] if pattern == "strided" else x)
            lengths = [1 if n == 1 else None for n in shape]
            symbols.append(T.TensorType(kind, [*lengths, *[None] * is_vector])())
        m, n = T.lscalar("m"), T.lscalar("n")
        inputs = [state, m, n, *symbols]
        for dtype in row.draws:
            z = Draw(name, dtype)(*inputs)
            f = symcomp.function(inputs, z, mode=NATIVE)
            g = symcomp.function(inputs, z, mode=symcomp.Mode(linker="py"))
            assert "draw" in kinds_of(f)
            for m_, n_ in ((3, 4), (3, 4), (3, 4)):
                now = start(np.random.default_rng(3))
                arguments = (now, m_, n_, *given)
                assert asked(f, [np.asarray(x) for x in arguments]) == []
                for got, wanted in zip(f(*arguments), g(*arguments), strict=True):
                    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "name, values",
    [
        ("beta", (-1.0, 2.0)), ("poisson", (-1.0,)), ("poisson", (1e300,)), ("binomial", (3, 1.5)),
        ("integers", (3, 3)), ("hypergeometric", (3, 4, 9)), ("geometric", (0.0,)),
        ("negative_binomial", (2.0, 0.0)), ("triangular", (1.0, 0.0, 2.0)), ("zipf", (1.0,)),
        ("logseries", (1.0,)), ("wald", (0.0, 1.0)), ("vonmises", (0.0, -1.0)),
        ("counts", (3, [0.8, 0.4, 0.0])), ("counts", (-3, [0.8, 0.2, 0.0])),
        ("dirichlet", ([-1.0, 2.0],)),
    ],
)  # fmt: skip
def test_parameters_that_numpy_refuses(name: str, values: Any) -> None:
    row = TABLE[name]
    symbols = [
        T.TensorType(kind, [None] * (1 + is_vector))()
        for kind, is_vector in zip(row.dtypes, row.vectors, strict=True)
    ]
    state = RandomType()("state")
    z = Draw(name, row.draws[-1])(state, T.constant(2), *symbols)
    f = symcomp.function([state, *symbols], z, mode=NATIVE)
    good = [np.array([v, v], k) for v, k in zip(PARAMETERS[name], row.dtypes, strict=True)]
    bad = [np.array([v, v], k) for v, k in zip(values, row.dtypes, strict=True)]
    words = words_of(np.random.default_rng(3))
    before = f(words, *good)
    with pytest.raises(ValueError, match=f"{name}: "):
        f(words, *bad)
    for a, b in zip(f(words, *good), before, strict=True):
        np.testing.assert_array_equal(a, b)


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
    assert "draw" not in kinds_of(f) and "python" in kinds_of(f)
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
