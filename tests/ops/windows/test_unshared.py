"""Convolution whose kernels differ from place to place, against its formula."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.windows.convolve import read_geometry
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)

#: border_mode, subsample, filter_dilation, num_groups
CASES: list[tuple[Any, Any, Any, int]] = [
    ("valid", (1, 1), (1, 1), 1),
    ("full", (2, 1), (1, 2), 1),
    ("half", (1, 1), (1, 1), 2),
    (((1, 0), (0, 2)), (2, 3), (2, 1), 3),
]


def values(case: Any, dtype: str = "float64") -> tuple[Any, Any, Any]:
    """Return an image, kernels, and the lengths of the result."""
    mode, steps, dilation, groups = case
    geometry = read_geometry("test", mode, steps, dilation, 2)
    counts = geometry.counts((6, 5), (2, 3))
    x = RNG.normal(size=(2, 2 * groups, 6, 5)).astype(dtype)
    w = RNG.normal(size=(2 * groups, *counts, 2, 2, 3)).astype(dtype)
    return x, w, counts


def written_out(x: Any, w: Any, case: Any) -> Any:
    """Compute the sums, place by place, with the kernels of each place for all."""
    mode, steps, dilation, groups = case
    z = np.empty((len(x), len(w), *w.shape[1:3]))
    a, b = T.dtensor4(), T.dtensor4()
    y = T.nnet.conv2d(
        a, b, border_mode=mode, subsample=steps, filter_dilation=dilation, num_groups=groups
    )
    f = symcomp.function([a, b], y)
    for i, j in np.ndindex(*w.shape[1:3]):
        z[:, :, i, j] = f(x, w[:, i, j])[:, :, i, j]
    return z


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_of_places(case: Any) -> None:
    x, w, _ = values(case)
    mode, steps, dilation, groups = case

    def build(x: Any, w: Any) -> Any:
        return T.nnet.conv2d(
            x, w, border_mode=mode, subsample=steps, filter_dilation=dilation, num_groups=groups,
            unshared=True,
        )  # fmt: skip

    check(build, x, w, expected=lambda x, w: written_out(x, w, case), rtol=1e-12)


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_adjoints_are_the_gradients(case: Any, flip: bool) -> None:
    x, w, counts = values(case)
    mode, steps, dilation, groups = case
    g = RNG.normal(size=(2, len(w), *counts))
    a, b, c = T.dtensor4("x"), T.tensor(dtype="float64", shape=(None,) * 6), T.dtensor4("g")
    parts = (mode, steps, flip)
    y = T.nnet.conv2d(a, b, None, None, *parts, None, dilation, groups, True)
    gradients = T.Lop(y, [a, b], c)
    adjoints = [
        T.nnet.abstract_conv.conv2d_grad_wrt_inputs(
            c, b, a.shape, None, *parts, dilation, groups, True
        ),
        T.nnet.abstract_conv.conv2d_grad_wrt_weights(
            a, c, b.shape, None, *parts, dilation, groups, True
        ),
    ]
    f = symcomp.function([a, b, c], [*gradients, *adjoints])
    found = f(x, w, g)
    for one, other in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_lengths_that_do_not_fit() -> None:
    x, w = T.dtensor4("x"), T.tensor(dtype="float64", shape=(None,) * 6)
    f = symcomp.function([x, w], T.nnet.conv2d(x, w, unshared=True))
    image = np.ones((1, 2, 4, 5))
    assert f(image, np.ones((3, 3, 4, 2, 2, 2))).shape == (1, 3, 3, 4)
    for shape, what in (((3, 4, 3, 2, 2, 2), "rows of places"), ((3, 3, 4, 1, 2, 2), "channels")):
        with pytest.raises(AssertionError, match=f"conv2d: the lengths of .*{what}.* do not fit"):
            f(image, np.ones(shape))
    with pytest.raises(ShapeError, match="unshared filters have 6 axes"):
        T.nnet.conv2d(x, x, unshared=True)
    with pytest.raises(ShapeError, match="rows of places of filters has length 4, which must be 3"):
        known = T.tensor(dtype="float64", shape=(3, 4, 4, 2, 2, 2))
        T.nnet.conv2d(T.tensor(dtype="float64", shape=(1, 2, 4, 5)), known, unshared=True)


def test_along_time() -> None:
    x, w = RNG.normal(size=(2, 3, 7)), RNG.normal(size=(4, 7, 3, 2))
    a, b = T.dtensor3(), T.dtensor4()
    y = T.nnet.abstract_conv.causal_conv1d(a, b, (4, 7, 3, 2), filter_flip=False, unshared=True)
    before = np.concatenate([np.zeros((2, 3, 1)), x], axis=2)
    expected = np.stack(
        [np.einsum("bck,ock->bo", before[:, :, t : t + 2], w[:, t]) for t in range(7)], axis=2
    )
    np.testing.assert_allclose(y.eval({a: x, b: w}), expected, rtol=1e-12)
