"""Indexing by arrays and masks, sorting and searching."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


@golden
def rows_by_number() -> Golden:
    x, i = T.dmatrix("x"), T.lvector("i")
    found = x[i]
    slope = symcomp.grad((found**2).sum(), x)
    return Golden([x, i], [found, x[:, i[:2]], slope], [numbers(5, 4), np.array([3, 0, 3])])


@golden
def elements_by_arrays() -> Golden:
    """Index by several arrays, with slices between them, and along an axis."""
    x, i, j = T.dtensor3("x"), T.lmatrix("i"), T.lvector("j")
    parts = [x[i, :, j], x[0, j, j], x[:, i], T.take(x, j, axis=2)]
    along = T.take_along_axis(x[0], i, axis=1)
    slope = symcomp.grad(sum((part**2).sum() for part in parts), x)
    arguments = [numbers(3, 3, 4), np.array([[0, 2], [1, 1], [2, 0]]), np.array([2, 0])]
    return Golden([x, i, j], [*parts, along, slope], arguments)


@golden
def elements_of_groups() -> Golden:
    """Read the coefficients of groups in the loop over the rows; add up gradients by group."""
    a, b, group, x = T.dvector("a"), T.fvector("b"), T.ivector("group"), T.dvector("x")
    density = ((x - a[group] * T.tanh(b[group])) ** 2).sum()
    outputs = [density, *symcomp.grad(density, [a, b])]
    values = [numbers(3), numbers(4).astype("float32"), np.array([0, 0, -1, 1, 2], "int32")]
    return Golden([a, b, group, x], outputs, [*values, numbers(5)])


@golden
def masks() -> Golden:
    """Select by conditions: the lengths of the results depend on values."""
    x = T.dmatrix("x")
    positive = x[x > 0]
    rows, columns = T.nonzero(x > 0.3)
    replaced = T.set_subtensor(x[x < 0], 0.0)
    slope = symcomp.grad((positive**3).sum(), x)
    outputs = [positive * 2, rows, columns, replaced, slope, positive.shape[0]]
    return Golden([x], outputs, [numbers(4, 5)])


@golden
def sorting() -> Golden:
    x, v = T.dmatrix("x"), T.dvector("v")
    ordered = T.sort(x, axis=1)
    top = T.topk(x, 2, axis=1)
    slope = symcomp.grad((ordered * T.arange(5)).sum() + top.sum(), x)
    outputs = [ordered, T.argsort(x, axis=0), top, slope, T.searchsorted(T.sort(v), x)]
    return Golden([x, v], [*outputs, T.median(v)], [numbers(4, 5), numbers(6)])


@golden
def distinct_elements() -> Golden:
    x = T.lvector("x")
    values, first, inverse, counts = T.unique(x, True, True, True)
    outputs = [values, first, inverse, counts, T.bincount(x), T.argmax(counts)]
    return Golden([x], outputs, [np.array([3, 1, 3, 0, 1, 3])])


@golden
def one_hot_labels() -> Golden:
    """Read, write and encode one element of each row by its label."""
    x, y = T.fmatrix("x"), T.lvector("y")
    picked = x[T.arange(y.shape[0]), y]
    put = T.set_subtensor(T.zeros_like(x)[T.arange(y.shape[0]), y], 1)
    arguments = [numbers(4, 3, dtype="float32"), np.array([0, 2, 1, 1])]
    return Golden([x, y], [picked, put, T.to_one_hot(y, 3)], arguments)
