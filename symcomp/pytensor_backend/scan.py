"""PyTensor's Scan as symcomp's.

A state of PyTensor is a buffer: rows that the loop starts from, and room for rows that it makes,
or for the last of them alone. symcomp's loop makes its rows itself; of a buffer it reads the first.

* A state with outputs at each step (mit-sot, sit-sot) is a traced state.
* A buffer in which rows are read and written before and behind each other (mit-mot): the rows
  around step t are a window: the newest is row t + k of the buffer, the k before it are carried
  from step to step, and the oldest leaves as the row t of a stacked output.
* A value without rows (untraced sit-sot) is carried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pytensor.scan.op import Scan as LoopOp

import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.core.tensor import TensorType
from symcomp.ops.control.conditions import IfElse as Choice
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.shape import known_length, shape_tuple
from symcomp.pytensor_backend.dispatch import graph_of, like, translate, variable_of
from symcomp.scan.layout import Arguments, Layout, flat_arguments
from symcomp.scan.op import Scan


class Window(NamedTuple):
    """Rows of a buffer around a step: offsets from row t at which they are read and written."""

    buffer: Any
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def width(self) -> int:
        """The offset of the newest row."""
        return max(*self.reads, *self.writes)


@translate.register(LoopOp)
def _scan(op: Any, node: Any, *args: Any) -> Any:
    return _Translation(op, node, args).run()


class _Translation:
    """One Scan of PyTensor while it is translated."""

    def __init__(self, op: Any, node: Any, args: Sequence[Any]) -> None:
        self.op, self.node, self.info = op, node, op.info
        self.n = cast_to(args[0], "int64")
        self.sequences = list(op.outer_seqs(args))
        self.windows = [
            Window(*parts)
            for parts in zip(
                op.outer_mitmot(args),
                self.info.normalized_mit_mot_in_slices,
                self.info.normalized_mit_mot_out_slices,
                strict=True,
            )
        ]
        self.buffers = [*op.outer_mitsot(args), *op.outer_sitsot(args)]
        self.taps = [*self.info.mit_sot_in_slices, *([(-1,)] * self.info.n_sit_sot)]
        self.sizes = list(op.outer_nitsot(args))
        self.carried = list(op.outer_untraced_sit_sot(args))
        self.captured = list(op.outer_non_seqs(args))

    def run(self) -> list[Any]:
        """Return windows, states, stacked outputs and carried values, in PyTensor's order."""
        op, info = self.op, self.info
        inner = [variable_of(v) for v in op.fgraph.inputs]
        windows = [self._slots(w) for w in self.windows]
        given = self._with_windows(inner, windows)
        new = graph_of(op.fgraph, given)
        moved, left = self._moved(windows, op.inner_mitmot_outs(new))
        lagged = [*op.inner_mitsot_grouped(inner), *([x] for x in op.inner_sitsot(inner))]
        rows_new = [*op.inner_mitsot_outs(new), *op.inner_sitsot_outs(new)]
        carried_in = op.inner_untraced_sit_sot(inner)
        carried_new = [
            like(a, b)
            for a, b in zip(op.inner_untraced_sit_sot_outs(new), carried_in, strict=True)
        ]
        stop = [cast_to(new[-1], "bool")] if info.as_while else []
        lags = tuple(tuple(-t for t in taps) for taps in self.taps)
        carried_rows = [x for slots in windows for x in slots[:-1]]
        layout = Layout(
            lags,
            len(carried_rows) + len(carried_in),
            len(self.sequences) + len(windows),
            len(left) + info.n_nit_sot,
            info.as_while,
        )
        states_new = [like(y, xs[0]) for y, xs in zip(rows_new, lagged, strict=True)]
        body = ClosedGraph(
            [
                *(x for xs in lagged for x in xs),
                *carried_rows,
                *carried_in,
                *op.inner_seqs(inner),
                *(slots[-1] for slots in windows),
                *op.inner_non_seqs(inner),
            ],
            [
                *states_new,
                *moved,
                *carried_new,
                *left,
                *op.inner_nitsot_outs(new),
                *stop,
            ],
        )
        loop = Scan(body, layout, name=op.name or "scan")
        found = layout.results(loop(*flat_arguments(self._arguments(lags))))
        return self._outputs(found, len(carried_rows), len(left))

    def _arguments(self, lags: Sequence[Sequence[int]]) -> Arguments:
        """Return the arguments of the loop."""
        starts = []
        for buffer, taps in zip(self.buffers, lags, strict=True):
            depth = max(taps)
            rows = buffer[:depth]
            lengths = [depth, *[None] * (rows.ndim - 1)]
            starts.append(rows if rows.type.shape[0] == depth else T.specify_shape(rows, lengths))
        first = [w.buffer[k] for w in self.windows for k in range(w.width)]
        newest = [w.buffer[w.width :][: self.n] for w in self.windows]
        return Arguments(
            self.n,
            starts,
            [*first, *self.carried],
            [*self.sequences, *newest],
            self.captured,
        )

    def _slots(self, window: Window) -> list[Any]:
        """New variables for the rows of a window, the oldest first."""
        kind = TensorType(window.buffer.dtype, window.buffer.type.shape[1:])
        return [kind(f"row[t + {k}]") for k in range(window.width + 1)]

    def _with_windows(self, inner: list[Any], windows: list[list[Any]]) -> list[Any]:
        """Return the inputs of PyTensor's step; rows of windows stand for the rows it reads."""
        rows = [slots[k] for w, slots in zip(self.windows, windows, strict=True) for k in w.reads]
        first = self.info.n_seqs
        return [*inner[:first], *rows, *inner[first + len(rows) :]]

    def _moved(self, windows: list[list[Any]], new: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the rows that windows carry to the next step, and the rows that leave now."""
        moved, left, rest = [], [], list(new)
        for w, slots in zip(self.windows, windows, strict=True):
            rows = list(slots)
            for k in w.writes:
                rows[k] = like(rest.pop(0), slots[k])
            left.append(rows[0])
            moved += rows[1:]
        return moved, left

    def _outputs(self, found: Any, n_rows: int, n_left: int) -> list[Any]:
        n = self.n if found.last is None else found.last
        results: list[Any] = []
        ends = list(found.carried[:n_rows])
        for w, rows in zip(self.windows, found.stacked[:n_left], strict=True):
            last, ends = ends[: w.width], ends[w.width :]
            whole = T.concatenate([rows, T.stack(last)]) if last else rows
            results.append(T.set_subtensor(w.buffer[: n + w.width], whole))
        sizes = [T.shape_i(buffer, 0) for buffer in self.buffers] + self.sizes
        for rows, size in zip([*found.traced, *found.stacked[n_left:]], sizes, strict=True):
            results.append(_kept_rows(rows, size, self.info.as_while))
        return [*results, *found.carried[n_rows:]]


def _kept_rows(rows: Any, size: Any, may_stop: bool) -> Any:
    """Return the last ``size`` rows; fewer if the loop stopped before, else zeros follow.

    PyTensor leaves steps out of the gradient of a loop whose steps count as constants before some
    point, and gives the rows of all of them.
    """
    size = cast_to(size, "int64")
    have, wanted = rows.type.shape[0], known_length(size)
    if have is not None and wanted is not None and have >= wanted:
        return rows[have - wanted :]
    count = T.shape_i(rows, 0)
    kept = rows[T.maximum(count - size, 0) :] if wanted is None else rows[-wanted:][:wanted]
    if may_stop:
        return kept
    missing = T.maximum(size - count, 0)
    padded = T.concatenate([kept, T.zeros([missing, *shape_tuple(rows)[1:]], dtype=rows.dtype)])
    forgotten = kept if kept.type.shape[0] is None else T.unbroadcast(kept, 0)
    (chosen,) = Choice(1)(T.gt(missing, 0), padded, forgotten)
    return chosen
