"""Functions of one kernel each, whose C is shown in full; one for each schedule of a nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


def _matrices(count: int, dtype: str, outputs: Callable[..., Sequence[Any]]) -> Golden:
    """Build a function of matrices."""
    inputs = [T.tensor(dtype, (None, None), name=f"x{i}") for i in range(count)]
    arguments = [numbers(3, 4, dtype=dtype) for _ in inputs]
    return Golden(inputs, outputs(*inputs), arguments, whole_kernels=True)


@golden
def kernel_of_light_elements() -> Golden:
    """Broadcast a row, and multiply by constants."""
    return _matrices(2, "float32", lambda x, y: [(x + y[0]) * 2 - 1])


@golden
def kernel_of_functions() -> Golden:
    """Call functions of C in blocks; the remainder is one more block."""
    return _matrices(2, "float64", lambda x, y: [T.exp(x) / (1 + y), T.erf(x)])


@golden
def kernel_of_sums() -> Golden:
    return _matrices(1, "float64", lambda x: [x.sum(axis=1)])


@golden
def kernel_of_computed_sums() -> Golden:
    """Store the elements that are summed."""
    return _matrices(2, "float32", lambda x, y: [T.exp(x * y), T.exp(x * y).sum(axis=0)])


@golden
def kernel_of_integer_products() -> Golden:
    return _matrices(1, "int32", lambda x: [x.prod(axis=0)])


@golden
def kernel_of_extremes() -> Golden:
    return _matrices(1, "float32", lambda x: [x.max(axis=1)])


@golden
def kernel_of_half_precision() -> Golden:
    return _matrices(1, "float16", lambda x: [(x * x).sum(axis=0)])


@golden
def kernel_of_bfloat16() -> Golden:
    return _matrices(1, "bfloat16", lambda x: [(x * x).sum(axis=0)])


@golden
def kernel_of_complex_numbers() -> Golden:
    return _matrices(2, "complex64", lambda x, y: [(x * T.conj(y)).sum()])


@golden
def kernel_of_softmax() -> Golden:
    """Pass over each row three times: maximum, sum of exponentials, quotient."""
    return _matrices(1, "float32", lambda x: [T.softmax(x, axis=1)])


@golden
def kernel_of_logsumexp() -> Golden:
    """Sum in the wider type where parts cancel."""
    return _matrices(1, "float64", lambda x: [T.logsumexp(x, axis=1)])


@golden
def kernel_of_picked_labels() -> Golden:
    """Read one element of each row by its label; the kernel has several nests."""
    x, y = T.fmatrix("x"), T.ivector("y")
    log_p = T.log_softmax(x, axis=1)[T.arange(y.shape[0]), y]
    arguments = [numbers(3, 4, dtype="float32"), numbers(3, dtype="int32") % 4]
    return Golden([x, y], log_p, arguments, whole_kernels=True)
