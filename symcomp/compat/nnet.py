"""Differences between ``theano.tensor.nnet`` and ``symcomp.tensor.nnet``, and names that only
Theano has.
"""

from __future__ import annotations

from typing import Any

import symcomp.tensor as T
from symcomp.compat.conv_op import check_options
from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import exp
from symcomp.ops.indexing.index_arithmetic import to_one_hot
from symcomp.ops.nnet import classification
from symcomp.ops.nnet import functions as nnet
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.filled import full, zeros
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.windows import convolve

__all__ = [
    "abstract_conv2d", "crossentropy_softmax_1hot_with_bias_dx",
    "crossentropy_softmax_max_and_argmax_1hot", "logsoftmax", "logsoftmax_op",
    "prepend_0_to_each_row", "prepend_1_to_each_row", "prepend_to_each_row", "softmax",
    "softmax_grad", "softmax_graph", "softmax_op",
]  # fmt: skip


def softmax(c: Any) -> TensorVariable:
    """Compute softmax of the rows of a matrix; a vector is treated as a matrix of one row, as is
    its result.
    """
    return nnet.softmax(_as_rows("softmax", c))


def logsoftmax(c: Any) -> TensorVariable:
    """Compute the logarithm of ``softmax``."""
    return nnet.log_softmax(_as_rows("logsoftmax", c))


softmax_op, logsoftmax_op = softmax, logsoftmax
abstract_conv2d = convolve.conv2d


def legacy_conv2d_of_planes(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **options: Any,
) -> TensorVariable:
    """Implement ``theano.tensor.signal.conv.conv2d``, with the options of ``nnet.conv.conv2d``."""
    check_options("signal.conv.conv2d", options)
    shapes = (image_shape, filter_shape)
    return convolve.conv2d_of_planes(input, filters, *shapes, border_mode, subsample)


def _as_rows(name: str, c: Any) -> TensorVariable:
    c = as_tensor_variable(c)
    if c.ndim not in (1, 2):
        raise ValueError(f"{name}: its argument must have 1 or 2 axes, but {c} has {c.ndim}")
    return shape_padleft(c) if c.ndim == 1 else c


def softmax_graph(c: Any) -> TensorVariable:
    """Compute ``softmax`` by its formula."""
    powers = exp(_as_rows("softmax_graph", c))
    return powers / powers.sum(axis=-1, keepdims=True)


def softmax_grad(dy: Any, sm: Any) -> TensorVariable:
    """Compute the gradient with respect to the argument of ``softmax``, whose result is ``sm``."""
    dy, sm = as_tensor_variable(dy), as_tensor_variable(sm)
    weighted = dy * sm
    return weighted - weighted.sum(axis=-1, keepdims=True) * sm


def crossentropy_softmax_1hot_with_bias_dx(dy: Any, sm: Any, y_idx: Any) -> TensorVariable:
    """Compute the gradient of the cross-entropies of rows with respect to the argument of
    ``softmax``.
    """
    dy, sm, y_idx = (as_tensor_variable(v) for v in (dy, sm, y_idx))
    y_idx = Labels("crossentropy_softmax_1hot_with_bias_dx: y_idx")(y_idx, sm.shape[1])
    return dy.dimshuffle(0, "x") * (sm - to_one_hot(y_idx, sm.shape[1], dtype=sm.dtype))


def crossentropy_softmax_max_and_argmax_1hot(x: Any, y_idx: Any, **kwargs: Any) -> Any:
    """Return the cross-entropies of rows, the probabilities, and the largest of these and its
    index.
    """
    x = as_tensor_variable(x)
    bias = zeros(x.shape[1], dtype=x.dtype)
    return classification.crossentropy_softmax_max_and_argmax_1hot_with_bias(x, bias, y_idx)


def prepend_0_to_each_row(x: Any) -> TensorVariable:
    """Return a matrix with a first column of zeros."""
    return prepend_to_each_row(0, x)


def prepend_1_to_each_row(x: Any) -> TensorVariable:
    """Return a matrix with a first column of ones."""
    return prepend_to_each_row(1, x)


def prepend_to_each_row(value: Any, matrix: Any) -> TensorVariable:
    """Return a matrix with a first column of one number."""
    x = as_tensor_variable(matrix)
    return concatenate([full((x.shape[0], 1), value, dtype=x.dtype), x], axis=1)


def ctc(activations: Any, labels: Any, input_lengths: Any) -> TensorVariable:
    """Implement ``theano.tensor.nnet.ctc.ctc``: connectionist temporal classification."""
    return T.nnet.ctc.ctc(activations, labels, input_lengths)


def ctc_available() -> bool:
    """Return True: no library is needed."""
    return True


CTC = {"ctc": ctc, "ctc_available": ctc_available, "ctc_present": ctc_available}
