"""Pooling against windows written out."""

import itertools
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.windows.pooling import AtPositions, MaxPool, SumPool, SumPoolInputs, ToPositions
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)


def windows(n: int, k: int, s: int, p: int, partial: bool) -> list[tuple[int, int]]:
    """Return where windows begin and end along an axis of the padded image."""
    found = []
    start = 0
    while True:
        end = start + k
        if partial:
            # Another window, if it has elements that no earlier one had.
            if start >= n or (found and found[-1][1] >= n):
                break
        elif end > n + 2 * p:
            break
        found.append((start, min(end, n + 2 * p)))
        start += s
    return found


def written_out(x: Any, op: Any, mode: str) -> Any:
    """Compute the definition: for each window a NumPy reduction."""
    (h, w), (a, b) = x.shape[-2:], op.padding
    rows = windows(h, op.window[0], op.strides[0], a, op.partial)
    columns = windows(w, op.window[1], op.strides[1], b, op.partial)
    z = np.zeros((*x.shape[:-2], len(rows), len(columns)))
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            own = x[..., max(top - a, 0) : bottom - a, max(left - b, 0) : right - b]
            if mode == "max":
                z[..., i, j] = own.max(axis=(-2, -1))
            else:
                within = own.shape[-2] * own.shape[-1]
                size = {"sum": 1, "average_exc_pad": within}.get(
                    mode, (bottom - top) * (right - left)
                )
                z[..., i, j] = own.sum(axis=(-2, -1)) / size
    return z


SIZES = [
    # window, strides, padding, partial
    ((2, 2), (2, 2), (0, 0), False),
    ((2, 2), (2, 2), (0, 0), True),
    ((3, 2), (1, 2), (0, 0), True),
    ((3, 2), (2, 3), (0, 0), True),
    ((3, 3), (2, 1), (1, 2), False),
    ((1, 1), (1, 1), (0, 0), False),
    ((2, 3), (4, 4), (0, 0), True),
    ((9, 9), (9, 9), (0, 0), True),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
def test_pooling(mode: str, sizes: Any) -> None:
    x = RNG.normal(size=(2, 1, 7, 6))
    if mode == "max":
        op = MaxPool(*sizes)
        check(lambda x: op(x)[0], x, expected=written_out(x, op, mode))
        return
    pool = SumPool(*sizes, mode)
    z = written_out(x, pool, mode)
    check(pool, x, expected=z)
    g = RNG.normal(size=z.shape)
    spread = SumPoolInputs(*sizes, mode)
    back = spread(T.constant(g), 7, 6).eval()
    assert (back * x).sum() == pytest.approx((z * g).sum())
    check(lambda g: spread(g, 7, 6), g, expected=back)


def test_where_the_largest_are() -> None:
    x = RNG.normal(size=(2, 5, 5))
    z, where = MaxPool((2, 3), (2, 3), (0, 1), False)(T.constant(x))
    found, places = symcomp.function([], [z, where])()
    check(AtPositions(2), x, places, expected=found)
    g = RNG.normal(size=found.shape)
    back = ToPositions(2)(T.constant(g), T.constant(places), 5, 5).eval()
    assert (back * x).sum() == pytest.approx((found * g).sum())
    check(lambda g, w: ToPositions(2)(g, w, 5, 5), g, places, expected=back)


def test_second_derivatives() -> None:
    x = T.dtensor4("x")
    y = T.signal.pool.pool_2d(x, (2, 2), ignore_border=True)
    symcomp.gradient.verify_grad(
        lambda x: symcomp.grad((T.signal.pool.pool_2d(x, (2, 2)) ** 3).sum(), x),
        [RNG.normal(size=(1, 2, 4, 5))],
    )
    assert y.type.ndim == 4


def test_ties_nan_and_infinity() -> None:
    x = T.dmatrix("x")
    z = T.signal.pool.pool_2d(x, (1, 3))
    f = symcomp.function([x], [z, symcomp.grad(z.sum(), x)])
    nan, inf = np.nan, np.inf
    values = np.array([[2, 2, 1], [nan, 3, nan], [4, nan, 9], [-inf, -inf, -inf], [1, inf, inf]])
    z, g = f(values)
    np.testing.assert_array_equal(z[:, 0], [2, nan, nan, -inf, inf])
    assert g.argmax(axis=1).tolist() == [0, 0, 1, 0, 1]
    assert (g.sum(axis=1) == 1).all()
    padded = T.signal.pool.pool_2d(x, (2, 2), True, (1, 1), (1, 1))
    assert (padded.eval({x: np.full((2, 2), -inf)}) == -inf).all()
    slope = symcomp.grad(padded.sum(), x).eval({x: np.full((2, 2), -5.0)})
    assert slope.sum() == 9


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "float32"])
def test_dtypes(dtype: str) -> None:
    x = (20 * RNG.random((2, 4, 5))).astype(dtype)
    loose = {"rtol": 2e-3, "grad": False} if dtype == "float16" else {"grad": dtype[0] == "f"}
    op = MaxPool((2, 2), (2, 2), (0, 0), True)
    check(lambda x: op(x)[0], x, expected=written_out(x, op, "max").astype(dtype), **loose)
    total = SumPool((2, 2), (2, 2), (0, 0), True, "sum")
    check(total, x, expected=written_out(x, total, "sum").astype(dtype), **loose)
    mean = T.signal.pool.pool_2d(T.constant(x), (2, 2), mode="average_exc_pad")
    assert mean.dtype == (dtype if dtype[0] == "f" else T.sqrt(T.constant(x)).dtype)
    wanted = written_out(x.astype("float64"), total, "average_exc_pad")
    np.testing.assert_allclose(mean.eval(), wanted, rtol=2e-3)


