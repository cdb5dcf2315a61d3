"""The op Draw: what NumPy draws, from a state that is an array."""

import pickle
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import (
    DisconnectedInputError,
    DTypeError,
    GradientError,
    NullTypeGradError,
    ShapeError,
)
from symcomp.ops.random.draw import Draw, _gamma_slope
from symcomp.ops.random.state import (
    HALVED,
    RandomType,
    generator_at,
    halved_words_of,
    seeded,
    words_of,
)
from symcomp.ops.random.table import TABLE
from symcomp.tests.harness import check
from symcomp.tests.ops.random.draws import drawn

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "standard_gamma": (1.7,),
    "standard_t": (4.5,),
    "beta": (0.7, 2.5),
    "laplace": (0.3, 2.0),
    "logistic": (0.3, 2.0),
    "lognormal": (0.3, 0.8),
    "triangular": (-1.0, 0.5, 2.0),
    "weibull": (1.7,),
    "vonmises": (0.3, 2.0),
    "wald": (1.5, 0.7),
    "noncentral_chisquare": (3.0, 0.5),
    "noncentral_f": (3.0, 20.0, 0.5),
    "integers": (-3, 12),
    "binomial": (10, 0.3),
    "negative_binomial": (4.0, 0.4),
    "poisson": (3.5,),
    "geometric": (0.2,),
    "hypergeometric": (10, 7, 6),
    "logseries": (0.6,),
    "zipf": (2.5,),
    "categorical": ([0.2, 0.5, 0.3],),
    "multinomial": (9, [0.2, 0.5, 0.3]),
    "dirichlet": ([0.7, 2.5, 1.0],),
    "counts": (9, [0.2, 0.5, 0.3]),
    "permutation": ([4, 7, 5],),
    "choice": (9, [0, 1, 2]),
    "choice_by_p": ([0.2, 0.4, 0.3, 0.1], [0, 1, 2]),
}
#: Names of methods of NumPy, where ours are others, and what their rows of numbers are made by.
METHODS: dict[str, Any] = {
    "standard_uniform": lambda g, size, **more: g.random(size, **more),
    "categorical": lambda g, p, size: np.searchsorted(np.cumsum(p), g.random(size), side="right"),
    "counts": lambda g, n, p, size: g.multinomial(n, p, size),
    "permutation": lambda g, x, size: rows(lambda: g.permutation(np.array(x)), size),
    "choice": lambda g, n, x, size: rows(lambda: g.choice(n, len(x), replace=False), size),
    "choice_by_p": lambda g, p, x, size: rows(
        lambda: g.choice(len(p), len(x), replace=False, p=p), size
    ),
}


def rows(draw: Any, size: Any) -> Any:
    """Rows of numbers, drawn one after the other."""
    return np.array([draw() for _ in range(np.prod(size))]).reshape(*size, -1)


def by_numpy(rng: Any, name: str, *values: Any, size: Any, **more: Any) -> Any:
    """Draw from a distribution of the table by NumPy's own method."""
    if name in METHODS:
        return METHODS[name](rng, *values, size=size, **more)
    return getattr(rng, name)(*values, size=size, **more)


def ready(name: str, values: Any, rank: int) -> list[Any]:
    """Parameters as the op takes them."""
    row = TABLE[name]
    return [
        T.as_tensor_variable(np.asarray(v, kind), ndim=rank + is_vector)
        for v, kind, is_vector in zip(values, row.dtypes, row.vectors, strict=True)
    ]


@pytest.mark.parametrize("name", TABLE)
def test_values_are_those_of_numpy_generators(name: str) -> None:
    rng = np.random.default_rng(7)
    words = words_of(rng)
    values = PARAMETERS.get(name, ())
    for dtype in TABLE[name].draws:
        rng = np.random.default_rng(7)
        more = {} if len(TABLE[name].draws) == 1 else {"dtype": dtype}
        wanted = by_numpy(rng, name, *values, size=(3, 4), **more)

        def build(state: Any, m: Any, n: Any, dtype: str = dtype) -> Any:
            return Draw(name, dtype)(state, m, n, *ready(name, values, 2))

        sizes = np.asarray(3), np.asarray(4)
        wants = [words_of(rng), wanted.astype(dtype)]
        check(build, words, *sizes, expected=wants, static="full", grad=False)


def test_a_state_goes_on_where_numpy_does() -> None:
    rng = np.random.default_rng(3)
    state = T.random.state()
    after, a = T.random.normal(state, size=5)
    last, b = T.random.poisson(after, 4.0, size=(2, 2))
    f = symcomp.function([state], [a, b, last])
    a, b, last = f(rng)
    np.testing.assert_array_equal(a, rng.normal(size=5))
    np.testing.assert_array_equal(b, rng.poisson(4.0, (2, 2)))
    assert generator_at(last, np.random.default_rng()).normal() == rng.normal()


