"""Theano's classes of ops: constructors with its parameters, and which ops are instances."""

import sys
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat.op_classes import OP_CLASSES

X = np.random.default_rng(0).normal(size=(3, 4))
ROW = np.array([1.0, 3.0, 2.0])
M = X[:, :3] @ X[:, :3].T + np.eye(3)

#: name, parameters, arguments, what it gives
CASES: list[tuple[str, Any, Any, Any]] = [
    ("AdvancedIncSubtensor", (False, True), (X, ROW[0], [0], [1]), None),
    ("AdvancedIncSubtensor1", (), (X, np.ones((2, 4)), [0, 0]), None),
    ("AdvancedSubtensor", (), (X, [0, 1], [2, 3]), X[[0, 1], [2, 3]]),
    ("AdvancedSubtensor1", (), (X, [2, 0]), X[[2, 0]]),
    ("All", (1,), (X > 0,), (X > 0).all(axis=1)),
    ("Alloc", (), (1.5, 2, 3), np.full((2, 3), 1.5)),
    ("Any", (), (X > 0,), True),
    ("ARange", ("int32",), (1, 7, 2), [1, 3, 5]),
    ("Argmax", (1,), (X,), X.argmax(axis=1)),
    ("CumOp", (0, "mul"), (X,), X.cumprod(axis=0)),
    ("CumOp", (), (X,), X.cumsum()),
    ("DiffOp", (1, 0), (X,), np.diff(X, axis=0)),
    ("DimShuffle", ((False, False), (1, "x", 0)), (X,), X.T[:, None]),
    ("Dot", (), (X, X.T), X @ X.T),
    ("ExtractDiag", (1,), (X,), np.diagonal(X, 1)),
    ("Eye", ("float32",), (2, 3, 1), np.eye(2, 3, 1)),
    ("Flatten", (1,), (X,), X.ravel()),
    ("Join", (), (1, X, X), np.hstack([X, X])),
    ("LogSoftmax", (), (X,), X - np.log(np.exp(X).sum(axis=1, keepdims=True))),
    ("PermuteRowElements", (), (X, [1, 0, 3, 2]), X[:, [1, 0, 3, 2]]),
    ("Prod", (0,), (X,), X.prod(axis=0)),
    ("RepeatOp", (1,), (X, 2), X.repeat(2, axis=1)),
    ("Reshape", (2,), (X, [2, 6]), X.reshape(2, 6)),
    ("ScalarFromTensor", (), (2.5,), 2.5),
    ("SearchsortedOp", ("right",), ([1.0, 2.0], 1.0), 1),
    ("Shape", (), (X,), [3, 4]),
    ("Shape_i", (1,), (X,), 4),
    ("Softmax", (), (ROW,), [np.exp(ROW) / np.exp(ROW).sum()]),
    ("SoftmaxWithBias", (), (X, X[0]), None),
    (
        "Solve",
        ("lower_triangular", True, True),
        (np.tril(M), ROW),
        np.linalg.solve(np.tril(M), ROW),
    ),
    ("Solve", (), (M, ROW), np.linalg.solve(M, ROW)),
    ("SpecifyShape", (), (X, (3, 4)), X),
    ("Sum", (), (X,), X.sum()),
    ("Sum", (1, "float64"), (X,), X.sum(axis=1)),
    ("TensorFromScalar", (), (1,), 1),
    ("Tile", (2,), (X, (1, 2)), np.tile(X, (1, 2))),
    ("Tri", ("int8",), (2, 2, 0), np.tri(2)),
    ("Unique", (), ([3, 1, 3],), [1, 3]),
]


@pytest.mark.parametrize(("name", "parameters", "arguments", "expected"), CASES)
def test_values(name: str, parameters: Any, arguments: Any, expected: Any) -> None:
    values = [T.constant(a) if isinstance(a, np.ndarray) else a for a in arguments]
    found = OP_CLASSES[name](*parameters)(*values).eval()
    if expected is None:
        expected = {
            "AdvancedIncSubtensor": lambda: np.where(np.arange(12).reshape(3, 4) == 1, 1.0, X),
            "AdvancedIncSubtensor1": lambda: X + [[2.0], [0.0], [0.0]],
            "SoftmaxWithBias": lambda: T.nnet.softmax(T.constant(X + X[0])).eval(),
        }[name]()
    assert np.allclose(found, expected)
    assert np.shape(found) == np.shape(expected)