def test_arguments() -> None:
    x = T.dtensor3("x")
    values = RNG.normal(size=(2, 6, 7))
    one = T.signal.pool.pool_2d(x, 3, stride=2, ignore_border=True, pad=1).eval({x: values})
    old = T.signal.pool.pool_2d(x, ds=(3, 3), st=(2, 2), ignore_border=True, padding=(1, 1))
    np.testing.assert_array_equal(one, old.eval({x: values}))
    by_name = T.signal.downsample.max_pool_2d(x, (2, 2), ignore_border=True)
    np.testing.assert_array_equal(
        by_name.eval({x: values}), values[:, :, :6].reshape(2, 3, 2, 3, 2).max((2, 4))
    )
    assert T.signal.pool.pool_2d(T.ftensor4(), (2, 2)).type.shape == (None,) * 4
    shaped = T.tensor("float32", (5, 3, 8, 9))
    assert T.signal.pool.pool_2d(shaped, (2, 2)).type.shape == (5, 3, 4, 5)
    with pytest.raises(ValueError, match="pool_2d: ws is"):
        T.signal.pool.pool_2d(x, (0, 2))
    with pytest.raises(TypeError, match="pool_2d: ws, the lengths of the windows, is missing"):
        T.signal.pool.pool_2d(x)
    with pytest.raises(ValueError, match="padding goes with ignore_border=True alone"):
        T.signal.pool.pool_2d(x, 3, pad=1)
    with pytest.raises(ValueError, match="must be smaller than ws"):
        T.signal.pool.pool_2d(x, 3, True, pad=3)
    with pytest.raises(ValueError, match="mode is 'mean'"):
        T.signal.pool.pool_2d(x, 3, mode="mean")
    with pytest.raises(ShapeError, match="it must have 2 axes at least"):
        T.signal.pool.pool_2d(T.dvector(), 3)
    with pytest.raises(ShapeError, match=r"windows of \(9, 9\) do not fit an image of \(8, 9\)"):
        T.signal.pool.pool_2d(shaped, (9, 9), ignore_border=True)
    with pytest.raises(DTypeError, match="real numbers are needed"):
        T.signal.pool.pool_2d(T.zmatrix(), 2)
    f = symcomp.function([x], T.signal.pool.pool_2d(x, 9, ignore_border=True))
    with pytest.raises(ShapeError, match="windows of"):
        f(values)


