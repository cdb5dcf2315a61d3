"""Checkpoints by a budget: the largest number of steps in a chunk, given a limit of bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from math import isqrt
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Natural
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.shapes.shape import Shape, ShapeI, shape_tuple
from symcomp.rewrite.shapes import Shapes
from symcomp.scan.layout import Arguments
from symcomp.scan.lengths import lengths_outside

UNITS = {"b": 1} | {
    f"{prefix}{infix}b": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
}


@record
class Budget:
    """The bytes that the gradient of a loop may keep."""

    n_bytes: int


def read_budget(text: str) -> Budget | None:
    """Parse a text such as "64 MB" or "1.5GiB"; None if it is none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?b)\s*", text, re.IGNORECASE)
    if found is None or found[2].lower() not in UNITS:
        return None
    n_bytes = int(float(found[1]) * UNITS[found[2].lower()])
    return Budget(n_bytes) if n_bytes else None


@record
class ChunkLength(Op):
    """The most steps N of a chunk with which n steps keep no more than ``budget`` bytes.

    n, bytes S of a state, bytes R that a step makes -> N, 1 <= N <= max(n, 1); int64 scalars.

    A state is kept for each of the (n - 1) // N chunks before the last, and all values of N steps
    at a time: (n - 1) // N S + N R <= budget, of which n / N S + N R <= budget is enough: the
    larger root of R N^2 - budget N + n S = 0.
    """

    budget: Natural
    name: str = field(default="scan", compare=False)

    no_derivative = "a number of steps does not depend on values"

    def output_types(self, *numbers: TensorVariable) -> list[TensorType]:
        if len(numbers) != 3 or any(n.ndim or not dtypes.is_discrete(n.dtype) for n in numbers):
            shown = ", ".join(str(n.type) for n in numbers)
            raise DTypeError(f"{self}: three integer scalars are needed, got ({shown})")
        return [TensorType("int64", ())]

    def perform(self, steps: Any, state: Any, step: Any) -> Any:
        n, kept, made, budget = max(int(steps), 0), int(state), max(int(step), 1), self.budget
        if n * made <= budget:
            return np.asarray(max(n, 1), np.int64)
        square = budget**2 - 4 * n * kept * made
        length = (budget + isqrt(square)) // (2 * made) if square >= 0 else 0
        if length < 1:
            least = 2 * isqrt(n * kept * made) + made
            raise ValueError(
                f"{self.name}: checkpoint is {budget} bytes; {n} steps with {kept} bytes of state, "
                f"which make {made} bytes each, need {least}: pass as many, or 'auto'"
            )
        return np.asarray(min(length, n), np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]] * 3


def steps_within(budget: Budget, op: Any, arguments: Arguments) -> TensorVariable:
    """Return the number of steps in a chunk of a loop, as an int64 scalar.

    The bytes of a step are overestimated as all values that its ops compute, as many gradients, and
    as many values in between, so that the budget holds whatever the rewrites save.
    """
    step = op.layout.step(op.body.inputs)
    state = [(depth, rows[0]) for depth, rows in zip(op.layout.depths, step.lagged, strict=True)]
    state += [(1, x) for x in step.carried if isinstance(x, TensorVariable)]
    made = [
        (1 if dtypes.is_discrete(y.dtype) else 3, y)
        for node in toposort(op.body.outputs)
        if not node.op.view_map and not isinstance(node.op, Shape | ShapeI)
        for y in node.outputs
        if isinstance(y, TensorVariable)
    ]
    total = [_total_bytes(items, op, arguments) for items in (state, made)]
    length: TensorVariable = ChunkLength(budget.n_bytes, op.name)(arguments.n, *total)
    return length


def _total_bytes(
    items: Sequence[tuple[int, TensorVariable]], op: Any, arguments: Arguments
) -> TensorVariable:
    """Return the bytes of each variable of the body times its count, as an expression outside."""
    facts = Shapes()
    inner = [list(facts.of(x)) for _, x in items]
    shapes = Arguments(
        (),
        *(
            [shape_tuple(x) if isinstance(x, TensorVariable) else None for x in kind]
            for kind in arguments[1:]
        ),
    )
    total: Any = 0
    for (count, x), lengths in zip(
        items, lengths_outside(op, arguments, shapes, inner), strict=True
    ):
        size: Any = count * np.dtype(x.dtype).itemsize
        for n in lengths:
            if n is None:
                raise ShapeError(
                    f"{op.name}: the bytes of {x} ({x.type}) in a step are not known before the "
                    "loop runs: pass checkpoint='auto', or a number of steps"
                )
            size = size * n
        total = total + size
    return as_tensor_variable(total, dtype="int64")