@pytest.mark.parametrize("linker", ["py", "cvm"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_machine_draws_the_same(linker: str, dtype: str) -> None:
    mode = symcomp.Mode(linker=linker)
    for name in ("normal", "uniform", "exponential"):
        wanted = drawn(getattr(T.random, name), size=(7, 3), dtype=dtype)
        got = drawn(getattr(T.random, name), size=(7, 3), dtype=dtype, mode=mode)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", TABLE)
def test_states_with_half_a_word_go_on_as_numpys_generators(name: str) -> None:
    rng = np.random.default_rng(7)
    rng.integers(0, 100, 3)
    words = halved_words_of(rng)
    state = HALVED("state")
    dtype = TABLE[name].draws[-1]
    after, z = Draw(name, dtype)(state, T.constant(5), *ready(name, PARAMETERS.get(name, ()), 1))
    assert after.type == HALVED
    for linker in ("py", "cvm"):
        f = symcomp.function([state], [after, z], mode=symcomp.Mode(linker=linker))
        rng = np.random.default_rng(7)
        rng.integers(0, 100, 3)
        now = words
        for _ in range(3):
            now, found = f(now)
            wanted = by_numpy(rng, name, *PARAMETERS.get(name, ()), size=(5,))
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(now, halved_words_of(rng))


def test_empty_and_scalar_draws() -> None:
    for name, values in PARAMETERS.items():
        state = T.random.state()
        _, none = Draw(name, TABLE[name].draws[-1])(state, T.constant(0), *ready(name, values, 1))
        _, one = Draw(name, TABLE[name].draws[-1])(state, *ready(name, values, 0))
        empty, single = symcomp.function([state], [none, one])(np.random.default_rng(0))
        outcomes = (3,) if TABLE[name].is_vector else ()
        assert empty.shape == (0, *outcomes), name
        assert single.shape == outcomes, name


def test_parameters_broadcast() -> None:
    n, p = np.array([[5], [100]]), np.array([[0.0, 0.3, 1.0]])
    start = T.random.state()
    size = T.lscalar("size")
    _, z = Draw("binomial", "int64")(start, T.constant(2), size, T.constant(n), T.constant(p))
    z = symcomp.function([start, size], z)(np.random.default_rng(5), 3)
    np.testing.assert_array_equal(z, np.random.default_rng(5).binomial(n, p, (2, 3)))
    assert z[:, 0].tolist() == [0, 0] and z[:, 2].tolist() == [5, 100]


def test_an_axis_stretches_only_if_its_length_is_known_to_be_1() -> None:
    lam, start = T.dvector("lam"), T.random.state()
    _, z = T.random.poisson(start, lam, size=3)
    f = symcomp.function([start, lam], z)
    rng = np.random.default_rng(0)
    assert f(rng, [1.0, 2.0, 3.0]).shape == (3,)
    with pytest.raises(ShapeError, match=r"poisson: lam has shape \(1,\).*size \(3,\)"):
        f(rng, [1.0])
    with pytest.raises(ShapeError, match="does not fit size"):
        T.random.poisson(start, np.ones(4), size=3)
    # One draw must not serve for several elements.
    _, z = T.random.normal(start, lam, size=1)
    f = symcomp.function([start, lam], z)
    assert f(rng, [1.0]).shape == (1,)
    with pytest.raises(ShapeError):
        f(rng, [1.0, 2.0])


def test_bad_parameters_are_named() -> None:
    start, p = T.random.state(), T.dvector("p")
    _, z = T.random.geometric(start, p)
    f = symcomp.function([start, p], z)
    with pytest.raises(ValueError, match=r"geometric: .*size \(2,\), p float64 of shape \(2,\)"):
        f(np.random.default_rng(0), [0.5, 2.0])
    _, z = T.random.categorical(start, p)
    f = symcomp.function([start, p], z)
    for wrong in ([0.5, 0.6], [np.nan, 1.0], [-0.5, 1.5], []):
        with pytest.raises(ValueError, match="categorical: p .* must hold probabilities"):
            f(np.random.default_rng(0), wrong)
    for size in (-1, (2, -1)):
        with pytest.raises(ShapeError, match="lengths must not be negative"):
            T.random.normal(start, size=size)
    n = T.lscalar()
    f = symcomp.function([start, n], T.random.normal(start, size=(2, n))[1])
    with pytest.raises(ShapeError, match=r"size is \(2, -3\); lengths must not be negative"):
        f(np.random.default_rng(0), -3)


def test_bad_arguments_of_the_op() -> None:
    state = T.random.state()
    with pytest.raises(DTypeError, match="the state must be a uint64 vector of 4 words"):
        Draw("standard_normal", "float64")(T.dvector())
    with pytest.raises(ValueError, match="there is no distribution 'gauss'"):
        Draw("gauss", "float64")(state)
    with pytest.raises(DTypeError, match="a state has 4 words of uint64"):
        RandomType("uint32", (4,))
    with pytest.raises(DTypeError, match="draws are float32 or float64, not int64"):
        Draw("standard_normal", "int64")(state)
    with pytest.raises(DTypeError, match="lam is float32 vector; float64 with 0 axes is needed"):
        Draw("poisson", "int64")(state, T.fvector())
    with pytest.raises(DTypeError, match="n is .*must be whole numbers: cast it to int64"):
        T.random.binomial(state, T.dscalar("n"), 0.5)
    with pytest.raises(DTypeError, match="must be real"):
        T.random.normal(state, T.zscalar())
    with pytest.raises(DTypeError, match="dtype is int32; it must be float16"):
        T.random.normal(state, dtype="int32")


def test_states_of_numpy_generators() -> None:
    kind = RandomType()
    rng = np.random.default_rng(5)
    words = kind.filter(rng)
    assert kind.filter(words) is words
    np.testing.assert_array_equal(kind.filter(rng.bit_generator), words)
    assert generator_at(words, np.random.default_rng()).random() == rng.random()
    legacy = kind.filter(np.random.RandomState(1))
    assert (legacy == kind.filter(np.random.RandomState(1))).all()
    assert (legacy != kind.filter(np.random.RandomState(2))).any()
    with pytest.raises(DTypeError, match="no state of PCG64"):
        kind.filter(np.random.Generator(np.random.Philox(1)))
    with pytest.raises(DTypeError, match="the last word must be odd"):
        kind.filter(np.zeros(4, np.uint64))
    with pytest.raises(DTypeError, match="no state of PCG64"):
        kind.filter(3)
    with pytest.raises(ValueError, match="seed: -1: .*not negative"):
        seeded(-1)
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert str(kind) == "random state"


def test_equal_draws_merge_and_others_do_not() -> None:
    a, b = T.random.state("a"), T.random.state("b")
    draws = [T.random.standard_normal(s, 3)[1] for s in (a, a, b)]
    f = symcomp.function([a, b], draws)
    assert sum(isinstance(node.op, Draw) for node in f.maker.fgraph.toposort()) == 2
    x, y, z = f(np.random.default_rng(1), np.random.default_rng(2))
    assert (x == y).all() and (x != z).all()


def test_a_call_that_fails_moves_no_state() -> None:
    state = symcomp.shared(np.random.default_rng(0))
    state.default_update, z = T.random.normal(state, size=3)
    x = T.dvector()
    f = symcomp.function([x], z + x)
    before = state.get_value(return_internal_type=True)
    with pytest.raises(ValueError):
        f([1.0, 2.0])
    assert (state.get_value(return_internal_type=True) == before).all()
    f([1.0, 2.0, 3.0])
    assert (state.get_value(return_internal_type=True) != before).any()


# -- derivatives


def test_what_has_no_derivative_says_so() -> None:
    state, k = T.random.state(), T.dscalar("k")
    _, z = T.random.vonmises(state, 0.0, k)
    with pytest.raises(NullTypeGradError, match="vonmises: the draw is no smooth function"):
        symcomp.grad(z, k)
    with pytest.raises(NullTypeGradError, match="vonmises"):
        symcomp.Rop(z, k, T.constant(1.0))


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 4.5, 300.0])
def test_the_slope_of_gamma_is_that_of_its_quantiles(shape: float) -> None:
    """dz / dshape at fixed P(shape, z), in 30 digits."""
    z = shape * 0.9 if shape > 0.5 else 1e-4
    with mp.workdps(30):

        def probability(a: Any, x: Any) -> Any:
            return mp.gammainc(a, 0, x, regularized=True)

        by_shape = mp.diff(lambda a: probability(a, z), shape)
        by_z = mp.mpf(z) ** (shape - 1) * mp.exp(-z) / mp.gamma(shape)
        wanted = float(-by_shape / by_z)
    got = float(_gamma_slope(T.constant(shape), T.constant(z)).eval())
    assert got == pytest.approx(wanted, rel=1e-9)


