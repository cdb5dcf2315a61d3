"""Scan: the op of loops. Its body is a graph; one application is the whole loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.closed import ClosedGraph
from symcomp.core.fields import Between
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.cvm.executable import compile_graph
from symcomp.errors import DTypeError, ParameterError, ShapeError
from symcomp.ops.shapes.shape import ShapeI
from symcomp.scan.forward import pushed
from symcomp.scan.layout import BodyInputs, Layout, flat_body_inputs
from symcomp.scan.lengths import actual_lengths, carried_lengths, row_lengths
from symcomp.scan.reverse import pulled
from symcomp.scan.run import FIRST_ROWS, LoopArrays, StepFunction, by_fast_run, copy_of
from symcomp.scan.undefined import undefined_over_steps
from symcomp.vm.policy import Policy
from symcomp.vm.written_rows import array_type, has_rows, written_rows


@record
class Scan(Op):
    """state[t], stacked[t] = body(state[t - lag] ..., carried, sequence[t] ..., captured), t < n.

    Inputs: the number of steps n; for each traced state its first ``depth`` rows; the carried
    values at the start; the sequences, of at least n rows; the captured values. Outputs: for each
    traced state all rows, (depth + n, ...); the carried values at the end; for each stacked output
    n rows; with ``until``, the number of steps done, which then stands for n.

    Attributes
    ----------
    body : ClosedGraph
        See ``Layout`` for the order of its inputs and outputs.
    layout : Layout
    truncate : int
        The pullback goes through this many last steps; -1: all; 0: none.
    recompute : bool
        The pullback computes again what it needs of each step, from the states alone.
    selects : callable
        Tags of a rewrite -> whether it is applied to the body.
    name : str
        For messages; no part of what the op is.
    """

    body: ClosedGraph
    layout: Layout
    truncate: Annotated[int, Between(-1, 2**63 - 1)] = -1
    recompute: bool = False
    selects: Callable[[frozenset[str]], bool] = by_fast_run
    name: str = field(default="scan", compare=False)

    multiple_outputs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_body(self)

    def output_types(self, *inputs: Variable) -> list[Type]:
        layout = self.layout
        _check_count(self, inputs)
        n, traced, carried, sequences, captured = layout.arguments(inputs)
        step = layout.step(self.body.inputs)
        new = layout.results(self.body.outputs)
        for row, x in zip(step.rows, sequences, strict=True):
            _check_rows(self, row, x)
        rests = zip([*step.carried, *step.captured], [*carried, *captured], strict=True)
        for inner, x in rests:
            if not inner.type.is_super(x.type):
                raise DTypeError(f"{self}: {x} of type {x.type} cannot be {inner} ({inner.type})")
        known = isinstance(n, Constant) and not layout.until
        length = int(n.data) if isinstance(n, Constant) and known else None
        types: list[Type] = []
        for lagged, depth, x, out in zip(
            step.lagged, layout.depths, traced, new.traced, strict=True
        ):
            _check_state(self, lagged, depth, x, out)
            rows = None if length is None else depth + length
            types.append(_stacked(lagged[0].type, rows))
        types += [inner.type for inner in step.carried]
        types += [_stacked(out.type, length) for out in new.stacked]
        return types + [TensorType("int64", ())] * layout.until

    @property
    def inputs(self) -> list[Variable]:
        """The input variables of the body, in the order of ``Layout.step``."""
        return list(self.body.inputs)

    @property
    def outputs(self) -> list[Variable]:
        """The output variables of the body, in the order of ``Layout.results``."""
        return list(self.body.outputs)

    @cached_property
    def fn(self) -> StepFunction:
        """A function that runs one step, given the values of ``inputs``.

        Examples
        --------
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> z, _ = symcomp.scan(lambda x: T.sin(x) + 0, T.dvector("x"))
        >>> z.owner.op.fn(0.0)
        [array(0.)]
        >>> z.owner.op.fn.fgraph.toposort()
        [sin(x[t])]
        """
        return StepFunction(self.body, self.selects)

    def perform(self, n: Any, *rest: Any) -> tuple[Any, ...]:
        return self.run_steps(self._step, n, rest)

    @cached_property
    def _step(self) -> Callable[[Sequence[Any]], list[Any]]:
        """The function that runs a step outside of any compiled function: the body as it is,
        lazily.
        """
        graph = FunctionGraph(self.body.inputs, self.body.outputs)
        borrowed = range(len(graph.outputs))
        return compile_graph(graph, Policy(native=False), borrowed=borrowed).run

    def run_steps(
        self, step: Callable[[Sequence[Any]], list[Any]], n: Any, rest: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the outputs, given the function that runs a step and the values of the inputs."""
        layout = self.layout
        most = int(n)
        _, traced, carried, sequences, captured = layout.arguments([n, *rest])
        self.check_lengths(most, traced, sequences)
        capacity = min(most, FIRST_ROWS) if layout.until else most
        kinds = layout.results(self.body.outputs)
        states = []
        lagged = layout.step(self.body.inputs).lagged
        for inner, x, depth in zip(lagged, traced, layout.depths, strict=True):
            name, kind = f"the state {inner[0]}", inner[0].type
            states.append(written_rows(kind, name, depth + capacity, x))
        stacks = [written_rows(y.type, f"the output {y}", capacity) for y in kinds.stacked]
        steps = LoopArrays(self.layout, states, carried, sequences, captured, stacks)
        done = steps.run(step, most, str(self))
        results = [
            rows.first(depth + done, None)
            for rows, depth in zip(states, layout.depths, strict=True)
        ]
        results += [copy_of(c, x.type) for c, x in zip(carried, kinds.carried, strict=True)]
        shapes = self.lengths_without_steps(rest) if done == 0 else [None] * len(stacks)
        results += [y.first(done, shape) for y, shape in zip(stacks, shapes, strict=True)]
        return (*results, np.asarray(done, np.int64)) if layout.until else tuple(results)

    def check_lengths(self, n: int, traced: Iterable[Any], sequences: Iterable[Any]) -> None:
        """Raise if arrays do not have the lengths that ``n`` steps need."""
        if n < 0:
            raise ValueError(f"{self}: the number of steps is {n}; it must not be negative")
        step = self.layout.step(self.body.inputs)
        for x, depth, lagged in zip(traced, self.layout.depths, step.lagged, strict=True):
            if len(x) != depth:
                raise ShapeError(
                    f"{self}: the state {lagged[0]} starts from {len(x)} rows (shape {x.shape}); "
                    f"its taps need {depth}"
                )
        for x, row in zip(sequences, step.rows, strict=True):
            if len(x) < n:
                raise ShapeError(
                    f"{self}: the sequence read as {row} has length {len(x)} (shape {x.shape}), "
                    f"but {n} steps need {n}: pass a longer one, or fewer n_steps"
                )

    def lengths_without_steps(self, values: Sequence[Any]) -> list[tuple[int, ...]]:
        """Return the shapes that rows of the stacked outputs would have, given all inputs but the
        number of steps.
        """
        return actual_lengths(self, values)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        layout = self.layout
        steps = node.outputs[-1] if layout.until else node.inputs[0]
        starts = layout.arguments(shapes).traced
        result: list[Any] = [
            None if start is None else (steps + depth, *start[1:])
            for depth, start in zip(layout.depths, starts, strict=True)
        ]
        result += carried_lengths(self, node, shapes)
        stacked = layout.results(node.outputs).stacked
        for y, lengths in zip(stacked, row_lengths(self, node, shapes), strict=True):
            entries = enumerate(lengths, start=1)
            result.append((steps, *(ShapeI(a)(y) if n is None else n for a, n in entries)))
        return result + [()] * layout.until

    @cached_property
    def reach(self) -> list[list[bool]]:
        """``[i][j]``: True if output j, in this or a later step, depends on input i of the body.
        """
        layout, direct = self.layout, self.body.connection
        matrix = np.asarray(direct, bool).reshape(len(direct), len(self.body.outputs))
        numbers = layout.step(range(len(direct)))
        n_states = len(layout.lags) + layout.n_carried
        feeds = np.zeros((n_states, matrix.shape[1]), bool)
        for state, places in enumerate([*numbers.lagged, *([i] for i in numbers.carried)]):
            feeds[state] = np.any(matrix[places], axis=0)
        for middle in range(n_states):
            feeds |= np.outer(feeds[:, middle], feeds[middle])
        through = matrix | (matrix[:, :n_states].astype(int) @ feeds.astype(int) > 0)
        return [[bool(on) for on in row] for row in through]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        layout = self.layout
        reach = np.asarray(self.reach, bool).reshape(len(self.body.inputs), len(node.outputs))
        numbers = layout.step(range(len(reach)))
        rows = [[False] * len(node.outputs)]
        for state, places in enumerate([*numbers.lagged, *([i] for i in numbers.carried)]):
            row = [bool(on) for on in np.any(reach[places], axis=0).tolist()]
            row[state] = True
            rows.append(row)
        rows += [[bool(on) for on in reach[i]] for i in (*numbers.rows, *numbers.captured)]
        if layout.until:
            for row in rows:
                row[-1] = False
        return rows

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        reasons = undefined_over_steps(self, forward)
        if not reasons:
            return ()
        numbers = self.layout.step(range(len(reasons)))
        groups = [*numbers.lagged, *([i] for i in (*numbers.carried, *numbers.rows))]
        groups += [[i] for i in numbers.captured]
        none = [""] * len(node.outputs)
        found = [none]
        for places in groups:
            columns = zip(*(reasons[i] for i in places), strict=True)
            found.append([next(filter(None, column), "") for column in columns])
        return [[*row[:-1], ""] for row in found] if self.layout.until else found

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return pulled(self, inputs, outputs, output_grads)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return pushed(self, inputs, outputs, tangents)

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        return [(self.body.inputs, self.body.outputs)]

    def inner_sources(self, node: Apply) -> Sequence[Sequence[Variable | None]]:
        given = self.layout.arguments(node.inputs)
        lagged = [[x] * len(lags) for x, lags in zip(given.traced, self.layout.lags, strict=True)]
        inner = BodyInputs(lagged, given.carried, given.sequences, given.captured)
        return [flat_body_inputs(inner)]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: compiled functions are not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        layout = self.layout
        parts = [
            f"{count} {what}"
            for count, what in (
                (len(layout.lags), "traced"),
                (layout.n_carried, "carried"),
                (layout.n_stacked, "stacked"),
            )
            if count
        ]
        return f"{self.name}{{{', '.join(parts)}{', until' * layout.until}}}"