def test_pooling_of_volumes() -> None:
    x = RNG.normal(size=(2, 4, 5, 6))
    v = T.dtensor4("v")
    z = T.signal.pool.pool_3d(v, (2, 2, 3), True).eval({v: x})
    wanted = x[:, :, :4].reshape(2, 2, 2, 2, 2, 2, 3).max((2, 4, 6))
    np.testing.assert_array_equal(z, wanted)
    z = T.signal.pool.pool_3d(v, (2, 2, 3), True, mode="average_inc_pad").eval({v: x})
    np.testing.assert_allclose(z, x[:, :, :4].reshape(2, 2, 2, 2, 2, 2, 3).mean((2, 4, 6)))


def test_the_same_size() -> None:
    x = RNG.normal(size=(3, 4, 7))
    v = T.dtensor3("v")
    z = T.signal.pool.max_pool_2d_same_size(v, (2, 3)).eval({v: x})
    kept = z != 0
    assert kept.sum() == 3 * 2 * 3
    np.testing.assert_array_equal(z[kept], x[kept])
    assert (
        z.reshape(3, 2, 2, 7)[..., :3].max((2, 3)) == x.reshape(3, 2, 2, 7)[..., :3].max((2, 3))
    ).all()


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
@pytest.mark.parametrize("ignore_border", [True, False])
def test_windows_known_when_the_function_runs(mode: str, ignore_border: bool) -> None:
    x, given = T.dtensor4("x"), [T.lvector(name) for name in ("ws", "stride", "pad")]
    image = np.random.default_rng(0).integers(0, 4, (2, 3, 7, 8)).astype(float)

    def results(window: Any, stride: Any, pad: Any) -> list[Any]:
        y = T.signal.pool.pool_2d(x, window, ignore_border, stride, pad, mode)
        return [y, T.grad((y**2).sum(), x)]

    f = symcomp.function([x, *given], results(*given))
    for window, stride in itertools.product([(2, 2), (3, 2)], [(2, 2), (1, 3), (3, 3)]):
        for pad in [(0, 0), (1, 1)] if ignore_border else [(0, 0)]:
            known = symcomp.function([x], results(window, stride, pad))(image)
            for got, want in zip(f(image, window, stride, pad), known, strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-12)
    wrong = [((9, 9), (1, 1), (0, 0)), ((2, 2), (0, 1), (0, 0)), ((2, 2), (1, 1), (2, 2))]
    for window, stride, pad in wrong[not ignore_border :]:
        with pytest.raises(AssertionError, match="pool_2d: (windows and steps|pad)"):
            f(image, window, stride, pad)


def test_kinds_of_windows() -> None:
    x, n = T.lmatrix("x"), T.lscalar("n")
    image = np.arange(-12, 0).reshape(3, 4)
    expected = [[-7, -5]]
    for window in (n, [n, 2], T.stack([n, n]), T.stack([T.constant(2), 2]), np.array([2, 2])):
        y = T.signal.pool.pool_2d(x, window, ignore_border=True)
        f = symcomp.function([x, n], y, on_unused_input="ignore")
        np.testing.assert_array_equal(f(image, 2), expected)
    volume = T.dtensor4()
    y = T.signal.pool.pool_3d(volume, n, ignore_border=False)
    z = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    want = T.signal.pool.pool_3d(volume, (2, 2, 2), ignore_border=False).eval({volume: z})
    np.testing.assert_array_equal(y.eval({volume: z, n: 2}), want)
    with pytest.raises(ValueError, match="ws is .*2 ints of at least 1"):
        T.signal.pool.pool_2d(x, T.dscalar())
    with pytest.raises(ValueError, match="mode is 'largest'"):
        T.signal.pool.pool_2d(x, n, mode="largest")
