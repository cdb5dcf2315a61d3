"""Softmax, activations and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.casting import cast_policy
from symcomp.ops.convert import as_common, as_tensor_variable
from symcomp.ops.elementwise.scalar_logic import clip, gt, switch
from symcomp.ops.elementwise.scalar_logistic import sigmoid, softplus
from symcomp.ops.elementwise.scalar_math import abs_, cast, expm1, log, log1p, maximum, minimum
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.linalg.products import same_lengths
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.nnet.softmax import LogSoftmax, LogSumExp, Softmax
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import expand_dims
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import normalize_axes, normalize_axis, reshape, shape_tuple


def _float(x: Any) -> TensorVariable:
    """Return ``x``, integers converted to the floats that scalar functions make of them."""
    x = as_tensor_variable(x)
    if not dtypes.is_discrete(x.dtype):
        return x
    return cast(x, cast_policy().float_of(x.dtype))


def _along(name: str, function: Callable[[int], Any], x: Any, axis: int | None) -> TensorVariable:
    """Apply a function of the elements along an axis, or of all elements for None."""
    x = _float(x)
    if x.ndim == 0:
        raise ShapeError(f"{name}: {x} is a scalar")
    if axis is None:
        return reshape(function(0)(flatten(x)), shape_tuple(x))
    return function(normalize_axis(name, axis, x.ndim))(x)


def softmax(x: Any, axis: int | None = -1) -> TensorVariable:
    """Compute ``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Parameters
    ----------
    x : tensor_like
        At least 1 axis.
    axis : int or None
        None: all elements add up to 1.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nnet.softmax(x).eval({x: [1000.0, 1000.0]})
    array([0.5, 0.5])
    """
    return _along("softmax", Softmax, x, axis)


def log_softmax(x: Any, axis: int | None = -1) -> TensorVariable:
    """Compute the logarithm of ``softmax``, exact also where softmax is nearly 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nnet.log_softmax(x).eval({x: [0.0, -1000.0]})
    array([    0., -1000.])
    """
    return _along("log_softmax", LogSoftmax, x, axis)


logsoftmax = log_softmax


def softmax_with_bias(x: Any, b: Any) -> TensorVariable:
    """Compute ``softmax(x + b)`` along the last axis.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.softmax_with_bias([[0.0, 0.0]], [0.0, 0.0]).eval()
    array([[0.5, 0.5]])
    """
    return softmax(as_tensor_variable(x) + b)


def relu(x: Any, alpha: Any = 0) -> TensorVariable:
    """Return ``x`` above 0, ``alpha * x`` below: the rectifier, leaky if ``alpha`` is not 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nnet.relu(x, 0.1).eval({x: [-1.0, 2.0]})
    array([-0.1,  2. ])
    """
    x = as_tensor_variable(x)
    return (
        maximum(x, 0)
        if isinstance(alpha, int | float) and alpha == 0
        else switch(gt(x, 0), x, alpha * x)
    )


def elu(x: Any, alpha: Any = 1) -> TensorVariable:
    """Return ``x`` above 0, ``alpha * (exp(x) - 1)`` below (Clevert et al., 2015).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.elu([-1.0, 2.0]).eval()
    array([-0.63212056,  2.        ])
    """
    x = _float(x)
    # For positive x, exp(x) may be infinite, and its gradient 0 times infinity.
    return switch(gt(x, 0), x, alpha * expm1(switch(gt(x, 0), 0, x)))


def selu(x: Any) -> TensorVariable:
    """Compute the self-normalizing unit of Klambauer et al. (2017).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.selu([-1.0, 2.0]).eval()
    array([-1.11133074,  2.10140197])
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def softsign(x: Any) -> TensorVariable:
    """Compute ``x / (1 + |x|)``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.softsign([-1.0, 3.0]).eval()
    array([-0.5 ,  0.75])
    """
    x = _float(x)
    return x / (1 + abs_(x))


def hard_sigmoid(x: Any) -> TensorVariable:
    """Compute ``0.2 x + 0.5``, clipped to [0, 1].

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.hard_sigmoid([-4.0, 0.0, 1.0]).eval()
    array([0. , 0.5, 0.7])
    """
    return clip(0.2 * _float(x) + 0.5, 0.0, 1.0)


def ultra_fast_sigmoid(x: Any) -> TensorVariable:
    """Approximate sigmoid by Theano's rational pieces: off by at most 0.03.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.ultra_fast_sigmoid([0.0]).eval()
    array([0.5])
    """
    x = _float(x) * 0.5
    # The second piece ends at a = 3, where it has the constant value of the third.
    a = minimum(abs_(x), 3)
    first = 1.5 * a / (1 + a)
    second = 0.935409070603099 + 0.0458812946797165 * (a - 1.7)
    size = switch(gt(1.7, a), first, second)
    return 0.5 * (switch(gt(x, 0), size, -size) + 1)


