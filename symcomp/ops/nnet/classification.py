"""Classes: cross entropies of softmax with its results, hierarchical softmax, confusion."""

from __future__ import annotations

from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.functions import batched_dot, dot, tensordot
from symcomp.ops.linalg.products import same_lengths
from symcomp.ops.nnet.functions import log_softmax, softmax
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.reductions.functions import argmax
from symcomp.ops.reductions.functions import max as max_
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import reshape, shape_tuple
from symcomp.ops.sorting.functions import unique


def _scores(name: str, x: Any, y_idx: Any) -> tuple[TensorVariable, TensorVariable]:
    x, y = as_tensor_variable(x), as_tensor_variable(y_idx)
    if x.ndim != 2 or y.ndim != 1:
        raise ShapeError(f"{name}: a matrix and a vector are needed, got {x.type} and {y.type}")
    if not dtypes.is_integer(y.dtype):
        raise DTypeError(f"{name}: the classes must be integers, got {y.type}: cast them to int64")
    y = Labels(f"{name}: y_idx")(y, shape_tuple(x)[1])
    return x, same_lengths(name, x, y, [(0, 0)])


def _nll(logs: TensorVariable, y: TensorVariable) -> TensorVariable:
    return -getitem(logs, (arange(shape_tuple(logs)[0]), y))


def crossentropy_softmax_1hot(x: Any, y_idx: Any) -> tuple[TensorVariable, TensorVariable]:
    """Return, for each row of scores ``x``, minus the log-softmax of class ``y_idx``; and the
    softmax of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x, y = T.dmatrix("x"), T.lvector("y")
    >>> nll, _ = T.nnet.crossentropy_softmax_1hot(x, y)
    >>> nll.eval({x: [[0.0, 0.0], [-1000.0, 0.0]], y: [0, 0]})
    array([6.93147181e-01, 1.00000000e+03])
    """
    x, y = _scores("crossentropy_softmax_1hot", x, y_idx)
    return _nll(log_softmax(x), y), softmax(x)


def crossentropy_softmax_1hot_with_bias(
    x: Any, b: Any, y_idx: Any
) -> tuple[TensorVariable, TensorVariable]:
    """Return ``crossentropy_softmax_1hot`` of ``x + b``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, b = T.constant([[0.0, 0.0]]), T.constant([0.0, 0.0])
    >>> T.nnet.crossentropy_softmax_1hot_with_bias(x, b, [1])[0].eval()
    array([0.69314718])
    """
    return crossentropy_softmax_1hot(as_tensor_variable(x) + b, y_idx)


