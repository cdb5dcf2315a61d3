"""Random variables: the draws of NumPy's generators, bit for bit, and the state after them."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt  # noqa: E402
import pytensor.tensor.random.basic as ptr  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402

A, B = np.array([0.5, 2.0, 7.5]), np.array([[1.5], [0.4]])
P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
#: name -> (parameters, whether symcomp draws)
VARIABLES = {
    "uniform": ((0.5, 3.0), True), "normal": ((A, B), True), "halfnormal": ((A, 2.0), True),
    "exponential": ((B,), True), "gamma": ((A, B), True), "invgamma": ((A, B), True),
    "beta": ((A, B), True), "lognormal": ((A, 0.3), True), "laplace": ((A, B), True),
    "logistic": ((A, B), True), "triangular": ((-1.0, 0.2, A), True), "weibull": ((A,), True),
    "vonmises": ((0.3, A), True), "wald": ((A, B), True), "t": ((A + 1, 0.2, B), True),
    "bernoulli": ((P,), True), "binomial": ((10, P), True), "poisson": ((A,), True),
    "geometric": ((P,), True), "negative_binomial": ((A, 0.4), True), "categorical": ((P,), True),
    "beta_binomial": ((9, A, B), True), "cauchy": ((A, B), False), "halfcauchy": ((A, B), False),
    "pareto": ((A, B), False), "gumbel": ((A, B), False), "integers": ((-3, 1000), False),
    "dirichlet": ((P,), False), "multinomial": ((9, P), False), "truncexpon": ((A, 0, 1), False),
    "hypergeometric": ((10, 7, 6), False), "gengamma": ((A, 2.0, 1.0), False),
    "multivariate_normal": ((A, np.eye(3) + 0.3), False),
}  # fmt: skip
VARIABLES |= {"student t in float32": ((np.float32(A), np.float32(0), np.float32(1)), True)}


NAMES = {"gamma": "_gamma", "beta_binomial": "betabinom", "student t in float32": "t"}


def variable(name):
    return getattr(ptr, NAMES.get(name, name))


@pytest.mark.parametrize("name", VARIABLES)
def test_draws(name):
    parameters, native = VARIABLES[name]
    inputs = [pt.tensor(dtype=np.asarray(p).dtype, shape=np.shape(p)) for p in parameters]
    op = variable(name)
    of_vectors = any(op.ndims_params) and name != "multivariate_normal"
    for size in (None, (4, 2) if of_vectors else (4, 2, 3)):
        rng = pytensor.shared(np.random.default_rng(9), name="rng")
        after, z = op(*inputs, size=size, rng=rng, return_next_rng=True)
        given = pt.random.rng("given")
        after_given, _ = op(*inputs, size=size, rng=given, return_next_rng=True)
        f = pytensor.function(inputs, z, updates={rng: after}, mode="SYMCOMP")
        g = pytensor.function(
            [given, *inputs],
            op(*inputs, size=size, rng=given, return_next_rng=True),
            mode=Mode("py", None),
        )
        assert bool(backend.fallbacks(f)) is not native
        generator = np.random.default_rng(9)
        for _ in range(4):
            generator, want = g(generator, *parameters)
            got = f(*parameters)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)
            assert rng.get_value().bit_generator.state == generator.bit_generator.state
        assert after_given.type == after.type


def test_halves_of_words_stay():
    """Integers take half of a 64-bit word each: other draws leave the other half where it is."""
    rng = pt.random.rng("rng")
    state, i = pt.random.integers(0, 100, rng=rng, size=(3,), return_next_rng=True)
    state, z = pt.random.normal(rng=state, size=(2,), return_next_rng=True)
    state, j = pt.random.integers(0, 100, rng=state, size=(3,), return_next_rng=True)
    f = pytensor.function([rng], [i, z, j, state], mode="SYMCOMP")
    expected = np.random.default_rng(2)
    want = [expected.integers(0, 100, 3), expected.normal(size=2), expected.integers(0, 100, 3)]
    given = np.random.default_rng(2)
    *got, after = f(given)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    assert after.bit_generator.state == expected.bit_generator.state
    assert given.bit_generator.state == np.random.default_rng(2).bit_generator.state
    assert len(after.spawn(2)) == 2


@pytest.mark.parametrize("bits", [np.random.Philox, np.random.MT19937, np.random.SFC64])
def test_other_generators_are_python_objects(bits):
    rng = pt.random.rng("rng")
    state, z = pt.random.normal(0.0, [1.0, 2.0], rng=rng, return_next_rng=True)
    f = pytensor.function([rng], [z, state], mode="SYMCOMP")
    for generator in (np.random.Generator(bits(3)), np.random.default_rng(3)):
        got, after = f(generator)
        want = np.random.Generator(type(generator.bit_generator)(3)).normal(0.0, [1.0, 2.0])
        np.testing.assert_array_equal(got, want)
        assert type(after.bit_generator) is type(generator.bit_generator)
    shared = pytensor.shared(np.random.Generator(bits(5)))
    state, z = pt.random.uniform(rng=shared, return_next_rng=True)
    g = pytensor.function([], z, updates={shared: state}, mode="SYMCOMP")
    expected = np.random.Generator(bits(5))
    assert [g(), g()] == [expected.uniform(), expected.uniform()]


def test_parameters_are_stretched_when_the_function_runs():
    """As NumPy does; PyTensor refuses that everywhere else."""
    loc, n = pt.dvector("loc"), pt.lscalar("n")
    rng = pt.random.rng("rng")
    _, z = pt.random.normal(loc, 1.0, size=(2, n), rng=rng, return_next_rng=True)
    f = pytensor.function([rng, loc, n], z, mode="SYMCOMP")
    for value in (np.ones(1), np.arange(3.0)):
        want = np.random.default_rng(1).normal(value, 1.0, size=(2, 3))
        np.testing.assert_array_equal(f(np.random.default_rng(1), value, 3), want)


def test_wrong_parameters():
    x, rng = pt.dvector("x"), pt.random.rng("rng")
    for op in (ptr.normal, ptr.uniform, ptr.halfnormal, ptr._gamma, ptr.poisson, ptr.binomial):
        known = {"poisson": (x,), "binomial": (3, x), "uniform": (0.0, x)}
        parameters = known.get(op.name, (1.0, x))
        _, z = op(*parameters, rng=rng, return_next_rng=True)
        f = pytensor.function([rng, x], z, mode="SYMCOMP")
        with pytest.raises(ValueError, match=r".+"):
            f(np.random.default_rng(1), np.array([0.5, -2.0]))


def test_permutations_and_choices():
    rng, v = pt.random.rng("rng"), pt.dvector("v")
    _, p = pt.random.permutation(v, rng=rng, return_next_rng=True)
    _, c = pt.random.choice(v, size=2, replace=False, rng=rng, return_next_rng=True)
    f = pytensor.function([rng, v], [p, c], mode="SYMCOMP")
    values = np.arange(6.0)
    got = f(np.random.default_rng(3), values)
    np.testing.assert_array_equal(got[0], np.random.default_rng(3).permutation(values))
    want = np.random.default_rng(3).choice(values, 2, replace=False)
    np.testing.assert_array_equal(got[1], want)
