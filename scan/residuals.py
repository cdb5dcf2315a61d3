"""The values of a loop that its gradient reads: rows that exist anyway, and rows stored for it.

The gradient of a step needs values of that step. Rows of states, sequences and outputs exist
already. Elementwise functions of these are computed again; anything more expensive, as a matrix
product, becomes an additional stacked output of the forward loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Constant, Variable
from symcomp.core.record import replace
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import rebuild, toposort
from symcomp.errors import GradientError
from symcomp.ops.control.regions import ALWAYS, place
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.reshaping import specify_shape
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.rewrite.rule import elementwise
from symcomp.rewrite.shapes import Shapes
from symcomp.scan.layout import Arguments, Layout, Results, flat_arguments, flat_results
from symcomp.scan.lengths import first_rows, shaped

CHEAP = (Elemwise, DimShuffle, Shape, ShapeI)

Forward = tuple[Arguments, Sequence[Any], Any]


def known_values(
    op: Any, outputs: Sequence[Any], varying: Collection[Variable], forward: Forward
) -> tuple[list[Any], dict[Any, Any], dict[Any, Any]]:
    """Cut ``outputs`` off the body of ``op``.

    Parameters
    ----------
    op : Scan
    outputs : sequence of Variable
        Functions of the body's variables and of ``varying``.
    varying : collection of Variable
        The variables of the new loop.
    forward : (Arguments, outputs, steps done)
        One application of ``op``.

    Returns
    -------
    outputs : list of Variable
        In terms of ``varying``, ``rows`` and ``captured``.
    rows : dict of Variable to Variable
        A variable for a row -> where its rows are, in the order of the steps.
    captured : dict of Variable to Variable
        A variable for a value that is the same in all steps -> that value.
    """
    return _Cut(op, outputs, varying, forward).result()


class _Cut:
    def __init__(
        self, op: Any, outputs: Sequence[Any], varying: Collection[Variable], forward: Forward
    ) -> None:
        self._op, self._outputs, self._varying = op, outputs, set(varying)
        self._arguments, self._forward, self._done = forward
        step = op.layout.step(op.body.inputs)
        self._captured = dict(zip(step.captured, self._arguments.captured, strict=True))
        self._rows_of = self._available()
        order = toposort(op.body.outputs)
        regions = place(order, op.body.outputs)
        self._keepable = {y for n in order if regions[n] == ALWAYS for y in n.outputs}
        self._hidden = _depending(
            order, {x for x in step.carried if not isinstance(x, TensorVariable)}
        )
        self._facts = Shapes()
        self._lasting: dict[Variable, bool] = {}
        self._fixed: dict[Variable, bool] = {}
        self._cheap: dict[Variable, bool] = {}
        self._used: dict[Variable, None] = {}
        self._invariant: dict[Variable, None] = {}
        self._kept: dict[Variable, None] = {}

    def _available(self) -> dict[Variable, Any]:
        """Return the rows that exist anyway: where they are, for each variable of the body."""
        layout: Layout = self._op.layout
        step = layout.step(self._op.body.inputs)
        new, results = layout.results(self._op.body.outputs), layout.results(self._forward)
        found: dict[Variable, Any] = {}
        if not self._op.recompute:
            found.update((y, (rows, Slice())) for y, rows in zip(new.stacked, results.stacked,
                                                                strict=True))  # fmt: skip
        for y, rows, depth in zip(new.traced, results.traced, layout.depths, strict=True):
            found[y] = (rows, Slice(depth))
        for lagged, lags, rows, depth in zip(
            step.lagged, layout.lags, results.traced, layout.depths, strict=True
        ):
            for x, lag in zip(lagged, lags, strict=True):
                found[x] = (rows, Slice(depth - lag or None, -lag))
        for x, rows in zip(step.rows, self._arguments.sequences, strict=True):
            found[x] = (first_rows(rows, self._done), Slice())
        return {x: part for x, part in found.items() if not isinstance(x, Constant)}

    def result(self) -> tuple[list[Any], dict[Any, Any], dict[Any, Any]]:
        self._outputs = self._without_templates()
        self._cut(self._frontier())
        replaced: dict[Variable, Any] = {}
        rows: dict[Any, Any] = {}
        for f in self._used:
            sequence, part = self._rows_of[f]
            sequence = sequence if part == Slice() else Subtensor((part,))(sequence)
            self._placeholder(f, sequence, replaced, rows)
        for f, sequence in zip(self._kept, self._stored(), strict=True):
            self._placeholder(f, sequence, replaced, rows)
        captured: dict[Any, Any] = {}
        outside = rebuild([*self._invariant], self._captured, strict=False)
        for f, value in zip(self._invariant, outside, strict=True):
            replaced[f] = value.type(f.name)
            captured[replaced[f]] = value
        return rebuild(self._outputs, replaced), rows, captured

    @staticmethod
    def _placeholder(f: Any, sequence: Any, replaced: Any, rows: Any) -> None:
        kind = f.type
        if not kind.is_super(TensorType(sequence.dtype, sequence.type.shape[1:])):
            sequence = specify_shape(sequence, (None, *kind.shape))
        replaced[f] = TensorType(sequence.dtype, sequence.type.shape[1:])(f.name)
        rows[replaced[f]] = sequence

    def _without_templates(self) -> list[Any]:
        """Return the outputs, with values of which only the shape is used replaced by their
        lengths.
        """
        memo: dict[Variable, Any] = {}
        varying = _depending(toposort(self._outputs), self._varying)
        for node in toposort(self._outputs):
            inputs = [memo.get(v, v) for v in node.inputs]
            y, model = node.outputs[0], node.inputs[0] if node.inputs else None
            if model is None or model in varying or model.owner is None or self._is_there(model):
                pass
            elif isinstance(node.op, ShapeI):
                memo[y] = as_tensor_variable(self._facts.of(model)[node.op.axis], dtype="int64")
                continue
            elif elementwise(y, "second") is not None and inputs[1] is not inputs[0]:
                lengths = [as_tensor_variable(n, dtype="int64") for n in self._facts.of(y)]
                memo[y] = shaped(Alloc()(inputs[1], *lengths), y.type.shape)
                continue
            if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
                twin = node.clone_with_new_inputs(inputs, strict=False)
                memo.update(zip(node.outputs, twin.outputs, strict=True))
        return [memo.get(v, v) for v in self._outputs]

    def _frontier(self) -> list[Variable]:
        """Return the variables of the body that the new loop uses."""
        varying = _depending(toposort(self._outputs), self._varying)
        used: dict[Variable, None] = {}
        for node in toposort(self._outputs):
            if any(y in varying for y in node.outputs):
                used.update((x, None) for x in node.inputs)
        used.update((y, None) for y in self._outputs)
        return [x for x in used if x not in varying and not isinstance(x, Constant)]

    def _cut(self, frontier: Sequence[Variable]) -> None:
        """Choose where to cut ``frontier`` off."""
        pending = [*reversed(frontier)]
        seen: set[Variable] = set()
        while pending:
            x = pending.pop()
            if x in seen or isinstance(x, Constant):
                continue
            seen.add(x)
            if self._is_fixed(x):
                self._invariant[x] = None
            elif x in self._rows_of:
                self._used[x] = None
            elif self._keeps(x):
                self._kept[x] = None
            elif x.owner is None:
                raise GradientError(
                    f"{self._op}: the gradient needs {x} of type {x.type} in every step, which "
                    "no array can keep"
                )
            else:
                pending.extend(x.owner.inputs)

    def _keeps(self, x: Variable) -> bool:
        if not isinstance(x, TensorVariable):
            return False
        if x.owner is None or x in self._hidden:
            return True
        if x not in self._keepable or self._op.recompute or self._is_cheap(x):
            return False
        return all(isinstance(n, int) or self._is_lasting(n) for n in self._facts.of(x))

    def _is_lasting(self, length: Variable) -> bool:
        """Tell whether ``length`` is known to be the same in all steps."""
        for node in toposort([length], self._lasting):
            for v in (*node.inputs, length):
                if v.owner is None:
                    self._lasting[v] = v in self._captured or isinstance(v, Constant)
            of_input = isinstance(node.op, ShapeI) and node.inputs[0].owner is None
            on = of_input or all(self._lasting[v] for v in node.inputs)
            self._lasting.update((y, on) for y in node.outputs)
        return self._lasting.setdefault(length, length in self._captured)

    def _is_fixed(self, x: Variable) -> bool:
        """Tell whether ``x`` is the same in all steps."""
        for node in toposort([x], self._fixed):
            for v in (*node.inputs, x):
                if v.owner is None:
                    self._fixed[v] = v in self._captured or isinstance(v, Constant)
            on = all(self._fixed[v] for v in node.inputs)
            self._fixed.update((y, on) for y in node.outputs)
        return self._fixed.setdefault(x, x in self._captured or isinstance(x, Constant))

    def _is_cheap(self, x: Variable) -> bool:
        """Tell whether ``x`` is an elementwise function of values that exist anyway."""
        for node in toposort([x], self._cheap):
            for v in node.inputs:
                if v.owner is None:
                    self._cheap[v] = self._is_there(v)
            on = isinstance(node.op, CHEAP) and all(self._cheap[v] for v in node.inputs)
            for y in node.outputs:
                self._cheap[y] = on or self._is_there(y)
        return self._cheap[x]

    def _is_there(self, v: Variable) -> bool:
        return isinstance(v, Constant) or v in self._rows_of or self._is_fixed(v)

    def _stored(self) -> list[Any]:
        """Return the rows stored for the gradient, from a loop that also stacks them."""
        if not self._kept:
            return []
        op, kept = self._op, [*self._kept]
        new = op.layout.results(op.body.outputs)
        wide = Results(new.traced, new.carried, new.stacked + kept, new.last)
        loop = replace(
            op,
            body=ClosedGraph(op.body.inputs, flat_results(wide)),
            layout=replace(op.layout, n_stacked=op.layout.n_stacked + len(kept)),
        )
        results = loop.layout.results(loop(*flat_arguments(self._arguments)))
        return results.stacked[len(new.stacked) :]


def _depending(order: Sequence[Any], variables: set[Variable]) -> set[Variable]:
    """Return ``variables`` and all variables that depend on them."""
    found = set(variables)
    for node in order:
        if any(x in found for x in node.inputs):
            found.update(node.outputs)
    return found