# -- losses


def binary_crossentropy(output: Any, target: Any) -> TensorVariable:
    """Compute ``-(t log(o) + (1 - t) log(1 - o))``, elementwise, for probabilities ``output``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> o = T.dvector("o")
    >>> T.nnet.binary_crossentropy(o, 1.0).eval({o: [0.5]})
    array([0.69314718])
    """
    output, target = as_common(output, target)
    return -(target * log(output) + (1.0 - target) * log1p(-output))


def sigmoid_binary_crossentropy(output: Any, target: Any) -> TensorVariable:
    """Compute ``binary_crossentropy(sigmoid(output), target)``, accurate for any ``output``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.sigmoid_binary_crossentropy([0.0, 100.0], [1.0, 1.0]).eval()
    array([6.93147181e-01, 3.72007598e-44])
    """
    output, target = as_common(output, target)
    return target * softplus(-output) + (1.0 - target) * softplus(output)


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> TensorVariable:
    """Compute the mean number of nats per example when ``true_dist`` is coded by ``coding_dist``.

    Parameters
    ----------
    coding_dist : matrix
        A distribution in each row.
    true_dist : matrix of distributions, or integer vector
        A vector names the true class of each row.

    Returns
    -------
    vector

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> p, y = T.dmatrix("p"), T.lvector("y")
    >>> T.nnet.categorical_crossentropy(p, y).eval({p: [[0.25, 0.75]], y: [0]})
    array([1.38629436])
    """
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(true_dist)
    if true.ndim == coding.ndim:
        return -sum_(true * log(coding), axis=coding.ndim - 1)
    if true.ndim == coding.ndim - 1 and dtypes.is_discrete(true.dtype):
        return _of_classes("categorical_crossentropy", "true_dist", coding, true)
    raise ShapeError(
        f"categorical_crossentropy: true_dist ({true.type}) must have as many axes as coding_dist "
        f"({coding.type}), or be "
        "integers with one less"
    )


def crossentropy_categorical_1hot(coding_dist: Any, true_one_of_n: Any) -> TensorVariable:
    """Compute ``-log(coding_dist[i, true_one_of_n[i]])`` for every row i.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.crossentropy_categorical_1hot([[0.25, 0.75]], [1]).eval()
    array([0.28768207])
    """
    name = "crossentropy_categorical_1hot"
    return _of_classes(name, "true_one_of_n", coding_dist, true_one_of_n)


def _of_classes(name: str, title: str, coding_dist: Any, classes: Any) -> TensorVariable:
    """Compute the loss of classes; error messages name the function ``name`` and its argument
    ``title``.
    """
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(classes)
    if coding.ndim != 2 or true.ndim != 1:
        raise ShapeError(
            f"{name}: a matrix and a vector are needed, got {coding.type} and {true.type}"
        )
    if not dtypes.is_integer(true.dtype):
        raise DTypeError(
            f"{name}: the classes must be integers, got {true.type}: cast them to int64"
        )
    true = Labels(f"{name}: {title}")(true, shape_tuple(coding)[1])
    # An index of length 1 must not be stretched to all rows.
    true = same_lengths(name, coding, true, [(0, 0)])
    return -log(getitem(coding, (arange(shape_tuple(coding)[0]), true)))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> TensorVariable:
    """Compute ``log(sum(exp(x)))`` without overflow.

    The gradient is the softmax over the axes; it is 0 where all elements are ``-inf``. Where some
    are ``inf``, so is the result, and the gradient is NaN at these and 0 at the others.

    Parameters
    ----------
    x : tensor_like
        Real; integers become float64.
    axis : int or sequence of int, optional
        All axes if not given.
    keepdims : bool
        If true, the axes stay, with length 1.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.logsumexp(x).eval({x: [1000.0, 1000.0]})
    array(1000.69314718)
    """
    x = as_tensor_variable(x)
    x = cast(x, "float64") if dtypes.is_discrete(x.dtype) else x
    axes = normalize_axes("logsumexp", axis, x.ndim)
    if not axes:
        return x
    op = LogSumExp(axes)
    total = op(x)
    return expand_dims(total, op.axes) if keepdims else total


__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "crossentropy_categorical_1hot", "elu",
    "hard_sigmoid", "log_softmax", "LogSoftmax", "logsoftmax", "relu", "selu",
    "sigmoid", "sigmoid_binary_crossentropy", "Softmax", "softmax", "softmax_with_bias", "softplus",
    "softsign", "ultra_fast_sigmoid",
]  # fmt: skip
