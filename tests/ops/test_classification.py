"""Losses of classes with their results, hierarchical softmax, confusion; parts of images."""

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, LabelError, ShapeError
from symcomp.ops.nnet.labels import Labels
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)


def test_cross_entropies_of_softmax() -> None:
    x, b, y = RNG.normal(size=(4, 3)), RNG.normal(size=3), np.array([0, 2, 1, 2])

    def expected(x: Any, b: Any, y: Any) -> Any:
        s = x + b
        nll = -log_softmax(s, axis=1)[np.arange(4), y]
        p = softmax(s, axis=1)
        return [nll, p, p.max(axis=1), s.argmax(axis=1)]

    check(
        T.nnet.crossentropy_softmax_max_and_argmax_1hot_with_bias, x, b, y, expected=expected,
        rtol=1e-10,
    )  # fmt: skip
    three = T.nnet.crossentropy_softmax_argmax_1hot_with_bias
    check(three, x, b, y, expected=lambda *a: [expected(*a)[i] for i in (0, 1, 3)], grad=False)
    two = T.nnet.crossentropy_softmax_1hot_with_bias
    check(two, x, b, y, expected=lambda *a: expected(*a)[:2], grad=False)
    m, v = T.dmatrix(), T.dvector()
    with pytest.raises(ShapeError, match="a matrix and a vector are needed"):
        T.nnet.crossentropy_softmax_1hot(m, m)
    with pytest.raises(DTypeError, match="the classes must be integers"):
        T.nnet.crossentropy_softmax_1hot(m, v)
    k = T.lvector()
    f = symcomp.function([m, k], T.nnet.crossentropy_softmax_1hot(m, k)[0])
    with pytest.raises(ShapeError):
        f(np.ones((3, 2)), [0])


def test_hierarchical_softmax() -> None:
    n, features, classes, each, outputs = 5, 4, 3, 2, 5
    values = [
        RNG.normal(size=s)
        for s in ((n, features), (features, classes), (classes,), (classes, features, each),
                  (classes, each))
    ]  # fmt: skip
    target = np.array([0, 4, 2, 3, 3])

    def build(*args: Any) -> Any:
        x, *weights = args
        return T.nnet.h_softmax(x, n, outputs, classes, each, *weights)

    def expected(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        p = softmax(x @ w1 + b1, axis=1)
        q = softmax(np.einsum("nf,cfe->nce", x, w2) + b2, axis=2)
        return (p[:, :, None] * q).reshape(n, -1)[:, :outputs]

    check(build, *values, expected=expected, static="none", rtol=1e-10)
    every = expected(*values)

    def targeted(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, target: Any) -> Any:
        return T.nnet.h_softmax(x, n, outputs, classes, each, w1, b1, w2, b2, target)

    wanted = every[np.arange(n), target]
    check(targeted, *values, target, expected=wanted, static="none", rtol=1e-10)
    with pytest.raises(DTypeError, match="target is .*integers are needed"):
        targeted(*(T.constant(v) for v in values), T.dvector())


def test_confusion() -> None:
    a, p = np.array([2, 7, 7, 2, 9]), np.array([2, 7, 2, 2, 7])
    counts, order = T.nnet.confusion_matrix(T.constant(a), T.constant(p))
    assert order.eval().tolist() == [2, 7, 9]
    assert counts.eval().tolist() == [[2, 0, 0], [1, 1, 0], [0, 1, 0]]
    with pytest.raises(ShapeError, match="vectors are needed"):
        T.nnet.confusion_matrix(T.dmatrix(), T.dvector())


# -- parts of images


def parts(x: Any, shape: Any, step: Any) -> Any:
    """Return all whole parts, as rows."""
    (h, w), (a, b) = shape, step
    rows = [
        image[i : i + h, j : j + w].ravel()
        for image in x.reshape(-1, *x.shape[2:])
        for i in range(0, x.shape[2] - h + 1, a)
        for j in range(0, x.shape[3] - w + 1, b)
    ]
    return np.array(rows)


def test_parts_of_images() -> None:
    x = RNG.normal(size=(2, 3, 6, 4))
    neibs = T.nnet.neighbours.images2neibs
    check(lambda x: neibs(x, (3, 2)), x, expected=parts(x, (3, 2), (3, 2)))
    check(lambda x: neibs(x, (2, 2), (1, 2)), x, expected=parts(x, (2, 2), (1, 2)))
    check(
        lambda x: neibs(x, (4, 3), (1, 1), "ignore_borders"), x,
        expected=parts(x, (4, 3), (1, 1)),
    )  # fmt: skip
    for mode, around in (("half", 1), ("full", 2)):
        wide = np.pad(x, [(0, 0), (0, 0), (around, around), (around, around)])
        wanted = parts(wide, (3, 3), (1, 1))
        check(lambda x, m=mode: neibs(x, (3, 3), (1, 1), m), x, expected=wanted)
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], mode="wrap")
    wanted = parts(wide, (3, 3), (1, 1))
    check(lambda x: neibs(x, (3, 3), (1, 1), "wrap_centered"), x, expected=wanted)


