"""Philox: its bits, the distributions made of them, states and streams."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ops.elementwise.scalar_counter import mul_high, philox_first, philox_last
from symcomp.ops.random.state import seeded_counter
from symcomp.tensor.shared_randomstreams import RandomStreams

# From the vectors of known answers that the authors publish: counter, key, bits.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
MODES = ("cvm", "py")
STATE = T.random.state("state", "philox")
START = seeded_counter(7)


def words(*halves: int) -> list[np.uint64]:
    return [np.uint64(a | b << 32) for a, b in zip(halves[::2], halves[1::2], strict=True)]


@pytest.mark.parametrize("mode", MODES)
def test_known_answers(mode: str) -> None:
    low, high, key = (TensorType("uint64", (None,))(name) for name in ("low", "high", "key"))
    z = [philox_first(low, high, key), philox_last(low, high, key)]
    f = symcomp.function([low, high, key], z, mode=symcomp.Mode(mode))
    given = [np.array(column) for column in zip(*(words(*c, *k) for c, k, _ in KNOWN), strict=True)]
    wanted = [np.array(column) for column in zip(*(words(*b) for _, _, b in KNOWN), strict=True)]
    np.testing.assert_array_equal(f(*given), wanted)


@pytest.mark.parametrize("mode", MODES)
def test_upper_words_of_products(mode: str) -> None:
    x, y = (TensorType("uint64", (None,))(name) for name in "xy")
    f = symcomp.function([x, y], mul_high(x, y), mode=symcomp.Mode(mode))
    top = 2**64 - 1
    a = [0, 1, top, top, 2**63, 0xDEADBEEFCAFEBABE, 2**32, 2**32 - 1]
    b = [top, top, top, 2, 3, 0x123456789ABCDEF1, 2**32, 2**32 + 1]
    wanted = [p * q >> 64 for p, q in zip(a, b, strict=True)]
    assert f(np.array(a, "uint64"), np.array(b, "uint64")).tolist() == wanted


def test_elements_do_not_depend_on_the_shape_of_the_draw() -> None:
    n = T.lscalar("n")
    shapes = [(24,), (4, 6), (2, 3, 4), (1, 24), (n, 6), (n, 3, 2)]
    draws = [T.random.uniform(STATE, size=s, dtype="float64") for s in shapes]
    f = symcomp.function([STATE, n], [x for pair in draws for x in pair])
    found = f(START, 4)
    for after, z in zip(found[::2], found[1::2], strict=True):
        assert after.tolist() == [*START[:2], 24]
        assert z.ravel().tolist() == found[1].tolist()
    one = T.random.uniform(STATE, size=(), dtype="float64")[1].eval({STATE: START})
    assert one.shape == () and one == found[1][0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "laplace", "gumbel"])
def test_distributions(name: str, dtype: str, mode: str) -> None:
    z = getattr(T.random, name)(STATE, size=(20, 1000), dtype=dtype)[1]
    found = symcomp.function([STATE], z, mode=symcomp.Mode(mode))(START)
    law = {"exponential": "expon", "normal": "norm", "gumbel": "gumbel_r"}.get(name, name)
    assert (found.dtype, found.shape) == (np.dtype(dtype), (20, 1000))
    assert np.isfinite(found).all()
    precise = found.astype("float64").ravel()
    # Elements of float16 lie on steps, of which the statistic is half a step off.
    assert stats.kstest(precise, law).statistic < (0.012 if dtype != "float16" else 0.015)
    rows = precise.reshape(20, 1000)
    assert abs(np.corrcoef(rows)[np.triu_indices(20, 1)]).max() < 0.15


@pytest.mark.parametrize("mode", MODES)
def test_integers(mode: str) -> None:
    low, high = T.lvector("low"), T.lscalar("high")
    z = [
        T.random.integers(STATE, -5, 5, size=50_000)[1],
        T.random.integers(STATE, low, high, size=(7, 3))[1],
        T.random.integers(STATE, -(2**63), 2**63 - 1, size=1000)[1],
        T.random.bernoulli(STATE, 0.3, size=50_000, dtype="bool")[1],
        T.random.binomial(STATE, 1, 0.3, size=50_000, dtype="bool")[1],
    ]
    f = symcomp.function([STATE, low, high], z, mode=symcomp.Mode(mode))
    few, between, far, truth, same = f(START, [0, 5, 8], 10)
    assert stats.chisquare(np.bincount(few + 5, minlength=10)).pvalue > 1e-3 and few.min() == -5
    assert (between < 10).all() and (between >= [0, 5, 8]).all()
    assert abs(far.astype("float64").mean()) < 2**63 * 0.06 and far.min() < 0 < far.max()
    assert abs(truth.mean() - 0.3) < 0.01 and (truth == same).all()
    with pytest.raises(AssertionError, match="integers: low must be below high"):
        f(START, [0, 5, 10], 10)


def test_what_it_does_not_draw() -> None:
    with pytest.raises(ValueError, match="poisson: Philox draws standard_uniform.*'pcg64'"):
        T.random.poisson(STATE, 3.0)
    n = T.lscalar("n")
    f = symcomp.function([STATE, n], T.random.uniform(STATE, size=(n,))[1])
    assert f(START, 0).shape == (0,)
    with pytest.raises(ShapeError, match="lengths must not be negative"):
        f(START, -1)


def test_streams() -> None:
    a, b = (T.random.RandomStream(3, generator="philox") for _ in range(2))
    x, y = a.normal(size=5), a.normal(size=5)
    z = b.normal(size=5)
    f, g = symcomp.function([], [x, y]), symcomp.function([], z)
    first, other = f()
    np.testing.assert_array_equal(g(), first)
    assert (first != other).all() and (g() == f()[0]).all()
    assert x.rng.get_value().tolist()[2] == 10
    a.seed(3)
    np.testing.assert_array_equal(f()[0], first)
    x.rng.set_value(START)
    assert (f()[0] != first).all()
    assert "seed=3" in repr(a)
    with pytest.raises(ValueError, match="generator='mt': must be one of pcg64, philox"):
        T.random.RandomStream(generator="mt")


def test_the_generator_of_the_configuration() -> None:
    with config.change_flags(random_generator="philox"):
        streams = RandomStreams(1)
    assert streams.generator == "philox"
    z = streams.binomial((1000,), p=0.9)
    assert z.rng.type.shape == (3,) and 850 < symcomp.function([], z)().sum() < 950
    assert RandomStreams(1).generator == "pcg64"


def test_draws_in_loops() -> None:
    stream = T.random.RandomStream(1, generator="philox")
    walk, updates = symcomp.scan(
        lambda x: x + stream.normal(dtype="float64"), outputs_info=T.constant(0.0), n_steps=50
    )
    f = symcomp.function([], walk, updates=updates)
    steps = np.diff(f(), prepend=0)
    whole = T.random.normal(STATE, size=50, dtype="float64")[1].eval({STATE: stream._words(0)})
    np.testing.assert_allclose(steps, whole, rtol=0, atol=1e-14)
    assert stream.state_updates[0][0].get_value()[2] == 50


def test_gradients_of_parameters() -> None:
    mean, std = T.dscalars("mean", "std")
    stream = T.random.RandomStream(1, generator="philox")
    moment = (stream.normal(mean, std, size=20_000, dtype="float64") ** 2).mean()
    f = symcomp.function([mean, std], symcomp.grad(moment, [mean, std]))
    np.testing.assert_allclose(f(1.0, 2.0), [2, 4], rtol=0.05)


def test_saved_functions_continue(tmp_path: Path) -> None:
    stream = T.random.RandomStream(1, generator="philox")
    f = symcomp.function([], stream.uniform(size=3))
    f()
    symcomp.save(tmp_path / "f", f)
    g = symcomp.load(tmp_path / "f")
    np.testing.assert_array_equal(f(), g())
