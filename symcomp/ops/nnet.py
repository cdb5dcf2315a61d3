"""Softmax, activations and losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable
from symcomp.ops.creation import arange
from symcomp.ops.index import getitem
from symcomp.ops.products import same_lengths
from symcomp.ops.reduce import sum as sum_
from symcomp.ops.scalar_logic import clip, gt, switch
from symcomp.ops.scalar_logistic import sigmoid, softplus
from symcomp.ops.scalar_math import abs_, cast, expm1, log, log1p, maximum, minimum
from symcomp.ops.shape import normalize_axes, shape_tuple


def _shifted(x: Any, axis: int) -> Any:
    """``x`` less its maximum along ``axis``; less 0 where that is not finite."""
    top = x.max(axis=axis, keepdims=True, initial=-np.inf)
    return x - np.where(np.isfinite(top), top, 0)


class _RowOp(Op):
    """An op that maps each line along ``axis`` to a line of the same length."""

    axis: int

    def output_types(self, x: TensorVariable) -> list[TensorType]:
        if not dtypes.is_float(x.dtype):
            raise DTypeError(f"{self}: x must be a float tensor, got {x} ({x.type})")
        return [x.type]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def _sum(self, x: Any) -> Any:
        return sum_(x, axis=self.axis, keepdims=True)


@dataclass(frozen=True)
class Softmax(_RowOp):
    """z_i = exp(x_i) / sum_j exp(x_j) along ``axis``, without overflow."""

    axis: int

    def perform(self, x: Any) -> Any:
        e = np.exp(_shifted(x, self.axis))
        return e / e.sum(axis=self.axis, keepdims=True)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (z,), (gz,) = outputs, output_grads
        return [z * (gz - self._sum(gz * z))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (z,), (dx,) = outputs, tangents
        return [z * (dx - self._sum(dx * z))]


@dataclass(frozen=True)
class LogSoftmax(_RowOp):
    """z_i = x_i - log sum_j exp(x_j) along ``axis``, without overflow."""

    axis: int

    def perform(self, x: Any) -> Any:
        d = _shifted(x, self.axis)
        return d - np.log(np.exp(d).sum(axis=self.axis, keepdims=True))

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (gz,) = inputs, output_grads
        return [gz - Softmax(self.axis)(x) * self._sum(gz)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        (x,), (dx,) = inputs, tangents
        return [dx - self._sum(Softmax(self.axis)(x) * dx)]


def _float(x: Any) -> TensorVariable:
    x = as_tensor_variable(x)
    return cast(x, dtypes.to_float(x.dtype)) if dtypes.is_discrete(x.dtype) else x


def _along(name: str, x: TensorVariable, axis: Any) -> int:
    if x.ndim == 0:
        raise ShapeError(f"{name}: {x} is a scalar")
    (number,) = normalize_axes(name, axis, x.ndim)
    return number


def softmax(x: Any, axis: int = -1) -> TensorVariable:
    """``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Parameters
    ----------
    x : tensor_like
        At least 1 axis.
    axis : int

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nnet.softmax(x).eval({x: [1000.0, 1000.0]})
    array([0.5, 0.5])
    """
    x = _float(x)
    return Softmax(_along("softmax", x, axis))(x)


def log_softmax(x: Any, axis: int = -1) -> TensorVariable:
    """The logarithm of ``softmax``, exact also where that is nearly 0.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> T.nnet.log_softmax(x).eval({x: [0.0, -1000.0]})
    array([    0., -1000.])
    """
    x = _float(x)
    return LogSoftmax(_along("log_softmax", x, axis))(x)


logsoftmax = log_softmax


def softmax_with_bias(x: Any, b: Any) -> TensorVariable:
    """``softmax(x + b)`` along the last axis."""
    return softmax(as_tensor_variable(x) + b)


def relu(x: Any, alpha: Any = 0) -> TensorVariable:
    """``x`` above 0, ``alpha * x`` below: the rectifier, leaky if ``alpha`` is not 0.

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
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below (Clevert et al., 2015)."""
    x = _float(x)
    # Where x is positive, exp(x) may be infinite, and its gradient 0 times infinity.
    return switch(gt(x, 0), x, alpha * expm1(switch(gt(x, 0), 0, x)))


def selu(x: Any) -> TensorVariable:
    """The self-normalizing unit of Klambauer et al. (2017)."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


def softsign(x: Any) -> TensorVariable:
    """``x / (1 + |x|)``."""
    x = _float(x)
    return x / (1 + abs_(x))


def hard_sigmoid(x: Any) -> TensorVariable:
    """``0.2 x + 0.5``, clipped to [0, 1]."""
    return clip(0.2 * _float(x) + 0.5, 0.0, 1.0)


def ultra_fast_sigmoid(x: Any) -> TensorVariable:
    """A rational approximation of sigmoid, in Theano's pieces: off by at most 0.03."""
    x = _float(x) * 0.5
    # The second piece ends at a = 3, where it has the constant value of the third.
    a = minimum(abs_(x), 3)
    first = 1.5 * a / (1 + a)
    second = 0.935409070603099 + 0.0458812946797165 * (a - 1.7)
    size = switch(gt(1.7, a), first, second)
    return 0.5 * (switch(gt(x, 0), size, -size) + 1)


# -- losses


def binary_crossentropy(output: Any, target: Any) -> TensorVariable:
    """``-(t log(o) + (1 - t) log(1 - o))``, elementwise, for probabilities ``output``.

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
    """``binary_crossentropy(sigmoid(output), target)``, accurate for any ``output``."""
    output, target = as_common(output, target)
    return target * softplus(-output) + (1.0 - target) * softplus(output)


def categorical_crossentropy(coding_dist: Any, true_dist: Any) -> TensorVariable:
    """The mean number of nats per example when ``true_dist`` is coded by ``coding_dist``.

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
        return crossentropy_categorical_1hot(coding, true)
    raise ShapeError(
        f"categorical_crossentropy: true_dist ({true.type}) must have as many axes as coding_dist "
        f"({coding.type}), or be "
        "integers with one less"
    )


def crossentropy_categorical_1hot(coding_dist: Any, true_one_of_n: Any) -> TensorVariable:
    """``-log(coding_dist[i, true_one_of_n[i]])`` for every row i."""
    coding, true = as_tensor_variable(coding_dist), as_tensor_variable(true_one_of_n)
    if coding.ndim != 2 or true.ndim != 1:
        raise ShapeError(
            f"crossentropy_categorical_1hot: a matrix and a vector are needed, got {coding.type} "
            f"and {true.type}"
        )
    if not dtypes.is_discrete(true.dtype) or true.dtype == "bool":
        raise DTypeError(
            f"crossentropy_categorical_1hot: the classes must be integers, got {true.type}: cast "
            "them to int64"
        )
    # An index of length 1 would be stretched to all rows.
    true = same_lengths("crossentropy_categorical_1hot", coding, true, [(0, 0)])
    return -log(getitem(coding, (arange(shape_tuple(coding)[0]), true)))


__all__ = [
    "binary_crossentropy", "categorical_crossentropy", "crossentropy_categorical_1hot", "elu",
    "hard_sigmoid", "log_softmax", "LogSoftmax", "logsoftmax", "relu", "selu", "sigmoid",
    "sigmoid_binary_crossentropy", "Softmax", "softmax", "softmax_with_bias", "softplus",
    "softsign", "ultra_fast_sigmoid",
]  # fmt: skip
