"""Layout: the order of the inputs and outputs of a scan, and of its body.

Four kinds of arguments, in this order. *Traced* states keep all their rows: the body reads rows
some steps back (the lags) and writes one. *Carried* values are kept for the last step only. Step t
reads row t of a *sequence*. *Captured* values are the same in all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from symcomp.core.fields import Between, check_fields
from symcomp.core.record import record
from symcomp.errors import ParameterError

#: How many steps back a row is read; also the number of arguments of a kind.
Lag = Annotated[int, Between(1, 2**31 - 1)]
Count = Annotated[int, Between(0, 2**31 - 1)]


class Arguments(NamedTuple):
    """The inputs of a scan; ``n`` is the number of steps, or the most that there can be."""

    n: Any
    traced: list[Any]
    carried: list[Any]
    sequences: list[Any]
    captured: list[Any]


class BodyInputs(NamedTuple):
    """The inputs of the body; ``lagged[i]`` has one entry for each lag of the traced state i."""

    lagged: list[list[Any]]
    carried: list[Any]
    rows: list[Any]
    captured: list[Any]


class Results(NamedTuple):
    """The outputs of a scan or of its body. ``last`` is the number of steps done, or the condition
    to stop; None without.
    """

    traced: list[Any]
    carried: list[Any]
    stacked: list[Any]
    last: Any


@record
class Layout:
    """The number of arguments of each kind.

    Attributes
    ----------
    lags : tuple of tuple of int
        For each traced state, how many steps back its rows are read; the largest is its depth.
    n_carried, n_sequences, n_stacked : int
        A stacked output has one row for each step.
    until : bool
        Whether the last output of the body is a condition to stop after this step; the last output
        of the scan is then how many steps were done.
    """

    lags: tuple[tuple[Lag, ...], ...]
    n_carried: Count
    n_sequences: Count
    n_stacked: Count
    until: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if () in self.lags:
            raise ParameterError(f"Layout: lags is {self.lags}: each state needs one at least")

    @property
    def depths(self) -> list[int]:
        """For each traced state, the number of its initial rows."""
        return [max(lags) for lags in self.lags]

    def arguments(self, inputs: Sequence[Any]) -> Arguments:
        """Return the inputs of a scan by kind."""
        counts = (len(self.lags), self.n_carried, self.n_sequences)
        return Arguments(inputs[0], *_split(inputs[1:], counts))

    def step(self, inputs: Sequence[Any]) -> BodyInputs:
        """Return the inputs of the body by kind."""
        counts = [*(len(lags) for lags in self.lags), self.n_carried, self.n_sequences]
        *lagged, carried, rows, captured = _split(inputs, counts)
        return BodyInputs(lagged, carried, rows, captured)

    def carried_pairs(self) -> list[tuple[int, int]]:
        """Return, for each carried value, the positions of the body's output and input."""
        output, position = len(self.lags), sum(map(len, self.lags))
        return [(output + k, position + k) for k in range(self.n_carried)]

    def results(self, outputs: Sequence[Any]) -> Results:
        """Return the outputs of a scan, or of its body, by kind."""
        counts = (len(self.lags), self.n_carried, self.n_stacked)
        traced, carried, stacked, rest = _split(outputs, counts)
        return Results(traced, carried, stacked, rest[0] if self.until else None)


def flat_arguments(arguments: Arguments) -> list[Any]:
    """Return the inputs of a scan in one list."""
    n, traced, carried, sequences, captured = arguments
    return [n, *traced, *carried, *sequences, *captured]


def flat_body_inputs(step: BodyInputs) -> list[Any]:
    """Return the inputs of a body in one list."""
    lagged = [x for state in step.lagged for x in state]
    return [*lagged, *step.carried, *step.rows, *step.captured]


def flat_results(results: Results) -> list[Any]:
    """Return the outputs of a body, or of a scan, in one list."""
    last = [] if results.last is None else [results.last]
    return [*results.traced, *results.carried, *results.stacked, *last]


def _split(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Divide values into consecutive parts of the given lengths, and the rest."""
    parts, start = [], 0
    for count in counts:
        parts.append(list(values[start : start + count]))
        start += count
    return [*parts, list(values[start:])]