def crossentropy_softmax_argmax_1hot_with_bias(
    x: Any, b: Any, y_idx: Any
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Return ``crossentropy_softmax_1hot_with_bias``, and the likeliest class of each row.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, b = T.constant([[0.0, 2.0]]), T.constant([0.0, 0.0])
    >>> T.nnet.crossentropy_softmax_argmax_1hot_with_bias(x, b, [1])[2].eval()
    array([1])
    """
    scores = as_tensor_variable(x) + b
    return (*crossentropy_softmax_1hot(scores, y_idx), argmax(scores, axis=-1))


def crossentropy_softmax_max_and_argmax_1hot_with_bias(
    x: Any, b: Any, y_idx: Any
) -> tuple[TensorVariable, TensorVariable, TensorVariable, TensorVariable]:
    """Return ``crossentropy_softmax_1hot_with_bias``, and the probability and index of the
    likeliest class.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, b = T.constant([[0.0, 2.0]]), T.constant([0.0, 0.0])
    >>> T.nnet.crossentropy_softmax_max_and_argmax_1hot_with_bias(x, b, [1])[3].eval()
    array([1])
    """
    nll, chances, best = crossentropy_softmax_argmax_1hot_with_bias(x, b, y_idx)
    return nll, chances, max_(chances, axis=-1), best


def h_softmax(
    x: Any,
    batch_size: Any,
    n_outputs: Any,
    n_classes: Any,
    n_outputs_per_class: Any,
    W1: Any,
    b1: Any,
    W2: Any,
    b2: Any,
    target: Any = None,
) -> TensorVariable:
    """Compute softmax in two levels: of classes, and of the outputs within a class.

    Parameters
    ----------
    x : matrix
        (batch_size, features).
    batch_size, n_outputs, n_classes, n_outputs_per_class : int or integer scalar
        ``n_outputs`` is at most ``n_classes * n_outputs_per_class``.
    W1, b1 : matrix (features, n_classes), vector (n_classes,)
    W2, b2 : tensor (n_classes, features, n_outputs_per_class), matrix (n_classes,
        n_outputs_per_class)
    target : integer vector or matrix, optional
        The output to return in each row.

    Returns
    -------
    TensorVariable
        The probabilities of the targets, a vector; without ``target`` those of all outputs,
        (batch_size, n_outputs).

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x, rng = T.ones((2, 3)), np.random.default_rng(0)
    >>> W1, W2 = rng.normal(size=(3, 2)), rng.normal(size=(2, 3, 2))
    >>> p = T.nnet.h_softmax(x, 2, 4, 2, 2, W1, np.zeros(2), W2, np.zeros((2, 2)))
    >>> p.sum(axis=1).eval()
    array([1., 1.])
    """
    x, W2, b2 = as_tensor_variable(x), as_tensor_variable(W2), as_tensor_variable(b2)
    classes = softmax(dot(x, W1) + b1)
    if target is None:
        within = softmax(tensordot(x, W2, (1, 1)) + b2)
        joint = dimshuffle(classes, 0, 1, "x") * within
        every = reshape(joint, (batch_size, n_classes * n_outputs_per_class))
        return every[:, :n_outputs]
    wanted = flatten(as_tensor_variable(target))
    if not dtypes.is_integer(wanted.dtype):
        raise DTypeError(f"h_softmax: target is {wanted.type}; integers are needed")
    wanted = Labels("h_softmax: target")(wanted, n_outputs)
    which, inner = wanted // n_outputs_per_class, wanted % n_outputs_per_class
    scores = batched_dot(x, getitem(W2, which)) + getitem(b2, which)
    rows = arange(shape_tuple(x)[0])
    return getitem(classes, (rows, which)) * getitem(softmax(scores), (rows, inner))


def confusion_matrix(actual: Any, pred: Any) -> list[TensorVariable]:
    """Count how often each class was predicted as each class.

    Parameters
    ----------
    actual, pred : vector
        The classes, and what they were taken for.

    Returns
    -------
    [counts, order]
        ``counts[i, j]``: how often ``order[i]`` was taken for ``order[j]``, int64.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> counts, order = T.nnet.confusion_matrix(T.constant([3, 3, 8]), T.constant([3, 8, 8]))
    >>> counts.eval(), order.eval()
    (array([[1, 1],
           [0, 1]]), array([3, 8]))
    """
    a, p = as_tensor_variable(actual), as_tensor_variable(pred)
    if a.ndim != 1 or p.ndim != 1:
        raise ShapeError(f"confusion_matrix: vectors are needed, got {a.type} and {p.type}")
    p = same_lengths("confusion_matrix", a, p, [(0, 0)])
    order = unique(concatenate([a, p]))
    hot_a, hot_p = (eq(dimshuffle(v, 0, "x"), order).astype("int64") for v in (a, p))
    return [dot(hot_a.T, hot_p), order]


__all__ = [
    "confusion_matrix", "crossentropy_softmax_1hot", "crossentropy_softmax_1hot_with_bias",
    "crossentropy_softmax_argmax_1hot_with_bias",
    "crossentropy_softmax_max_and_argmax_1hot_with_bias", "h_softmax",
]  # fmt: skip
