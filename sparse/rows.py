"""Steps of training that decay states of all rows, to which the rows of a gradient are added.

The ops overwrite their arguments where these have no other client: then no array of their size is
allocated. Rows are processed in blocks, so that intermediate values stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.errors import DTypeError, IndexOutOfRangeError, ShapeError
from symcomp.sparse.patterns import check_index_vectors

# Bytes of the rows that are taken at a time.
BLOCK = 1 << 19


class RowStep(Op):
    """(state' .., w') from scalars, states of the shape of w, w, the rows y of a gradient, and ids.

    Attributes
    ----------
    n_scalars, n_states : int
        The number of scalars and states.
    """

    n_scalars = 0
    n_states = 0

    multiple_outputs = True
    no_derivative = "it is a step of training; written by its formula, it can be differentiated"

    def parts(self, inputs: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return the scalars, the states with w, y and ids."""
        k, m = self.n_scalars, self.n_states
        return inputs[:k], inputs[k : k + m + 1], inputs[-2], inputs[-1]

    def output_types(self, *inputs: Any) -> list[Type]:
        scalars, tables, y, ids = self.parts(inputs)
        check_index_vectors("rows", ids)
        w = tables[-1]
        fits = all(c.ndim == 0 and c.dtype == w.dtype for c in scalars) and all(
            (x.ndim, x.dtype) == (w.ndim, w.dtype) for x in (*tables, y)
        )
        if not fits or not w.ndim:
            raise DTypeError(f"{self}: {', '.join(str(x.type) for x in inputs)} do not fit")
        return [x.type for x in tables]

    def perform(self, *values: Any) -> tuple[Any, ...]:
        return self.write(*values, *[None] * (self.n_states + 1))

    def write(self, *given: Any) -> tuple[Any, ...]:
        """Compute from the inputs; the arrays after them, or None for new ones, take the results.
        """
        n = self.n_states + 1
        values, places = given[:-n], given[-n:]
        scalars, tables, y, ids = self.parts(values)
        check_rows(tables, y, ids)
        results = []
        for x, z in zip(tables, places, strict=True):
            z = np.empty_like(x) if z is None else z
            if z is not x:
                np.copyto(z, x)
            results.append(z)
        self.step(scalars, results, y, ids)
        return tuple(results)

    def step(self, scalars: Any, tables: Any, y: Any, ids: Any) -> None:
        """Change the states and w in place."""
        raise NotImplementedError(f"{type(self).__name__} defines no step")

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return list(self.parts(shapes)[1])


def check_rows(tables: Sequence[Any], y: Any, ids: Any) -> None:
    """Raise an error unless all tables have one shape and the rows ``ids`` of ``y``."""
    w = tables[-1]
    if any(x.shape != w.shape for x in tables):
        raise ShapeError(f"rows: the shapes {', '.join(str(x.shape) for x in tables)} differ")
    if y.shape != (len(ids), *w.shape[1:]):
        raise ShapeError(f"rows: {len(ids)} rows of shape {w.shape[1:]} are needed, got {y.shape}")
    n = len(w)
    if len(ids) and not -n <= ids.min() <= ids.max() < n:
        wrong = ids[(ids < -n) | (ids >= n)][0]
        raise IndexOutOfRangeError(f"rows: there is no row {wrong} of {n}")


def blocks_of(*tables: Any) -> Any:
    """Yield the rows of tables of one shape, some at a time."""
    rows = max(BLOCK // max(tables[0][:1].nbytes, 1), 1)
    for start in range(0, len(tables[0]), rows):
        yield tuple(x[start : start + rows] for x in tables)


@record
class MomentumRows(RowStep):
    """v' = c v, with y_k added to row ids_k; w' = w - rate v'.   Inputs: c, rate, v, w, y, ids"""

    n_scalars = 2
    n_states = 1

    def step(self, scalars: Any, tables: Any, y: Any, ids: Any) -> None:
        (c, rate), (v, w) = scalars, tables
        np.multiply(v, c, out=v)
        np.add.at(v, ids, y)
        for v_rows, w_rows in blocks_of(v, w):
            w_rows -= rate * v_rows


@record
class AdamRows(RowStep):
    """m' = b1 m, v' = b2 v, with (1 - b1) y_k and (1 - b2) y_k^2 added to row ids_k;
    w' = w - rate m' / (sqrt(v') + eps).   Inputs: b1, b2, rate, eps, m, v, w, y, ids
    """

    n_scalars = 4
    n_states = 2

    def step(self, scalars: Any, tables: Any, y: Any, ids: Any) -> None:
        (b1, b2, rate, eps), (m, v, w) = scalars, tables
        np.multiply(m, b1, out=m)
        np.multiply(v, b2, out=v)
        np.add.at(m, ids, (1 - b1) * y)
        np.add.at(v, ids, (1 - b2) * y * y)
        for m_rows, v_rows, w_rows in blocks_of(m, v, w):
            below = np.sqrt(v_rows)
            below += eps
            np.divide(m_rows, below, out=below)
            below *= rate
            w_rows -= below
