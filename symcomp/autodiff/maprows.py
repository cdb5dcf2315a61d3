"""MapRows: z[i] = body(i, captured) for i in range(n), without recurrence; jacobian is built on it.

MapRows is closed under differentiation: its pullback sums, and its pushforward maps, another body
over the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.autodiff.lop import Lop
from symcomp.autodiff.rop import Rop
from symcomp.core import dtype as dtypes
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import DTypeError, NullTypeGradError, ParameterError
from symcomp.ops.convert import as_tensor_variable

Run = Callable[[Sequence[Any]], list[Any]]


@record
class MapRows(Op):
    """z_k[i] = body_k(i, captured), stacked over i < n; or its sum over i, where ``summed[k]``.

    Inputs: n, one shape vector per output (the shape of one row's output), then the variables that
    the body captures. Inputs of ``body``: the row number and the captured variables.
    """

    body: ClosedGraph
    summed: tuple[bool, ...]

    multiple_outputs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.summed) != len(self.body.outputs) or not self.body.inputs:
            raise ParameterError(
                f"MapRows: {len(self.summed)} flags for the {len(self.body.outputs)} outputs of a "
                f"body with {len(self.body.inputs)} inputs, of which the first is the row number"
            )

    @property
    def _first(self) -> int:
        """Position of the first captured input."""
        return 1 + len(self.summed)

    def output_types(self, n: TensorVariable, *rest: Variable) -> list[TensorType]:
        if 1 + len(rest) != self._first + len(self.body.inputs) - 1:
            raise TypeError(f"{self}: {1 + len(rest)} inputs do not fit {self.body}")
        for x, inner in zip(rest[len(self.summed) :], self.body.inputs[1:], strict=True):
            if not inner.type.is_super(x.type):
                raise DTypeError(f"{self}: {x} of type {x.type} cannot be {inner} ({inner.type})")
        length = int(n.data) if isinstance(n, Constant) else None
        return [
            TensorType(out.dtype, out.type.shape if summed else (length, *out.type.shape))
            for out, summed in zip(self.body.outputs, self.summed, strict=True)
        ]

    def perform(self, n: Any, *rest: Any) -> tuple[Any, ...]:
        return self.rows(self.body.run, int(n), rest)

    def rows(self, run: Run, n: int, rest: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs, given the function that runs the body and the values of the inputs.
        """
        shapes, captured = rest[: len(self.summed)], rest[len(self.summed) :]
        results = []
        for out, summed, shape in zip(self.body.outputs, self.summed, shapes, strict=True):
            item = tuple(int(k) for k in shape)
            results.append(np.zeros(item, out.dtype) if summed else np.empty((n, *item), out.dtype))
        for i in range(n):
            try:
                row = run([np.asarray(i, np.int64), *captured])
            except Exception as problem:
                problem.add_note(f"This was in row {i} (of {n}) of {self}")
                raise
            for result, summed, value in zip(results, self.summed, row, strict=True):
                if summed:
                    result += value
                else:
                    result[i] = value
        return tuple(results)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        n = node.inputs[0]
        result = []
        for k, (out, summed) in enumerate(zip(node.outputs, self.summed, strict=True)):
            item_shape: Any = node.inputs[1 + k]
            item = tuple(item_shape[a] for a in range(out.type.ndim - (not summed)))
            result.append(item if summed else (n, *item))
        return result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        none = [False] * len(self.summed)
        return [none] * self._first + self.body.connection[1:]

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        reasons = self.body.undefined(forward)
        none = [""] * len(self.summed)
        return [none] * self._first + reasons[1:] if reasons else ()

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        index, *leaves = self.body.inputs
        wanted = [
            x for x in leaves if isinstance(x, TensorVariable) and not dtypes.is_discrete(x.dtype)
        ]
        live = [k for k, g in enumerate(output_grads) if g is not None]
        outs = [self.body.outputs[k] for k in live]
        actual = dict(zip(leaves, inputs[self._first :], strict=True))

        def sums(targets: list[Any]) -> list[Any]:
            def row(i: TensorVariable) -> list[Any]:
                seeds = [output_grads[k] if self.summed[k] else output_grads[k][i] for k in live]
                grads = Lop(outs, targets, seeds, disconnected_inputs="ignore")
                return rebuild(grads, {index: i, **actual}, strict=False)

            shapes = [actual[x].shape for x in targets]
            return map_rows(row, inputs[0], shapes, [True] * len(targets)) if targets else []

        try:
            found: dict[Variable, Any] = dict(zip(wanted, sums(wanted), strict=True))
        except NullTypeGradError:
            seeds = [y.type() for y in outs]
            some = Lop(outs, wanted, seeds, None, "ignore", null_gradients="return")
            found = {
                x: g for x, g in zip(wanted, some, strict=True) if isinstance(g.type, NullType)
            }
            defined = [x for x in wanted if x not in found]
            found.update(zip(defined, sums(defined), strict=True))
        return [None] * self._first + [found.get(x) for x in leaves]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        index, *leaves = self.body.inputs
        moving = [
            (x, dx) for x, dx in zip(leaves, tangents[self._first :], strict=True) if dx is not None
        ]
        xs, dxs = [x for x, _ in moving], [dx for _, dx in moving]
        actual = dict(zip(leaves, inputs[self._first :], strict=True))

        def rows(places: Sequence[int]) -> list[Any]:
            def row(i: TensorVariable) -> list[Any]:
                outs = [self.body.outputs[k] for k in places]
                pushed = Rop(outs, xs, dxs, disconnected_outputs="ignore")
                return rebuild(pushed, {index: i, **actual}, strict=False)

            shapes = [inputs[1 + k] for k in places]
            return map_rows(row, inputs[0], shapes, [self.summed[k] for k in places])

        every = range(len(self.summed))
        try:
            return rows(every)
        except NullTypeGradError:
            found: list[Any] = Rop(
                list(self.body.outputs), xs, dxs, "ignore", null_gradients="return"
            )
            defined = [k for k in every if not isinstance(found[k].type, NullType)]
            for k, dz in zip(defined, rows(defined) if defined else [], strict=True):
                found[k] = dz
            return found

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        return [(self.body.inputs, self.body.outputs)]

    def inner_sources(self, node: Apply) -> Sequence[Sequence[Variable | None]]:
        return [[None, *node.inputs[self._first :]]]

    def __str__(self) -> str:
        return f"MapRows{{{len(self.body.outputs)} outputs}}"


def map_rows(
    row: Callable[[TensorVariable], list[Any]],
    n: Any,
    item_shapes: Sequence[Any],
    summed: Sequence[bool],
) -> list[Any]:
    """Build ``[stack or sum of row(i)[k] for i in range(n)]`` for each k.

    Parameters
    ----------
    row : callable
        From the symbolic row number (int64 scalar) to a list of tensors. What does not depend on
        the number is
        computed once, outside.
    n : int or integer scalar variable
    item_shapes : sequence of int64 vector variables
        The shape of ``row(i)[k]``.
    summed : sequence of bool
        If true, add the rows instead of stacking them.
    """
    index = TensorType("int64", ())("i")
    outputs = row(index)
    captured = _frontier(outputs, index)
    body = ClosedGraph([index, *captured], outputs)
    shapes = [as_tensor_variable(s, dtype="int64") for s in item_shapes]
    return MapRows(body, tuple(summed))(as_tensor_variable(n), *shapes, *captured)


def _frontier(outputs: Sequence[Any], index: Variable) -> list[Variable]:
    """Return the variables outside of the ``index``-dependent part of the graph that this part
    reads, without constants.
    """
    varying: set[Variable] = {index}
    nodes = toposort(outputs)
    for node in nodes:
        if any(x in varying for x in node.inputs):
            varying.update(node.outputs)
    found: dict[Variable, None] = {}
    for node in nodes:
        if any(x in varying for x in node.inputs):
            found.update((x, None) for x in node.inputs if x not in varying)
    found.update((x, None) for x in outputs if x not in varying)
    return [x for x in found if not isinstance(x, Constant)]