def test_gradients_of_gamma_in_both_modes() -> None:
    """The mean is the shape: the expectation of the slope is 1."""
    state, a = T.random.state(), T.dvector("a")
    _, z = T.random.gamma(state, a[:, None], size=(2, 20000))
    means = z.mean(axis=1)
    v = T.constant([1.0, -2.0])
    outputs = [symcomp.grad((means * v).sum(), a), symcomp.Rop(means, a, v)]
    back, forth = symcomp.function([state, a], outputs)(np.random.default_rng(0), [0.3, 6.0])
    np.testing.assert_allclose(back, [1.0, -2.0], rtol=0.03)
    np.testing.assert_allclose(forth, back, rtol=1e-12)


def test_gradients_flow_to_what_moves_and_scales() -> None:
    state, mean, scale = T.random.state(), T.dscalar("mean"), T.dscalar("scale")
    _, z = T.random.normal(state, mean, scale, size=4)
    slopes = symcomp.grad(z.sum(), [mean, scale])
    f = symcomp.function([state, mean, scale], [z, *slopes])
    z, by_mean, by_scale = f(np.random.default_rng(1), 3.0, 2.0)
    assert by_mean == 4
    assert by_scale == pytest.approx(((z - 3) / 2).sum())


def test_gradients_do_not_reach_sizes_and_states() -> None:
    state, n = T.random.state(), T.lscalar("n")
    _, z = T.random.normal(state, size=n)
    with pytest.raises((DisconnectedInputError, GradientError)):
        symcomp.grad(z.sum(), n)