def test_parts_that_do_not_cover() -> None:
    x = T.dtensor4("x")
    values = np.ones((1, 1, 5, 4))
    with pytest.raises(AssertionError, match="the parts do not cover the image"):
        T.nnet.neighbours.images2neibs(x, (2, 2)).eval({x: values})
    with pytest.raises(AssertionError, match="odd length"):
        T.nnet.neighbours.images2neibs(x, (2, 2), None, "wrap_centered").eval({x: values})
    with pytest.raises(ValueError, match="mode is 'same'"):
        T.nnet.neighbours.images2neibs(x, (2, 2), mode="same")
    with pytest.raises(ShapeError, match="it must have 4 axes"):
        T.nnet.neighbours.images2neibs(T.dmatrix(), (2, 2))


def test_images_of_parts() -> None:
    x = RNG.normal(size=(2, 3, 6, 4))
    v = T.dtensor4("v")
    rows = T.nnet.neighbours.images2neibs(v, (3, 2))
    back = T.nnet.neighbours.neibs2images(rows, (3, 2), v.shape)
    np.testing.assert_array_equal(back.eval({v: x}), x)
    rows = T.nnet.neighbours.images2neibs(v, (4, 3), mode="ignore_borders")
    back = T.nnet.neighbours.neibs2images(rows, (4, 3), v.shape, "ignore_borders")
    wanted = x.copy()
    wanted[:, :, 4:] = wanted[:, :, :, 3:] = 0
    np.testing.assert_array_equal(back.eval({v: x}), wanted)
    with pytest.raises(ValueError, match="mode is 'full'"):
        T.nnet.neighbours.neibs2images(rows, (4, 3), x.shape, "full")


LOSSES = {
    "categorical_crossentropy": lambda p, y: T.nnet.categorical_crossentropy(p, y),
    "of softmax": lambda x, y: T.nnet.categorical_crossentropy(T.nnet.softmax(x), y),
    "1hot": lambda x, y: T.nnet.crossentropy_softmax_1hot(x, y)[0],
    "argmax_1hot": lambda x, y: T.nnet.crossentropy_softmax_argmax_1hot_with_bias(
        x, T.zeros(3, x.dtype), y
    )[0],
}


@pytest.mark.parametrize("machine", ["vm", "cvm"])
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_name_no_class(loss: str, kernels: bool, machine: str) -> None:
    x, y = T.dmatrix("x"), T.ivector("y")
    value = np.array([[0.2, 0.3, 0.5]] * 4)
    with symcomp.config.change_flags(kernels=kernels, linker=machine):
        cost = LOSSES[loss](x, y)
        functions = [
            symcomp.function([x, y], out) for out in (cost, T.grad(cost.sum(), x), cost.mean())
        ]
    for f in functions:
        good = [np.asarray(f(value, [0, 2, 1, 0])) for _ in range(4)]
        for label in (-1, 3, -3, -(2**31), 2**31 - 1):
            with pytest.raises(LabelError, match=rf"\[2\] is {label}, .* 3 classes, 0 to 2"):
                f(value, [0, 2, label, 0])
        np.testing.assert_array_equal(f(value, [0, 2, 1, 0]), good[0])


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_labels_of_every_dtype(dtype: str) -> None:
    y, n = T.vector("y", dtype=dtype), T.lscalar("n")
    f = symcomp.function([y, n], Labels("f: y")(y, n))
    info = np.iinfo(dtype)
    strided = np.arange(10).astype(dtype)[::-3]
    for n_classes in (10, info.max if info.max < 2**63 else 2**63 - 1):
        np.testing.assert_array_equal(f(strided, n_classes), strided)
    assert f(np.zeros(0, dtype), 0).shape == (0,)
    for wrong in {9, info.max, info.min if info.min else info.max}:
        with pytest.raises(LabelError, match=f"f: y.1. is {wrong}, "):
            f(np.array([1, wrong], dtype), 9)
    with pytest.raises(LabelError, match="0 to -1"):
        f(np.zeros(1, dtype), 0)
    check(lambda a: Labels("f: y")(a, 10), strided, expected=lambda a: a)


def test_labels_of_hierarchical_softmax() -> None:
    values = [RNG.normal(size=s) for s in ((2, 4), (4, 3), (3,), (3, 4, 2), (3, 2))]
    target = T.lvector()
    f = symcomp.function([target], T.nnet.h_softmax(values[0], 2, 5, 3, 2, *values[1:], target))
    with pytest.raises(LabelError, match="h_softmax: target.1. is 5"):
        f([4, 5])
