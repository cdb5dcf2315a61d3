"""Batch normalization against NumPy."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("axes", ["per-activation", "spatial", (0, 3), (1,)])
@pytest.mark.parametrize("skipped", [False, True])
def test_training(axes: Any, skipped: bool) -> None:
    x = 3 * RNG.normal(size=(4, 3, 2, 5)) + 1
    over = {"per-activation": (0,), "spatial": (0, 2, 3)}.get(axes, axes)
    shape = tuple(
        1 if a in over else n for a, n in enumerate(x.shape) if not (skipped and a in over)
    )
    gamma, beta, mean, var = (RNG.random(shape) + 0.5 for _ in range(4))

    def build(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        return T.nnet.bn.batch_normalization_train(x, gamma, beta, axes, 1e-3, 0.2, mean, var)

    def expected(x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        wide = [1 if a in over else n for a, n in enumerate(x.shape)]
        m, v = x.mean(axis=over, keepdims=True), x.var(axis=over, keepdims=True)
        invstd = 1 / np.sqrt(v + 1e-3)
        out = (x - m) * invstd * gamma.reshape(wide) + beta.reshape(wide)
        unbiased = x.var(axis=over, keepdims=True, ddof=1)
        return [
            out, m.reshape(shape), invstd.reshape(shape), 0.8 * mean + 0.2 * m.reshape(shape),
            0.8 * var + 0.2 * unbiased.reshape(shape),
        ]  # fmt: skip

    check(build, x, gamma, beta, mean, var, expected=expected, rtol=1e-9, tolerance=1e-5)


def test_running_averages_are_updates() -> None:
    x = T.fmatrix("x")
    mean, var = symcomp.shared(np.zeros(3, "f4")), symcomp.shared(np.ones(3, "f4"))
    one, zero = np.ones(3, "f4"), np.zeros(3, "f4")
    out, _, _, new_mean, new_var = T.nnet.bn.batch_normalization_train(
        x, one, zero, running_mean=mean, running_var=var
    )
    assert out.dtype == new_mean.dtype == new_var.dtype == "float32"
    train = symcomp.function([x], out, updates=[(mean, new_mean), (var, new_var)])
    test = symcomp.function([x], T.nnet.bn.batch_normalization_test(x, one, zero, mean, var))
    values = (2 * RNG.normal(size=(500, 3)) + 5).astype("f4")
    for _ in range(60):
        normal = train(values)
    np.testing.assert_allclose(normal.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(normal.std(axis=0), 1, atol=1e-3)
    np.testing.assert_allclose(test(values), normal, atol=0.02)


def test_by_a_given_mean_and_variance() -> None:
    x, g, b, m, v = (RNG.random(s) + 0.5 for s in ((4, 3), *[(3,)] * 4))
    check(
        lambda *a: T.nnet.bn.batch_normalization_test(*a, epsilon=0.1), x, g, b, m, v,
        expected=lambda x, g, b, m, v: (x - m) / np.sqrt(v + 0.1) * g + b,
    )  # fmt: skip
    check(
        T.nnet.bn.batch_normalization, x, g[None], b[None], m[None], v[None],
        expected=lambda x, g, b, m, v: (x - m) / v * g + b,
    )  # fmt: skip


def test_bad_arguments() -> None:
    x, p = T.dtensor4("x"), T.dvector("p")
    train = T.nnet.bn.batch_normalization_train
    with pytest.raises(ValueError, match="axes is 'all'"):
        train(x, p, p, "all")
    with pytest.raises(ShapeError, match="gamma is .*it must have 4 axes, or 3"):
        train(x, p, p)
    with pytest.raises(ValueError, match="running_mean and running_var go together"):
        train(x, p, p, "spatial", running_mean=p)
    with pytest.raises(ShapeError, match="inputs is the scalar"):
        train(T.dscalar(), p, p)
    with pytest.raises(ValueError, match="mode is 'fast'"):
        T.nnet.bn.batch_normalization(x, x, x, x, x, "fast")