def _check_body(op: Scan) -> None:
    """Raise if the body's inputs and outputs do not match the layout."""
    layout, body = op.layout, op.body
    least = sum(map(len, layout.lags)) + layout.n_carried + layout.n_sequences
    count = len(layout.lags) + layout.n_carried + layout.n_stacked + layout.until
    if len(body.inputs) < least or len(body.outputs) != count:
        raise ParameterError(
            f"{op}: the body has {len(body.inputs)} inputs and {len(body.outputs)} outputs; the "
            f"layout needs at least {least} and {count}"
        )
    step, new = layout.step(body.inputs), layout.results(body.outputs)
    for x, y in zip(step.carried, new.carried, strict=True):
        if not (x.type.is_super(y.type) or y.type.is_super(x.type)):
            raise ParameterError(f"{op}: {x} ({x.type}) is carried, the step makes it {y.type}")
    for y in (*new.traced, *new.stacked, *(x for rows in step.lagged for x in rows), *step.rows):
        if not has_rows(y.type):
            raise ParameterError(f"{op}: {y} ({y.type}) cannot be a row: arrays are needed")
    for rows in step.lagged:
        if any((x.dtype, x.ndim) != (rows[0].dtype, rows[0].ndim) for x in rows):
            raise ParameterError(f"{op}: the rows of the state {rows[0]} differ in dtype or rank")
    if layout.until and (not isinstance(new.last, TensorVariable) or new.last.ndim):
        raise ParameterError(f"{op}: the condition to stop is {new.last.type}; a scalar is needed")


