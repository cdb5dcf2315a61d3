"""Parts of arrays, joins, layouts and writes to parts."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


@golden
def slices() -> Golden:
    """Slice with steps, from the end, with new axes; differentiate it."""
    x = T.dtensor3("x")
    parts = [x[1:, ::2, -1], x[::-1, None, 0], x[..., 1:-1], x[-1, 1, 2], x[:0]]
    loss = sum((part**2).sum() for part in parts)
    return Golden([x], [*parts, symcomp.grad(loss, x)], [numbers(3, 4, 5)])


@golden
def slices_of_read_lengths() -> Golden:
    """Slice with bounds that are arguments, or computed from values."""
    x, i, j = T.dmatrix("x"), T.lscalar("i"), T.lscalar("j")
    found = x[i:j] * 2 + x[i : i + j - i]
    longest = T.cast(abs(x).max(), "int64") + 2
    outputs = [found, x[i, j], x[:longest].sum(axis=0)]
    return Golden([x, i, j], outputs, [numbers(5, 4), np.int64(1), np.int64(3)])


@golden
def writes_to_parts() -> Golden:
    """Write to slices, to one element, to rows by their numbers."""
    x, y, rows = T.dmatrix("x"), T.dvector("y"), T.lvector("rows")
    z = T.set_subtensor(x[1], y)
    z = T.inc_subtensor(z[:, ::2], 1.0)
    z = T.set_subtensor(z[0, -1], y[0])
    z = T.inc_subtensor(z[rows], y)
    z = T.set_subtensor(z[rows, rows], 0.0)
    loss = (z**2).sum()
    arguments = [numbers(4, 5), numbers(5), np.array([2, 0, 2])]
    return Golden([x, y, rows], [z, *symcomp.grad(loss, [x, y])], arguments)


@golden
def joins() -> Golden:
    """Join, stack and split, and differentiate it."""
    x, y, z = T.dmatrices("x", "y", "z")
    joined = T.join(0, x, y, T.exp(z))
    beside = T.concatenate([x, x.T[: x.shape[0]], T.zeros((3, 2))], axis=1)
    stacked = T.stack([x[0], y[0] * 2, z[0]], axis=1)
    first, second = T.split(joined, [2, 5], 2, axis=0)
    loss = (first**2).sum() + (second**3).sum() + (stacked**2).sum()
    slopes = symcomp.grad(loss, [x, y])
    arguments = [numbers(3, 3), numbers(2, 3), numbers(2, 3)]
    return Golden([x, y, z], [joined, beside, stacked, first, second, *slopes], arguments)


@golden
def layouts() -> Golden:
    """Add a transposed matrix, reshape, move and repeat axes."""
    x, y = T.dmatrices("x", "y")
    flat = (x + y.T).reshape((2, -1))
    cube = x.dimshuffle(1, "x", 0) * y
    outputs = [flat, cube, T.tile(x, (2, 3)), T.repeat(y, 2, axis=1), T.flip(x, 0)]
    outputs += [T.roll(x, 1, axis=1), T.moveaxis(cube, 0, 2), x.flatten()[::3]]
    return Golden([x, y], outputs, [numbers(3, 4), numbers(4, 3)])


@golden
def arrays_made() -> Golden:
    """Make ranges, constants, diagonals and triangles of a length that is an argument."""
    n, v = T.lscalar("n"), T.dvector("v")
    made = [T.arange(n), T.arange(n, 0, -2), T.alloc(v[0], n, 2), T.eye(n, n + 1, 1), T.tri(n)]
    made += [T.diag(v), T.tril(T.outer(v, v)), T.linspace(v[0], v[1], 4), T.zeros((n, 0)).sum()]
    return Golden([n, v], made, [np.int64(4), numbers(3)])


@golden
def broadcasting() -> Golden:
    """Broadcast rows, columns and scalars; the gradient sums along the broadcast axes."""
    x, r, c, s = T.dmatrix("x"), T.drow("r"), T.dcol("c"), T.dscalar("s")
    z = (x + r) * c - s
    slopes = symcomp.grad((z**2).sum(), [x, r, c, s])
    arguments = [numbers(3, 4), numbers(1, 4), numbers(3, 1), numbers()]
    return Golden([x, r, c, s], [z, *slopes], arguments)


@golden
def checked_shapes() -> Golden:
    """Check a shape and a condition before the work."""
    x, y = T.dmatrix("x"), T.dvector("y")
    fixed = T.specify_shape(x, (3, 4))
    positive = T.Assert("y must be positive")(y, T.all(y > 0))
    return Golden([x, y], T.dot(fixed, T.log(positive)), [numbers(3, 4), 1 + abs(numbers(4))])
