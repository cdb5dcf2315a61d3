"""Entropies of softmax weights and divergences of two, beside arithmetic with 60 digits."""

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.tests.exact import units_off
from symcomp.tests.harness import check

CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
OTHER = np.random.default_rng(1).normal(size=(2, 3, 4))
AXES = [(0,), (1,), (2,), (0, 2), (0, 1, 2)]
# Even and uneven weights, and one weight that is nearly 1.
LINES = [[0.3, -1.2, 2.2, 0.7], [40.0, -3.0, 0.5, 1.5], [1e-9, -3e-9, 2e-10, 5e-11]]
# Pairs of logits: apart, close to one another, and with weights that underflow.
PAIRS = [
    ([0.3, -1.2, 2.2, 0.7], [0.5, -1.0, 2.0, 0.1]),
    ([0.3, -1.2, 2.2, 0.7], [0.3 + 1e-7, -1.2, 2.2, 0.7 - 3e-8]),
    ([1000.0, 1001.5, 998.0, -3.0], [1001.0, 1000.5, 998.0, -3.0]),
    ([40.0, 0.0, 1.0, 2.0], [-5.0, 0.0, 1.0, 2.0]),
    ([1e-9, 2e-9, 0.0, 5e-10], [0.0, 1e-12, 0.0, 0.0]),
    ([-100.0, 0.0, 0.5, 0.1], [0.0, 0.0, 0.5, 0.1]),
    ([1e4, 1.0, 0.0, -1e4], [-1e4, 1.0, 0.0, 1e4]),
]


def weights(x, axes):
    e = np.exp(x.astype("float64"))
    return e / e.sum(axis=axes, keepdims=True)


def exact_weights(x):
    e = [mp.exp(mp.mpf(float(v))) for v in x]
    return [v / sum(e) for v in e]


@pytest.mark.parametrize("axes", AXES)
def test_negative_entropy(axes):
    def entropy(x):
        p = weights(x, axes)
        return (p * np.log(p)).sum(axis=axes).astype(x.dtype)

    check(NegativeEntropy(axes), CUBE, expected=entropy, rtol=1e-10)
    check(NegativeEntropy(axes), CUBE.astype("float32"), expected=entropy)
    check(NegativeEntropy(axes), CUBE.astype("float16"), expected=entropy, grad=False)


@pytest.mark.parametrize("axes", AXES)
def test_divergence(axes):
    def divergence(x, y):
        p, q = weights(x, axes), weights(y, axes)
        return (p * np.log(p / q)).sum(axis=axes).astype(x.dtype)

    check(Divergence(axes), CUBE, OTHER, expected=divergence, rtol=1e-10)
    narrow = [v.astype("float32") for v in (CUBE, OTHER)]
    check(Divergence(axes), *narrow, expected=divergence)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_sums_of_no_elements_are_0(shape, axes):
    x = np.zeros(shape)
    kept = tuple(n for a, n in enumerate(shape) if a not in axes)
    for z in (NegativeEntropy(axes).perform(x), Divergence(axes).perform(x, x)):
        assert z.shape == kept and (z == 0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_entropies_are_right_to_the_last_digits(dtype):
    """Where one weight is nearly 1, and the derivative where all are nearly equal."""
    variable = T.vector("x", dtype=dtype)
    entropy = NegativeEntropy((0,))(variable)
    f = symcomp.function([variable], [entropy, symcomp.grad(entropy, variable)])
    for x in np.array(LINES, dtype):
        got, slopes = f(x)
        with mp.workdps(60):
            p = exact_weights(x)
            want = sum(v * mp.log(v) for v in p)
            assert units_off(got, want) <= 4
            for slope, v in zip(slopes, p, strict=True):
                assert units_off(slope, v * (mp.log(v) - want)) <= 8


@pytest.mark.parametrize("linker", ["py", "vm"])
def test_classes_that_are_masked_do_not_count(linker):
    x, y = T.dvectors("x", "y")
    p = T.softmax(x)
    for z in (T.sum(T.xlogx(p)), T.sum(p * T.log(p / T.softmax(y)))):
        slope = symcomp.grad(z, x)
        outputs = [z, slope, symcomp.grad(slope[1], x)]
        mode = symcomp.Mode(linker=linker)
        f = symcomp.function([x, y], outputs, mode=mode, on_unused_input="ignore")
        masked, small = (f([v, 0.3, -1.2, 2.2], [v, 1, 2, 3]) for v in (-np.inf, -800.0))
        for found, wanted in zip(masked, small, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
        nothing = np.full(4, -np.inf)
        assert np.isnan(f(nothing, nothing)[0])


@pytest.mark.parametrize("linker", ["py", "vm"])
def test_divergences_are_right_to_the_last_digits(linker):
    x, y = T.dvectors("x", "y")
    divergence = Divergence((0,))(x, y)
    outputs = [divergence, *symcomp.grad(divergence, [x, y])]
    f = symcomp.function([x, y], outputs, mode=symcomp.Mode(linker=linker))
    for a, b in PAIRS:
        got, of_x, of_y = f(a, b)
        with mp.workdps(700):
            p, q = exact_weights(a), exact_weights(b)
            logs = [mp.log(v / w) for v, w in zip(p, q, strict=True)]
            want = sum(v * t for v, t in zip(p, logs, strict=True))
            assert units_off(got, want) <= 4
            # Deviations from the mean are known in units of the largest logarithm.
            largest = max(map(abs, logs))
            for z, v, t in zip(of_x, p, logs, strict=True):
                assert abs(z - v * (t - want)) <= 1e-15 * v * largest + 1e-300
            for z, v, w in zip(of_y, p, q, strict=True):
                size = max(abs(w - v), min(v, w) * largest)
                assert abs(z - (w - v)) <= 1e-15 * size + 1e-300


def test_divergences_are_not_negative():
    rng = np.random.default_rng(2)
    x, y = T.dmatrices("x", "y")
    p, q = T.softmax(x), T.softmax(y)
    f = symcomp.function([x, y], T.sum(p * (T.log(p) - T.log(q)), axis=1))
    logits = rng.normal(size=(200, 7))
    found = f(logits, logits * (1 + 1e-15 * rng.normal(size=logits.shape)))
    assert (found >= 0).all() and (found < 1e-25).all()
    assert (f(logits, logits) == 0).all()