def _stacked(kind: Any, length: int | None) -> Type:
    """Return the type of arrays of ``length`` rows of this type."""
    return array_type(kind, (length, *kind.shape))


def _check_count(op: Scan, inputs: Sequence[Variable]) -> None:
    n, layout = inputs[0], op.layout
    lagged = sum(len(lags) - 1 for lags in layout.lags)
    if len(inputs) - 1 + lagged != len(op.body.inputs):
        raise ShapeError(
            f"{op}: {len(inputs)} inputs for a body with {len(op.body.inputs)}; "
            f"{len(op.body.inputs) - lagged + 1} are needed"
        )
    if not isinstance(n, TensorVariable) or n.ndim or not dtypes.is_discrete(n.dtype):
        raise DTypeError(f"{op}: the number of steps must be an integer scalar, got {n} ({n.type})")
    if isinstance(n, Constant) and int(n.data) < 0:
        raise ShapeError(f"{op}: the number of steps is {n.data}; it must not be negative")


def _check_rows(op: Scan, row: Any, x: Any) -> None:
    if not has_rows(x.type) or x.ndim == 0:
        raise ShapeError(f"{op}: the sequence read as {row} is a {x.type}, which has no rows")
    if not row.type.is_super(array_type(x.type, x.type.shape[1:])):
        raise DTypeError(f"{op}: rows of {x} ({x.type}) cannot be {row} ({row.type})")


def _check_state(op: Scan, lagged: list[Any], depth: int, x: Any, out: Any) -> None:
    name, kind = lagged[0], lagged[0].type
    _check_rows(op, name, x)
    if x.type.shape[0] not in (None, depth):
        raise ShapeError(f"{op}: the state {name} starts from {x.type}; {depth} rows are needed")
    lengths = zip(out.type.shape, kind.shape, strict=out.ndim == kind.ndim)
    clash = any(m is not None and n is not None and m != n for m, n in lengths)
    is_other = isinstance(kind, TensorType) != isinstance(out.type, TensorType)
    if is_other or out.dtype != kind.dtype or out.ndim != kind.ndim or clash:
        raise DTypeError(f"{op}: the state {name} is {kind}, the step makes it {out.type}")
