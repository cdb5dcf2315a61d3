"""Sparse matrices drawn at random, as functions of a state: each returns the state after it, too.

A stream keeps the state: ``stream.gen(sparse.poisson, x)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to, resolve_dtype
from symcomp.ops.elementwise.scalar_logic import ge, switch
from symcomp.ops.elementwise.scalar_math import cast, expm1, floor, log1p, maximum, minimum, round
from symcomp.ops.random import continuous, discrete
from symcomp.ops.random.state import RandomType, generator_at, words_of
from symcomp.ops.shapes.filled import alloc
from symcomp.ops.shapes.shape import ShapeI, as_length
from symcomp.sparse import values
from symcomp.sparse.components import Assemble, entry, parts_of, with_data
from symcomp.sparse.constructors import read_shape
from symcomp.sparse.convert import asformat, compressed
from symcomp.sparse.patterns import check_index_vectors
from symcomp.sparse.type import SparseType
from symcomp.sparse.values import major_axis

Pair = tuple[Any, Any]


@record
class DrawPattern(Op):
    """state', indices, indptr = a pattern of ``count`` places, all sets of places being alike.

    Inputs: the state; the int64 scalars n_major, n_minor, count.
    """

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, state: Any, n: Any, m: Any, count: Any) -> list[Type]:
        if not RandomType().is_super(state.type):
            raise DTypeError(f"sparse: {state} ({state.type}) is no state of a stream")
        return [RandomType(), TensorType("int32", (None,)), TensorType("int32", (None,))]

    def perform(self, words: Any, n: Any, m: Any, count: Any) -> tuple[Any, ...]:
        rows, columns, k = int(n), int(m), int(count)
        if min(rows, columns) < 0 or not 0 <= k <= rows * columns:
            raise ShapeError(f"sparse: {k} entries do not fit a matrix of ({rows}, {columns})")
        values.check_fits("int32", (rows, columns), k, "a matrix drawn at random")
        generator = generator_at(words)
        places = np.sort(generator.choice(rows * columns, k, replace=False, shuffle=False))
        major = places // max(columns, 1)
        counts = np.bincount(major, minlength=rows)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return words_of(generator), (places % max(columns, 1)).astype(np.int32), indptr

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        _, n, _, count = node.inputs
        return [(4,), (count,), (n + 1,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * 3] * 4


@record
class DrawSplits(Op):
    """state', z = how many of n_i trials fall on each entry of row i, whose chances are p.

    Inputs: the state; n, an int64 vector; p, indptr. The chances of a row are divided by their sum.
    """

    multiple_outputs = True
    no_derivative = "its outputs are integers"

    def output_types(self, state: Any, n: Any, p: Any, indptr: Any) -> list[Type]:
        check_index_vectors("multinomial", indptr)
        return [RandomType(), TensorType("int64", p.type.shape)]

    def perform(self, words: Any, n: Any, p: Any, indptr: Any) -> tuple[Any, ...]:
        rows = len(indptr) - 1
        if len(n) != rows:
            raise ShapeError(f"multinomial: {len(n)} numbers of trials for {rows} rows")
        if len(n) and n.min() < 0 or len(p) and not (p >= 0).all():
            raise ValueError("multinomial: numbers of trials and chances must not be negative")
        generator = generator_at(words)
        counts = np.diff(indptr)
        left = np.array(n)
        # Cumulative sums of the probabilities in each row.
        total = np.concatenate([[0.0], np.cumsum(p)])
        z = np.zeros(len(p), np.int64)
        for k in range(int(counts.max(initial=0))):
            (row,) = np.nonzero((counts > k) & (left > 0))
            at = indptr[row] + k
            rest = total[indptr[row + 1]] - total[at]
            last = counts[row] == k + 1
            with np.errstate(all="ignore"):
                chance = np.where(last, 1.0, np.clip(p[at] / rest, 0, 1))
            z[at] = generator.binomial(left[row], np.nan_to_num(chance))
            left[row] -= z[at]
        return words_of(generator), z

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(4,), shapes[2]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False] * 2] * 4


def random(
    state: Variable,
    m: Any,
    n: Any,
    density: Any = 0.01,
    format: str = "csr",
    dtype: Any = None,
) -> Pair:
    """Draw a sparse matrix with uniform entries at random places.

    Parameters
    ----------
    state : random state
    m, n : int or scalar
        The shape.
    density : number or scalar
        The share of places that have an entry: ``round(density m n)`` have one.
    format : {"csr", "csc"}
    dtype : optional
        By default ``config.floatX``.

    Returns
    -------
    (state, sparse matrix)

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> stream = T.random.RandomStream(seed=1)
    >>> x = stream.gen(sparse.random, 100, 50, 0.1)
    >>> symcomp.function([], x)().nnz
    500
    """
    rows, columns = as_length(m, "random"), as_length(n, "random")
    size = cast(rows, "float64") * cast(columns, "float64")
    count = cast(round(size * cast(as_tensor_variable(density), "float64")), "int64")
    kind = SparseType(format, resolve_dtype(dtype), (None, None))
    after, indices, indptr = _pattern(state, format, rows, columns, count)
    after, data = continuous.uniform(after, 0.0, 1.0, size=count, dtype=kind.dtype)
    shape = read_shape("random", (rows, columns))
    return after, Assemble(kind)(data, indices, indptr, shape)


def _pattern(state: Any, format: str, rows: Any, columns: Any, count: Any) -> Any:
    lengths = (columns, rows) if major_axis(format) else (rows, columns)
    return DrawPattern()(state, *lengths, count)


def poisson(state: Variable, x: Any) -> Pair:
    """Draw Poisson's numbers with the stored entries of a sparse matrix as means.

    Parameters
    ----------
    state : random state
    x : sparse matrix

    Returns
    -------
    (state, sparse matrix)
        With the pattern and dtype of ``x``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> _, z = sparse.poisson(T.random.state("start"), sparse.eye(2))
    >>> z.type
    SparseType(csr, float64, (2, 2))
    """
    x = compressed(x)
    parts = parts_of(x)
    mean = cast(parts.data, "float64")
    after, z = discrete.poisson(state, mean, size=ShapeI(0)(parts.indices))
    return after, with_data(x, cast_to(z, x.dtype), parts)


def binomial(
    state: Variable, n: Any, p: Any, shape: Any, format: str = "csr", dtype: Any = None
) -> Pair:
    """Draw a matrix of independent binomial numbers, which stores the nonzero ones.

    Parameters
    ----------
    state : random state
    n : int or scalar
        The trials of each element.
    p : number or scalar
        The chance of each trial.
    shape : two lengths
    format : {"csr", "csc"}
    dtype : optional
        By default ``config.floatX``.

    Returns
    -------
    (state, sparse matrix)
        Time and memory grow with the entries, not with the elements.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> _, z = sparse.binomial(T.random.state("start"), 5, 0.5, (2, 2))
    >>> z.type
    SparseType(csr, float64)
    """
    lengths = read_shape("binomial", shape)
    rows, columns = entry(lengths, 0), entry(lengths, 1)
    trials = cast(as_tensor_variable(n), "int64")
    chance = cast(as_tensor_variable(p), "float64")
    # The chance that an element is not 0, exact for small p.
    some = -expm1(cast(trials, "float64") * log1p(-chance))
    after, count = discrete.binomial(state, rows * columns, minimum(maximum(some, 0.0), 1.0))
    after, indices, indptr = _pattern(after, format, rows, columns, count)
    # Given that one trial succeeds: the first that does, and the binomial number of those after it.
    after, u = continuous.uniform(after, 0.0, 1.0, size=count, dtype="float64")
    first = cast(floor(log1p(-u * some) / log1p(-minimum(chance, 1 - 1e-16))), "int64")
    first = switch(ge(chance, 1.0), 0, maximum(minimum(first, trials - 1), 0))
    after, more = discrete.binomial(after, trials - 1 - first, chance, size=count)
    kind = SparseType(format, resolve_dtype(dtype), (None, None))
    return after, Assemble(kind)(cast(more + 1, kind.dtype), indices, indptr, lengths)


def multinomial(state: Variable, n: Any, p: Any) -> Pair:
    """Draw how many of ``n`` trials have each outcome, for each row of a sparse matrix of chances.

    Parameters
    ----------
    state : random state
    n : int, scalar or vector
        The number of trials of all rows, or of each.
    p : sparse matrix
        Each row has the chances of outcomes, which are divided by their sum.

    Returns
    -------
    (state, sparse matrix)
        With the pattern and dtype of ``p``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> _, z = sparse.multinomial(T.random.state("start"), 3, sparse.eye(2))
    >>> z.type
    SparseType(csr, float64, (2, 2))
    """
    p = compressed(p)
    rows = asformat(p, "csr")
    parts = parts_of(rows)
    trials = cast(as_tensor_variable(n), "int64")
    if trials.ndim > 1:
        raise ShapeError(f"multinomial: n is {trials} ({trials.type}); at most a vector is needed")
    if trials.ndim == 0:
        trials = alloc(trials, entry(parts.shape, 0))
    after, z = DrawSplits()(state, trials, cast(parts.data, "float64"), parts.indptr)
    return after, asformat(with_data(rows, cast_to(z, p.dtype), parts), p.type.format)


__all__ = ["binomial", "multinomial", "poisson", "random"]
