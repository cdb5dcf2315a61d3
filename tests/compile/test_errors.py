"""Messages of errors in calls, in the first call and in calls that repeat a plan."""

import re

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.ops.control.conditions import assert_op

x, y = T.dvectors("x", "y")
X, Y = T.dmatrices("X", "Y")
k, ks, image = T.lscalar("k"), T.lvector("ks"), T.dtensor4("image")
w = symcomp.shared(np.ones((3, 3)), name="w")
state = symcomp.shared(np.zeros(3), name="state")


@symcomp.as_op(itypes=[T.dvector], otypes=[T.dvector])
def mine(v):
    if v[0] > 5:
        raise RuntimeError("the user says no")
    return v * 2


def ones(*shape):
    return np.ones(shape)


def loop_of_products():
    return symcomp.scan(lambda r, h: T.tanh(r.dot(w) + h), X, [T.zeros(3)])[0]


def loop_with_index():
    return symcomp.scan(lambda r, h: T.tanh(r[k] * h), X, [T.zeros(3)])[0]


def slope():
    return T.grad(T.sqr(T.nnet.softmax(X.dot(w)) - Y).sum(), w)


SHAPES = r"a float64 array of shape \(4, 2\)"
# Inputs, expression, arguments that fit and that do not, words of the error.
CASES = {
    "loop": ([X], loop_of_products, [ones(4, 3)], [ones(4, 2)], f"dot: shapes.*{SHAPES}"),
    "index in a loop": (
        [X, k], loop_with_index, [ones(4, 3), 1], [ones(4, 3), 7],
        "index 7 is out of bounds.*This was in step 0 .of at most 4. of scan",
    ),
    "fused": (
        [x, y], lambda: T.exp(x) * 2 + T.tanh(y), [ones(3), ones(3)], [ones(3), ones(4)],
        r"the step add\(mul, tanh\) on shapes \(3,\), \(4,\)",
    ),
    "gradient": (
        [X, Y], slope, [ones(2, 3), ones(2, 3)], [ones(2, 3), ones(4, 3)],
        r"the step sub\(Softmax\{axis=1\}, Y\) on shapes \(2, 3\), \(4, 3\)",
    ),
    "index": ([x, k], lambda: x[k] * 2, [ones(3), 1], [ones(3), 5], "index 5 is out of bounds"),
    "dot": (
        [X, Y], lambda: T.dot(X, Y) + 1, [ones(2, 3), ones(3, 2)], [ones(2, 3), ones(4, 2)],
        r"dot: shapes \(2, 3\) and \(4, 2\) do not fit",
    ),
    "reshape": (
        [x], lambda: x.reshape((2, 2)).sum(axis=0), [ones(4)], [ones(5)],
        r"reshape: an array of shape \(5,\) .5 elements. does not fit shape \(2, 2\)",
    ),
    "solve": (
        [X, x], lambda: T.slinalg.solve(X, x), [np.eye(3), ones(3)], [np.zeros((3, 3)), ones(3)],
        "Singular matrix.*the op Solve",
    ),
    "cholesky": (
        [X], lambda: T.slinalg.cholesky(X), [np.eye(3)], [-np.eye(3)], "not positive definite",
    ),
    "user's op": ([x], lambda: mine(x) + 1, [ones(3)], [ones(3) * 6], "says no.*PythonOp.mine"),
    "branch": (
        [x, k], lambda: ifelse(k > 0, x[4], x[0]), [ones(3), 0], [ones(3), 1],
        "index 4 is out of bounds for axis 0 with size 3",
    ),
    "advanced index": (
        [X, ks], lambda: X[ks] * 2, [ones(3, 2), [0, 1]], [ones(3, 2), [0, 9]],
        r"index 9 is out of bounds.*1: ks .int64 vector. = .*: 0 to 9",
    ),
    "join": (
        [X, Y], lambda: T.concatenate([X, Y]), [ones(2, 3), ones(2, 3)], [ones(2, 3), ones(2, 4)],
        r"join along axis 0: shapes \(2, 3\), \(2, 4\) differ",
    ),
    "alloc": (
        [x, k], lambda: T.alloc(x, k, 3), [ones(3), 2], [ones(4), 2],
        r"alloc: axis 0 of value has length 4, the shape asked for \(2, 3\)",
    ),
    "no such shape": (
        [k], lambda: T.zeros((k, 3)) + 1, [2], [-2], r"there is no array of shape \(-2, 3\)",
    ),
    "convolution": (
        [image], lambda: T.nnet.conv2d(image, ones(2, 3, 2, 2)), [ones(1, 3, 5, 5)],
        [ones(1, 2, 5, 5)], "the image has 2 channels, the kernels take 3",
    ),
    "labels": (
        [X, ks], lambda: T.nnet.categorical_crossentropy(T.nnet.softmax(X), ks).mean(),
        [ones(2, 3), [0, 1]], [ones(2, 3), [0, 9]], "is 9, out of bounds: there are 3 classes",
    ),
    "assertion": (
        [x], lambda: assert_op(x, (x > 0).all(), msg="positive!") * 2, [ones(3)], [-ones(3)],
        "positive!.*the op Assert",
    ),
    "part": (
        [X, y], lambda: T.set_subtensor(X[1:3], y) * 2, [ones(4, 3), ones(3)],
        [ones(4, 3), ones(2)], r"SetSubtensor\{1:3\}.*shape \(1, 2\): 1",
    ),
    "split": (
        [x], lambda: T.split(x, [2, 2], 2)[0], [ones(4)], [ones(5)],
        r"split: sizes \[2, 2\] do not divide axis 0 of an array of shape \(5,\)",
    ),
}  # fmt: skip


def told(f, values):
    """Return the text above the error of a call: its words and notes."""
    with pytest.raises(Exception) as caught:
        f(*values)
    return "\n".join([str(caught.value), *caught.value.__notes__])


@pytest.mark.parametrize("linker", ["cvm", "vm"])
@pytest.mark.parametrize("name", CASES)
def test_errors_tell_enough_in_every_call(name, linker):
    inputs, build, good, bad, words = CASES[name]
    with symcomp.config.change_flags(kernels=True, linker=linker):
        f = symcomp.function(inputs, build())
        first = told(f, bad)
        for _ in range(10):
            f(*good)
        assert told(f, bad) == told(f, bad) == first
    lines = first.split("\n")
    assert len(lines) <= 24 and max(map(len, lines)) < 300
    assert "test_errors.py:" in first and "f.explain_last_error() tells more." in first
    assert re.search(words, first, re.S), first
    assert len(f.explain_last_error(file="str")) > len(first)


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_errors_of_updates_leave_all_as_it_was(linker):
    with symcomp.config.change_flags(kernels=True, linker=linker):
        f = symcomp.function([x], [], updates=[(state, state + x * 2), (w, w * 2)])
    for _ in range(3):
        before = state.get_value(), w.get_value()
        text = told(f, [ones(4)])
        assert "it is the step add(state, mul) on shapes (3,), (4,), made at" in text
        assert "claim" not in text
        for variable, value in zip((state, w), before, strict=True):
            np.testing.assert_array_equal(variable.get_value(), value)
        for _ in range(5):
            f(ones(3))
