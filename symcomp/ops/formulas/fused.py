"""Fused: many scalar functions and reductions of the same elements in one op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

from symcomp.core.node import Apply, Constant
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.source import Source, made_for
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import constant
from symcomp.ops.formulas.chain import pull_through, push_through
from symcomp.ops.formulas.evaluation import Evaluator
from symcomp.ops.formulas.formula import (
    AT_POSITIONS,
    SCATTER,
    Formula,
    folded_axes,
    function_name,
    unfold_step,
    without_axes,
)

# Cached, as binding a node asks several times; an evaluator has no state.
_evaluator = lru_cache(64)(Evaluator)

# A formula with more steps, or a longer text, is not shown in the name of an op.
MOST_SHOWN, LONGEST_TEXT = 20, 100


@record
class Fused(Op):
    """z_k[i] = f_k(x_0[i], x_1[i], ...) with axes of static length 1 stretched, where f_k may take
    reductions over axes of i, along-axis functions, and elements of tables at positions; or tables
    to which such values are added at positions. Tables are vectors; all other inputs have one rank.

    ``sources`` are the user's lines that made the steps; they play no part in comparison.
    """

    formula: Formula
    sources: tuple[Source | None, ...] = field(default=(), compare=False, repr=False)

    moves = True  # among what computes in wider dtypes
    multiple_outputs: ClassVar[bool] = True

    def output_types(self, *inputs: TensorVariable) -> list[TensorType]:
        dtypes = tuple(x.dtype for x in inputs)
        if dtypes != self.formula.inputs:
            raise DTypeError(f"{self}: inputs of {self.formula.inputs} expected, got {dtypes}")
        tables = self.formula.tables
        ranks = {x.ndim for i, x in enumerate(inputs) if i not in tables}
        if len(ranks) != 1 or any(inputs[i].ndim != 1 for i in tables):
            raise ShapeError(
                f"{self}: inputs of one rank expected, got "
                f"{', '.join(str(x.type) for x in inputs)}: put in axes by dimshuffle"
            )
        values = self.formula.unfold(inputs)
        self._check_steps(values)
        self._check_dropped(inputs)
        return [without_axes(values[r.value], r.dropped).type for r in self.formula.results]

    def _check_steps(self, values: Sequence[Any]) -> None:
        """Raise if a step's arguments or result have other dtypes than the formula says."""
        for step, z in zip(self.formula.steps, values[self.formula.first_step :], strict=True):
            arguments = [values[a] for a in step.arguments]
            node = z.owner.inputs[0].owner if folded_axes(step.function) else z.owner
            if z.dtype != step.dtype or node.inputs != arguments:
                types = ", ".join(x.dtype for x in arguments)
                raise DTypeError(f"{self}: {step.function} of {types} does not give {step.dtype}")

    def _check_dropped(self, inputs: Sequence[TensorVariable]) -> None:
        """Raise if a result drops an axis whose length is not known to be 1."""
        patterns = self.formula.patterns([x.type.broadcastable for x in inputs])
        for r in self.formula.results:
            pattern = patterns[r.value]
            if any(a >= len(pattern) or not pattern[a] for a in r.dropped):
                raise ShapeError(f"{self}: the axes {r.dropped} of a result have not length 1")

    def unfold(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs as expressions of ``inputs``, by a node for each step."""
        values = self.formula.unfold(inputs)
        return [without_axes(values[r.value], r.dropped) for r in self.formula.results]

    def perform(self, *values: Any) -> Any:
        patterns = [tuple(n == 1 for n in v.shape) for v in values]
        evaluator = Evaluator(self.formula, patterns)
        shape = evaluator.shape(values)
        if shape is None:
            types = zip(values, patterns, strict=True)
            self._refuse(values, [TensorType(v.dtype, broadcastable=p) for v, p in types])
        return evaluator(values, shape)

    def bind(self, node: Apply) -> Any:
        """Return ``perform``, checking that no axis is stretched whose static length is not 1.

        The function also takes an array for each output, or None, to write it into.
        """
        evaluator = self.evaluator(node)
        count = len(node.inputs)

        def compute(*values_and_targets: Any) -> Any:
            values, targets = values_and_targets[:count], values_and_targets[count:]
            shape = evaluator.shape(values)
            if shape is None:
                self._refuse(values, node.inputs)
            try:
                return evaluator(values, shape, targets)
            except IndexError:
                self._refuse(values, node.inputs)

        return compute

    def evaluator(self, node: Apply) -> Evaluator:
        """Return what computes the node with NumPy."""
        return _evaluator(self.formula, tuple(x.type.broadcastable for x in node.inputs))

    def _refuse(self, values: Sequence[Any], arguments: Sequence[Any]) -> NoReturn:
        """Raise the error of the first step that does not fit, with the user's line."""
        inputs = [x.type(name=str(x)) for x in arguments]
        store: dict[Any, Any] = dict(zip(inputs, values, strict=True))
        for node in toposort(self._unfolded_with_sources(inputs)):
            given = [x.data if isinstance(x, Constant) else store[x] for x in node.inputs]
            try:
                store[node.outputs[0]] = node.op.bind(node)(*given)
            except (ValueError, IndexError) as problem:
                shapes = ", ".join(str(v.shape) for v in given)
                made = f", made at {node.source.quoted()}" if node.source is not None else ""
                problem.add_note(f"In {self}, it is the step {node} on shapes {shapes}{made}")
                raise
        shapes = ", ".join(str(v.shape) for v in values)
        raise ShapeError(f"{self}: inputs of shapes {shapes} do not belong to one loop")

    def _unfolded_with_sources(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the values as expressions of ``inputs`` that know the users' lines."""
        formula = self.formula
        values = [*inputs]
        for literal in formula.literals:
            values.append(constant(literal.array.reshape((1,) * inputs[0].ndim)))
        sources = self.sources or (None,) * len(formula.steps)
        for step, source in zip(formula.steps, sources, strict=True):
            with made_for(source):
                values.append(unfold_step(step, [values[a] for a in step.arguments]))
        return values

    def unfold_with_lines(self, node: Apply) -> list[Any]:
        """Return the outputs of a node as expressions of its inputs that know the users' lines."""
        return self._outputs(node.inputs, node.source)

    def _outputs(self, inputs: Sequence[Any], source: Source | None) -> list[Any]:
        values = self._unfolded_with_sources(inputs)
        with made_for(source):
            return [without_axes(values[r.value], r.dropped) for r in self.formula.results]

    def inner_graphs_of(self, node: Apply) -> Sequence[tuple[list[Any], list[Any]]]:
        """Return the steps as one graph, a node for each, with the user's lines."""
        inputs = [x.type(f"x{i}") for i, x in enumerate(node.inputs)]
        return [(inputs, self._outputs(inputs, node.source))]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        formula = self.formula
        rank = node.inputs[0].ndim
        patterns = formula.patterns([x.type.broadcastable for x in node.inputs])
        known = [*shapes, *((1,) * rank for _ in formula.literals)]
        for step in formula.steps:
            if step.function == SCATTER:
                known.append(known[step.arguments[0]])
                continue
            shape = []
            for axis in range(rank):
                longer = (known[a][axis] for a in step.arguments if not patterns[a][axis])
                folded = axis in folded_axes(step.function)
                shape.append(1 if folded else next(longer, 1))
            known.append(tuple(shape))
        return [
            tuple(n for a, n in enumerate(known[r.value]) if a not in r.dropped)
            for r in formula.results
        ]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        formula = self.formula
        reached: list[set[int]] = [{v} for v in range(formula.first_step)]
        for step in formula.steps:
            read = step.arguments[:-1] if step.function in AT_POSITIONS else step.arguments
            reached.append(set().union(*(reached[a] for a in read)))
        return [[i in reached[r.value] for r in formula.results] for i in range(len(node.inputs))]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return pull_through(inputs, self.unfold(inputs), output_grads)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return push_through(inputs, self.unfold(inputs), tangents)

    def __str__(self) -> str:
        steps = self.formula.steps
        text = str(self.formula) if len(steps) <= MOST_SHOWN else ""
        if not text or len(text) > LONGEST_TEXT:
            names = Counter(function_name(step.function) for step in steps)
            text = ", ".join(f"{n} {name}" for name, n in names.most_common(4))
            text = f"{len(steps)} steps: {text}{', ...' if len(names) > 4 else ''}"
        return f"Fused{{{text}}}"