def test_several_results() -> None:
    parts = OP_CLASSES["Split"](2)(T.constant(X), 1, [1, 3])
    assert [p.eval().shape for p in parts] == [(3, 1), (3, 3)]
    largest, where = OP_CLASSES["MaxAndArgmax"]([1])(T.constant(X))
    assert np.array_equal(largest.eval(), X.max(axis=1))
    assert np.array_equal(where.eval(), X.argmax(axis=1))
    u, s, v = OP_CLASSES["SVD"](full_matrices=False)(T.constant(X))
    assert np.allclose((u * s).eval() @ v.eval(), X)
    x, y = T.dscalars("x", "y")
    both = OP_CLASSES["IfElse"](2)(x > y, x, y, y, x)
    assert [float(b.eval({x: 1.0, y: 2.0})) for b in both] == [2.0, 1.0]
    assert float(OP_CLASSES["IfElse"](1)(x > y, x, y).eval({x: 1.0, y: 2.0})) == 2.0


def test_instances() -> None:
    x, y = T.dmatrices("x", "y")
    made = {
        "Alloc": T.zeros((2, x.shape[0])), "CumOp": T.cumsum(x, 0), "DimShuffle": x.T,
        "Dot": T.dot(x, y), "Elemwise": x + y, "IncSubtensor": T.inc_subtensor(x[0], 1.0),
        "Join": T.concatenate([x, y]), "Prod": x.prod(), "Reshape": x.reshape((2, -1)),
        "Shape": T.Shape()(x), "Softmax": T.nnet.softmax(x), "Subtensor": x[0], "Sum": x.sum(),
    }  # fmt: skip
    for name, variable in made.items():
        op = variable.owner.op
        kinds = [other for other in made if isinstance(op, OP_CLASSES[other])]
        assert kinds == [name]


def test_indexing_ops_have_no_constructor() -> None:
    with pytest.raises(NotImplementedError, match=r"write x\[index\]"):
        OP_CLASSES["Subtensor"]([0])


def test_deriving_is_refused_when_it_is_used() -> None:
    base: Any = OP_CLASSES["Softmax"]

    class Own(base):
        """A softmax of one's own."""

    with pytest.raises(NotImplementedError, match="Softmax, as a class to derive from"):
        Own()


def test_bad_structure() -> None:
    with pytest.raises(ValueError, match="A_structure='banded': must be one of general"):
        OP_CLASSES["Solve"]("banded")


class TestWindows:
    """Convolution and pooling, by classes and by the first functions."""

    images = np.random.default_rng(1).normal(size=(2, 3, 7, 7))
    kernels = np.random.default_rng(2).normal(size=(4, 3, 3, 3))

    def test_convolution_and_its_gradients(self) -> None:
        x, w = T.constant(self.images), T.constant(self.kernels)
        geometry = {"border_mode": "half", "subsample": (2, 2)}
        y = OP_CLASSES["AbstractConv2d"](None, None, **geometry)(x, w)
        assert np.allclose(y.eval(), T.nnet.conv2d(x, w, **geometry).eval())
        gy = T.cos(y)
        gx, gw = symcomp.Lop(T.nnet.conv2d(x, w, **geometry), [x, w], gy)
        by_class = OP_CLASSES["AbstractConv2d_gradInputs"](imshp=(2, 3, 7, 7), **geometry)
        assert np.allclose(by_class(w, gy, x.shape[-2:]).eval(), gx.eval())
        by_class = OP_CLASSES["AbstractConv2d_gradWeights"](kshp=None, **geometry)
        assert np.allclose(by_class(x, gy, w.shape[-2:]).eval(), gw.eval())

    def test_pooling(self) -> None:
        x = T.constant(self.images)
        pooled = OP_CLASSES["Pool"](True, "max", 2)(x, (2, 2)).eval()
        blocks = self.images[:, :, :6, :6].reshape(2, 3, 3, 2, 3, 2)
        assert np.array_equal(pooled, blocks.max(axis=(3, 5)))

    def test_the_first_convolution(self) -> None:
        theano: Any = sys.modules["theano"]
        x, w = T.constant(self.images), T.constant(self.kernels)
        conv2d = theano.tensor.nnet.conv.conv2d
        found = conv2d(x, w, (2, 3, 7, 7), (4, 3, 3, 3), border_mode="full", unroll_batch=2)
        assert np.allclose(found.eval(), T.nnet.conv2d(x, w, border_mode="full").eval())
        with pytest.raises(NotImplementedError, match="imshp_logical"):
            conv2d(x, w, imshp_logical=(2, 3, 9, 9))
