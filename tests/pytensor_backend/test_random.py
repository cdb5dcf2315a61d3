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
#: name -> parameters
VARIABLES = {
    "uniform": (0.5, 3.0), "normal": (A, B), "halfnormal": (A, 2.0),
    "exponential": (B,), "gamma": (A, B), "invgamma": (A, B),
    "beta": (A, B), "lognormal": (A, 0.3), "laplace": (A, B),
    "logistic": (A, B), "triangular": (-1.0, 0.2, A), "weibull": (A,),
    "vonmises": (0.3, A), "wald": (A, B), "t": (A + 1, 0.2, B),
    "bernoulli": (P,), "binomial": (10, P), "poisson": (A,),
    "geometric": (P,), "negative_binomial": (A, 0.4), "categorical": (P,),
    "beta_binomial": (9, A, B), "cauchy": (A, B), "halfcauchy": (A, B),
    "pareto": (A, B), "gumbel": (A, B), "integers": (-3, 1000),
    "dirichlet": (P,), "multinomial": (9, P), "truncexpon": (A, 0, 1),
    "hypergeometric": (10, 7, 6), "gengamma": (A, 2.0, 1.0),
    "multivariate_normal": (A, np.eye(3) + 0.3),
}  # fmt: skip


NAMES = {"gamma": "_gamma", "beta_binomial": "betabinom"}


def variable(name):
    return getattr(ptr, NAMES.get(name, name))


def agree(op, parameters, size):
    """Check draws and states of four calls against PyTensor's ``perform``."""
    inputs = [pt.tensor(dtype=np.asarray(p).dtype, shape=np.shape(p)) for p in parameters]
    rng = pytensor.shared(np.random.default_rng(9), name="rng")
    after, z = op(*inputs, size=size, rng=rng, return_next_rng=True)
    given = pt.random.rng("given")
    after_given, z_given = op(*inputs, size=size, rng=given, return_next_rng=True)
    f = pytensor.function(inputs, z, updates={rng: after}, mode="SYMCOMP")
    g = pytensor.function([given, *inputs], [after_given, z_given], mode=Mode("py", None))
    assert backend.fallbacks(f) == {}
    generator = np.random.default_rng(9)
    for _ in range(4):
        generator, want = g(generator, *parameters)
        got = f(*parameters)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)
        assert rng.get_value().bit_generator.state == generator.bit_generator.state
    assert after_given.type == after.type


@pytest.mark.parametrize("name", VARIABLES)
def test_draws(name):
    parameters = VARIABLES[name]
    op = variable(name)
    of_vectors = any(op.ndims_params) and name != "multivariate_normal"
    single = [np.float32(p) if np.asarray(p).dtype == "float64" else p for p in parameters]
    for size in (None, (4, 2) if of_vectors else (4, 2, 3)):
        agree(op, parameters, size)
        if name != "multivariate_normal":  # NumPy factorizes a matrix of float32 in float32
            agree(op, single, size)


@pytest.mark.parametrize("name", VARIABLES)
def test_draws_of_one_and_of_none(name):
    """Scalars, lengths of 1 and of 0, and sizes without axes."""
    op = variable(name)
    parameters = [
        np.asarray(p)[(0,) * (np.ndim(p) - core)]
        for p, core in zip(VARIABLES[name], op.ndims_params, strict=True)
    ]
    for size in ((), (1,), (0,), (2, 0), (5,)):
        agree(op, parameters, size)


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


@pytest.mark.parametrize("method", ["cholesky", "svd", "eigh"])
def test_normal_vectors(method):
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    op = ptr.MvNormalRV(method=method)
    means = np.arange(6.0).reshape(3, 2)
    agree(op, (means, cov), None)
    agree(op, (means[0], np.stack([cov, 2 * cov])), None)
    agree(op, (means, np.stack([cov] * 3)), (2, 3))
    f = pytensor.function([], op(means, -cov, return_next_rng=True)[1], mode="SYMCOMP")
    if method == "cholesky":
        with pytest.raises(np.linalg.LinAlgError):
            f()


def test_no_scale_draws_nothing():
    """SciPy returns ``loc`` then, and leaves the generator as it is."""
    for op in (ptr.t, ptr.cauchy, ptr.gumbel, ptr.halfnormal):
        first = (3.0,) if op is ptr.t else ()
        agree(op, (*first, A, 0.0), (2, 3))
        agree(op, (*first, A, np.array([0.0, 1.0, 0.0])), (2, 3))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_permutations(dtype):
    x = np.arange(20).astype(dtype)
    for value in (x, x[:0], x[:1], x.reshape(5, 4), np.asarray(7, "int64"), np.asarray(0, "int64")):
        agree(pt.random.permutation, (value,), None)


def test_choices():
    x, p = np.arange(12.0), np.array([0.1, 0.0, 0.3, 0.2, 0.4])

    def op(a, *p, size, **kwargs):
        return pt.random.choice(a, size=size, replace=False, p=p[0] if p else None, **kwargs)

    for size in ((), 3, (2, 2), (0,), (12,)):
        agree(op, (x,), size)
    agree(op, (x.reshape(6, 2),), (2, 3))
    agree(op, (np.asarray(20000, "int64"),), 500)  # a share beyond which NumPy shuffles all
    agree(op, (np.asarray(10, "int64"),), 4)
    for size in (1, 4, (2, 2)):
        agree(op, (x[:5], p), size)
    for items, size, replace in ((x, 13, False), (x[:0], (2,), True)):
        rng = pt.random.rng("rng")
        _, z = pt.random.choice(items, size, replace=replace, rng=rng, return_next_rng=True)
        f = pytensor.function([rng], z, mode="SYMCOMP")
        with pytest.raises(ValueError, match=r".+"):
            f(np.random.default_rng(1))
