"""Batch normalization (Ioffe and Szegedy, 2015), as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import sqr, sqrt
from symcomp.ops.reductions.functions import mean as mean_
from symcomp.ops.shapes.axes import dimshuffle, expand_dims
from symcomp.ops.shapes.reshaping import addbroadcast
from symcomp.ops.shapes.shape import normalize_axes, product_of, shape_tuple


def _read_axes(name: str, x: TensorVariable, axes: Any) -> tuple[int, ...]:
    """Return the axes to average over."""
    if x.ndim < 1:
        raise ShapeError(f"{name}: inputs is the scalar {x}")
    if axes == "per-activation":
        return (0,)
    if axes == "spatial":
        return (0, *range(2, x.ndim))
    if isinstance(axes, str) or not isinstance(axes, Sequence) or not axes:
        raise ValueError(
            f"{name}: axes is {axes!r}; 'per-activation', 'spatial' or some ints are needed"
        )
    return tuple(sorted(normalize_axes(name, tuple(axes), x.ndim)))


def _spread(name: str, title: str, p: Any, x: TensorVariable, axes: Sequence[int]) -> Any:
    """Return a parameter with the axes of ``x``, of length 1 along ``axes``, which it may lack."""
    p = as_tensor_variable(p)
    if p.ndim == x.ndim:
        return addbroadcast(p, *axes)
    if p.ndim != x.ndim - len(axes):
        raise ShapeError(
            f"{name}: {title} is {p.type}; for inputs {x.type} and axes {tuple(axes)} it must have "
            f"{x.ndim} axes, or {x.ndim - len(axes)}"
        )
    return expand_dims(p, tuple(axes))


def _like(p: Any, wide: TensorVariable, axes: Sequence[int]) -> TensorVariable:
    """Return a tensor of ``_spread``'s shape with the axes of the parameter ``p``."""
    if as_tensor_variable(p).ndim == wide.ndim:
        return wide
    return dimshuffle(wide, *(a for a in range(wide.ndim) if a not in axes))


def batch_normalization_train(
    inputs: Any,
    gamma: Any,
    beta: Any,
    axes: Any = "per-activation",
    epsilon: Any = 1e-4,
    running_average_factor: Any = 0.1,
    running_mean: Any = None,
    running_var: Any = None,
) -> tuple[TensorVariable, ...]:
    """Normalize by the mean and the variance of the batch: ``(inputs - mean) / sqrt(var + epsilon)
    * gamma + beta``.

    Parameters
    ----------
    inputs : tensor
    gamma, beta : tensor
        With the axes of ``inputs``, of length 1 along ``axes``; or without these.
    axes : {"per-activation", "spatial"} or sequence of int
        Over which axes mean and variance are taken: the first; all but the second; or these.
    epsilon : float
    running_average_factor : float
        The weight of the batch in the running averages.
    running_mean, running_var : tensor, optional
        Both or none: the averages before this batch, with axes as ``gamma``.

    Returns
    -------
    out, mean, invstd : TensorVariable
        The normalized inputs; the mean and ``1 / sqrt(var + epsilon)``, with axes as ``gamma``.
        With running averages, their new values follow; that of the variance counts one element
        less.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> out, mean, invstd = T.nnet.bn.batch_normalization_train(x, np.ones(2), np.zeros(2))
    >>> mean.eval({x: [[1.0, 2.0], [3.0, 6.0]]})
    array([2., 4.])
    """
    name = "batch_normalization_train"
    x = as_tensor_variable(inputs)
    over = _read_axes(name, x, axes)
    if (running_mean is None) != (running_var is None):
        raise ValueError(f"{name}: running_mean and running_var go together: pass both, or none")
    mean = mean_(x, axis=over, keepdims=True)
    var = mean_(sqr(x - mean), axis=over, keepdims=True)
    invstd = 1 / sqrt(var + epsilon)
    wide_gamma, wide_beta = (
        _spread(name, t, p, x, over) for t, p in (("gamma", gamma), ("beta", beta))
    )
    out = (x - mean) * invstd * wide_gamma + wide_beta
    found = [out, _like(gamma, mean, over), _like(gamma, invstd, over)]
    if running_mean is not None:
        keep = 1 - running_average_factor
        count = product_of([shape_tuple(x)[a] for a in over])
        unbiased = var * (as_tensor_variable(count).astype(x.dtype) / (count - 1))
        for title, old, new in (
            ("running_mean", running_mean, mean),
            ("running_var", running_var, unbiased),
        ):
            updated = _spread(name, title, old, x, over) * keep + new * running_average_factor
            found.append(_like(old, updated, over).astype(as_tensor_variable(old).dtype))
    return tuple(found)


def batch_normalization_test(
    inputs: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    var: Any,
    axes: Any = "per-activation",
    epsilon: Any = 1e-4,
) -> TensorVariable:
    """Normalize by a given mean and variance, as the running averages; arguments are as for
    ``batch_normalization_train``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> one = T.ones((1, 1))
    >>> z = T.nnet.batch_normalization_test([[1.0], [3.0]], one, 0 * one, 2 * one, one, epsilon=0)
    >>> z.eval()
    array([[-1.],
           [ 1.]])
    """
    name = "batch_normalization_test"
    x = as_tensor_variable(inputs)
    over = _read_axes(name, x, axes)
    given = (("gamma", gamma), ("beta", beta), ("mean", mean), ("var", var))
    wide = [_spread(name, title, p, x, over) for title, p in given]
    return (x - wide[2]) * (wide[0] / sqrt(wide[3] + epsilon)) + wide[1]


def batch_normalization(
    inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem"
) -> TensorVariable:
    """Compute ``(inputs - mean) * gamma / std + beta``: all broadcast against each other.

    Parameters
    ----------
    inputs, gamma, beta, mean, std : tensor_like
    mode : {"low_mem", "high_mem"}
        Theano's; both are the same here.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.nnet.batch_normalization([[1.0], [3.0]], [2.0], [0.5], [2.0], [1.0]).eval()
    array([[-1.5],
           [ 2.5]])
    """
    if mode not in ("low_mem", "high_mem"):
        raise ValueError(f"batch_normalization: mode is {mode!r}; 'low_mem' or 'high_mem'")
    return (as_tensor_variable(inputs) - mean) * (as_tensor_variable(gamma) / std) + beta


__all__ = ["batch_normalization", "batch_normalization_test", "batch_normalization_train"]
