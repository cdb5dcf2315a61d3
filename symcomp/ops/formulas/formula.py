"""Formula: expressions of a few inputs as a flat list of steps, the body of one loop nest.

Formulas compare by value: ops that hold equal ones merge, and compiled code is found by its
formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.core.dtype import working
from symcomp.core.fields import Axes, DtypeName, check_fields
from symcomp.core.op import Op
from symcomp.core.record import record, replace
from symcomp.errors import ParameterError
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise, ScalarOp
from symcomp.ops.indexing.gather_labels import GatherLabels, ScatterLabels
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY
from symcomp.ops.nnet.entropy import Divergence, NegativeEntropy
from symcomp.ops.nnet.softmax import (
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    RootSoftmax,
    Softmax,
    SubtractWeightedMean,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.ops.nnet.unit_vector import (
    Cosine,
    ProjectionLength,
    SubtractProjection,
    UnitPowerSum,
    UnitVector,
)
from symcomp.ops.nnet.weighted_mean import WeightedDeviation, WeightedMean
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.reductions.stable_reduce import Centered, LogProd, Norm, Variance
from symcomp.ops.shapes.dimshuffle import DimShuffle

# Ops that map each 1-d slice along some axes to a slice, and ops that reduce it to a number.
AXIS_FUNCTIONS = (
    Softmax,
    RootSoftmax,
    LogSoftmax,
    WeightedSoftmax,
    SubtractWeightedMean,
    WeightedDeviation,
    UnitVector,
    SubtractProjection,
    Centered,
    ScatterLabels,
)
LOGARITHMS = (LogSumExp, LogMeanExp, WeightedLogSumExp)
AXIS_REDUCTIONS = (
    *LOGARITHMS, LogProd, Norm, Variance, ProjectionLength, Cosine, UnitPowerSum, WeightedMean,
    NegativeEntropy, Divergence, GatherLabels,
)  # fmt: skip
FUNCTIONS = (Reduce, *AXIS_REDUCTIONS, *AXIS_FUNCTIONS)
# The elements of a vector at positions: a table, and an array of integers in the loop.
GATHER = Subtensor((ARRAY,))
# A table to whose elements at positions the values of the loop are added, one after the other: the
# table, the values, and the positions.
SCATTER = IncSubtensor((ARRAY,), set=False)
AT_POSITIONS = (GATHER, SCATTER)

# Longer expressions are named in the text of a formula.
LONGEST_EXPRESSION = 400

_INFIX = {"add": " + ", "sub": " - ", "mul": " * ", "true_div": " / "}


@record
class Literal:
    """A number in a formula, compared by its bytes: NaN equals itself, and 0 differs from -0."""

    dtype: DtypeName
    data: bytes

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.data) != np.dtype(self.dtype).itemsize:
            raise ParameterError(f"Literal: {len(self.data)} bytes are no number of {self.dtype}")

    @classmethod
    def of(cls, value: Any) -> Literal:
        """Make a literal of an array with one element."""
        array = np.asarray(value)
        return cls(array.dtype.name, array.reshape(()).tobytes())

    @cached_property
    def array(self) -> Any:
        """The number as an array without axes."""
        return np.frombuffer(self.data, self.dtype).reshape(())

    def __str__(self) -> str:
        return str(self.array.item())


@record
class Step:
    """A value: a function of earlier ones.

    Attributes
    ----------
    function : ScalarOp or Op
        A scalar function applied to each element, with the broadcasting of Elemwise; a reduction
        or an op of ``AXIS_REDUCTIONS``, whose axes stay in the value, at length 1; an op of
        ``AXIS_FUNCTIONS``; or ``GATHER`` or ``SCATTER``, which take two inputs that no other step
        reads: a table, which is a vector of any length, and positions. The value of a scatter is a
        result that no other step reads.
    arguments : tuple of int
        Numbers of values.
    dtype : str
        The dtype of the value.
    """

    function: ScalarOp | Op
    arguments: tuple[int, ...]
    dtype: DtypeName

    def __post_init__(self) -> None:
        check_fields(self)
        function = self.function
        of_lines = isinstance(function, FUNCTIONS)
        if isinstance(function, Op) and not of_lines and function not in AT_POSITIONS:
            raise ParameterError(f"Step: {self.function} is no function of elements or lines")


@record
class Result:
    """An output: the number of a value, and the axes (of length 1) to drop."""

    value: int
    dropped: Axes = ()

    def __post_init__(self) -> None:
        check_fields(self)


@record
class Formula:
    """Values by number: first the inputs, then the literals, then one for each step.

    Attributes
    ----------
    inputs : tuple of str
        The dtypes of the inputs.
    literals : tuple of Literal
    steps : tuple of Step
        In topological order.
    results : tuple of Result
        Distinct values of steps.

    Raises
    ------
    ValueError
        If a step reads a later value, or only literals, if a result is not the value of a step, if
        a table or its positions are more than that, if the first input is a table, or if a value
        that is scattered is no result, or is read.
    """

    inputs: tuple[DtypeName, ...]
    literals: tuple[Literal, ...]
    steps: tuple[Step, ...]
    results: tuple[Result, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        for number, step in enumerate(self.steps, self.first_step):
            if not step.arguments or any(not 0 <= a < number for a in step.arguments):
                raise ValueError(
                    f"step {number} ({step.function}) takes the values {step.arguments}: they must "
                    "come before it"
                )
            if all(len(self.inputs) <= a < self.first_step for a in step.arguments):
                raise ValueError(f"step {number} ({step.function}) takes literals alone")
        values = [result.value for result in self.results]
        stop = self.first_step + len(self.steps)
        if not values or len({*values}) < len(values):
            raise ValueError(f"the results {values} are not several different values")
        if any(not self.first_step <= v < stop for v in values):
            raise ValueError(f"the results {values} are not all values of steps")
        if self.tables:
            self._check_tables()

    def _check_tables(self) -> None:
        taken = [a for step in self.steps for a in _table_of(step)]
        others = {
            a
            for step in self.steps
            for a in (step.arguments[1:-1] if _table_of(step) else step.arguments)
        }
        inputs = {*range(len(self.inputs))}
        if len({*taken}) < len(taken) or not {*taken} <= inputs - others or 0 in self.tables:
            raise ValueError(
                f"tables and positions {taken}: each must be an input that is read once, and input "
                "0 in the loop"
            )
        results = {result.value for result in self.results}
        if {*self.scatters} & {*self.last_use} or not {*self.scatters} <= results:
            raise ValueError(f"the scattered values {[*self.scatters]} must be results, no more")

    @cached_property
    def tables(self) -> dict[int, int]:
        """The inputs that are tables, vectors that are read or added to at positions; each with the
        input that holds these.
        """
        pairs = (_table_of(step) for step in self.steps)
        return {pair[0]: pair[1] for pair in pairs if pair}

    @cached_property
    def scatters(self) -> dict[int, int]:
        """The values that are tables to which something is added, each with that table."""
        steps = enumerate(self.steps, self.first_step)
        return {number: s.arguments[0] for number, s in steps if s.function == SCATTER}

    def stored(self, result: Result) -> int:
        """Return the value that a loop stores for a result, or adds to a table."""
        step = self.steps[result.value - self.first_step]
        return step.arguments[1] if result.value in self.scatters else result.value

    @cached_property
    def first_step(self) -> int:
        """The number of the first step."""
        return len(self.inputs) + len(self.literals)

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of all values."""
        return (
            *self.inputs,
            *(literal.dtype for literal in self.literals),
            *(step.dtype for step in self.steps),
        )

    @cached_property
    def last_use(self) -> dict[int, int]:
        """For each value that a step reads, the number of the last such step."""
        uses = enumerate(self.steps, self.first_step)
        return {value: number for number, step in uses for value in step.arguments}

    def patterns(self, inputs: Sequence[tuple[bool, ...]]) -> list[tuple[bool, ...]]:
        """Return, for each value, which of its axes have length 1, given those of the inputs.

        Tables lie along no axis of the loop.
        """
        rank = len(inputs[0]) if inputs else 0
        one = (True,) * rank
        found = [one if i in self.tables else p for i, p in enumerate(inputs)]
        found += [one] * len(self.literals)
        for step in self.steps:
            pattern = joint_pattern(found[a] for a in step.arguments)
            axes = folded_axes(step.function)
            scatters = step.function == SCATTER
            found.append(tuple(one or scatters or a in axes for a, one in enumerate(pattern)))
        return found

    def unfold(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the values as expressions of ``inputs``, a node for each step."""
        rank = inputs[0].ndim if inputs else 0
        values = list(inputs)
        for literal in self.literals:
            values.append(constant(literal.array.reshape((1,) * rank)))
        for step in self.steps:
            values.append(unfold_step(step, [values[a] for a in step.arguments]))
        return values

    def lines(self) -> list[str]:
        """Return the text of each step, and of the results."""
        names = self._names()
        lines = []
        for number, step in enumerate(self.steps, self.first_step):
            names.append(f"t{number - self.first_step}")
            lines.append(f"{names[-1]}: {step.dtype} = {_applied(step, names)}")
        lines.append("-> " + ", ".join(names[result.value] for result in self.results))
        return lines

    def __str__(self) -> str:
        """Return the formula in one line; a value used more than once gets a name."""
        counts = dict.fromkeys(range(len(self.dtypes)), 0)
        for step in self.steps:
            for a in step.arguments:
                counts[a] += 1
        shown = {result.value for result in self.results}
        texts = self._names()
        lines = []
        for number, step in enumerate(self.steps, self.first_step):
            text = _applied(step, texts)
            if (
                counts[number] > 1
                or (counts[number] and number in shown)
                or len(text) > LONGEST_EXPRESSION
            ):
                lines.append(f"t{number - self.first_step} = {text}")
                text = f"t{number - self.first_step}"
            texts.append(text)
        lines.append(", ".join(_bare(texts[result.value]) for result in self.results))
        return "; ".join(lines)

    def _names(self) -> list[str]:
        return [*(f"x{i}" for i in range(len(self.inputs))), *map(str, self.literals)]


def _table_of(step: Step) -> tuple[int, ...]:
    """Return the table that a step reads, or adds to, and its positions; () if there is none."""
    return (step.arguments[0], step.arguments[-1]) if step.function in AT_POSITIONS else ()


def folded_axes(function: Any) -> tuple[int, ...]:
    """Return the axes that the function reduces."""
    return function.axes if isinstance(function, (Reduce, *AXIS_REDUCTIONS)) else ()


def line_axes(function: Any) -> tuple[int, ...]:
    """Return the axes along which the function must see all elements at once."""
    if isinstance(function, AXIS_FUNCTIONS):
        return function.axes if isinstance(function, ScatterLabels | Centered) else function.lines
    return folded_axes(function)


def whole_arguments(step: Step) -> tuple[int, ...]:
    """Return the arguments that an along-axis function reads as whole slices."""
    by_index = isinstance(step.function, GatherLabels | ScatterLabels)
    return step.arguments[:1] if by_index else step.arguments


def along(function: Any, axes: tuple[int, ...]) -> Any:
    """Return the same op along other axes."""
    if isinstance(function, Softmax | RootSoftmax | LogSoftmax):
        return replace(function, axis=axes[0])
    return replace(function, axes=axes)


def joint_pattern(patterns: Iterable[tuple[bool, ...]]) -> tuple[bool, ...]:
    """Return which axes have length 1 in the broadcast of arrays with such axes."""
    return tuple(all(axis) for axis in zip(*patterns, strict=True))


def unfold_step(step: Step, arguments: Sequence[Any]) -> Any:
    """Return the node of one step, its result with all axes."""
    if isinstance(step.function, ScalarOp):
        return Elemwise(step.function)(*arguments)
    z = step.function(*arguments)
    axes = folded_axes(step.function)
    return restoring(axes, arguments[0].ndim)(z) if axes else z


def restoring(axes: tuple[int, ...], rank: int) -> DimShuffle:
    """Return the op that inserts ``axes`` of length 1, to give this rank."""
    rest = iter(range(rank))
    order = tuple("x" if a in axes else next(rest) for a in range(rank))
    return DimShuffle(rank - len(axes), order)


def without_axes(z: Any, axes: tuple[int, ...]) -> Any:
    """Return ``z`` without ``axes``, which have length 1."""
    return DimShuffle(z.ndim, tuple(a for a in range(z.ndim) if a not in axes))(z) if axes else z


def sum_of_products(axes: tuple[int, ...], dtype: str) -> Formula:
    """Return the formula of ``SumOfProducts``; float16 is computed in float32."""
    work = working(dtype)
    steps = [
        Step(ROWS["mul"](), (0, 1), work),
        Step(Reduce(REDUCTIONS["sum"], axes, work, work), (2,), work),
    ]
    if work != dtype:
        cast = ROWS["cast"]
        steps = [
            Step(cast(work), (0,), work), Step(cast(work), (1,), work),
            Step(steps[0].function, (2, 3), work), Step(steps[1].function, (4,), work),
            Step(cast(dtype), (5,), dtype),
        ]  # fmt: skip
    return Formula((dtype, dtype), (), tuple(steps), (Result(1 + len(steps), axes),))


def _applied(step: Step, texts: Sequence[str]) -> str:
    arguments = [texts[a] for a in step.arguments]
    name = getattr(step.function, "name", None)
    if step.function == GATHER:
        return f"{arguments[0]}[{arguments[1]}]"
    if step.function == SCATTER:
        return f"({arguments[0]}[{arguments[2]}] += {_bare(arguments[1])})"
    if name in _INFIX and len(arguments) > 1:
        return f"({_INFIX[name].join(arguments)})"
    if name == "neg":
        return f"-{arguments[0]}"
    return f"{function_name(step.function)}({', '.join(map(_bare, arguments))})"


def function_name(function: Any) -> str:
    """Return the name of a scalar function, with its parameters, or of a reduction."""
    parameters = getattr(function, "parameters", ())
    return f"{function}{{{', '.join(map(str, parameters))}}}" if parameters else str(function)


def _bare(text: str) -> str:
    """Return a text without the parentheses around it."""
    depth = 0
    if not text.startswith("("):
        return text
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text
