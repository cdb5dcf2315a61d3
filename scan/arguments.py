"""Check the arguments of ``scan``, and bring them to one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Constant, Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable, describe_value
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import minimum
from symcomp.ops.shapes.axes import shape_padleft
from symcomp.ops.shapes.reshaping import shape_i
from symcomp.scan.calling import described, read_tensor
from symcomp.scan.run import by_fast_compile, by_fast_run


@record(frozen=False)
class SequenceArgument:
    """A sequence: for each tap, the rows that step t reads as row t, and a variable for one row.

    ``source`` is the sequence itself.
    """

    label: str
    source: Any
    slices: list[Any]
    rows: list[Any]
    span: int


@record(frozen=False)
class State:
    """An output: with taps a state that starts from ``start``, one row per step of its depth."""

    label: str
    taps: tuple[int, ...] = ()
    start: Any = None
    rows: tuple[Any, ...] = ()
    initial: Any = None

    @property
    def lags(self) -> tuple[int, ...]:
        """For each tap, how many steps back its row is."""
        return tuple(-tap for tap in self.taps)


def read_name(name: Any, default: str) -> str:
    """Return the name of a loop, for error messages."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{default}: name is {describe_value(name)}; it must be a str or None")
    return name or default


def check_flag(argument: str, value: Any, who: str) -> None:
    """Raise a TypeError if ``value`` is neither true nor false."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, int) and value in (0, 1)):
        raise TypeError(f"{who}: {argument} is {described(value)}; it must be True or False")


def as_list(argument: Any) -> list[Any]:
    """Return one argument as a list; None as an empty one."""
    if argument is None:
        return []
    return list(argument) if isinstance(argument, list | tuple) else [argument]


def read_sequence(item: Any, position: int, backwards: bool, who: str) -> SequenceArgument:
    """Read an element of ``sequences``."""
    taps: Any = [0]
    if isinstance(item, Mapping):
        _check_keys(item, ("input", "taps"), f"{who}: sequence {position}")
        taps, item = item.get("taps"), item["input"]
        taps = [0] if taps is None else as_list(taps)
    label = f"sequence {position}"
    x = read_tensor(item, f"{who}: {label}", "pass a tensor with at least one axis")
    label = f"{label}{f' ({x.name})' if x.name else ''}"
    taps = [_tap(tap, f"{who}: {label}") for tap in taps]
    if not taps:
        raise ValueError(f"{who}: {label} ({x.type}) has no taps: give one at least, as [0]")
    if x.ndim == 0:
        raise ShapeError(
            f"{who}: {label} is a {x.type}, which has no rows to go through: pass a tensor with at "
            "least one axis; a value that is the same in all steps is no sequence"
        )
    first, last = min(0, *taps, 0), max(0, *taps, 0)
    span = last - first
    if x.type.shape[0] is not None and x.type.shape[0] < span:
        raise ShapeError(
            f"{who}: {label} has length {x.type.shape[0]}, but its taps {taps} reach over "
            f"{span + 1} rows ({x.type}): pass a longer one, or taps that are nearer"
        )
    slices, rows = [], []
    for tap in taps:
        start, stop = tap - first, tap - last
        part = x if span == 0 else x[start : stop or None]
        slices.append(part[::-1] if backwards else part)
        name = f"{x.name or f'sequence {position}'}[t{_signed(tap)}]"
        rows.append(TensorType(x.dtype, x.type.shape[1:])(name))
    return SequenceArgument(label, x, slices, rows, span)


def read_state(item: Any, position: int, who: str) -> State:
    """Read an element of ``outputs_info``."""
    label = f"output {position}"
    if item is None:
        return State(label)
    taps: Any = [-1]
    if isinstance(item, Mapping):
        _check_keys(item, ("initial", "taps", "inplace", "name"), f"{who}: {label}")
        given = item.get("taps", [-1])
        item = item.get("initial")
        if item is None:
            if given not in (None, [-1]):
                raise ValueError(
                    f"{who}: {label} has the taps {given} but no initial value: give it as "
                    "dict(initial=..., taps=...)"
                )
            return State(label)
        taps = [-1] if given is None else as_list(given)
    wanted = "pass its value before the first step, dict(initial=..., taps=[...]), or None"
    x = read_tensor(item, f"{who}: outputs_info of {label}", wanted)
    label = f"{label}{f' ({x.name})' if x.name else ''}"
    taps = tuple(_tap(tap, f"{who}: {label}") for tap in taps)
    if not taps or any(tap >= 0 for tap in taps) or len(set(taps)) < len(taps):
        raise ValueError(
            f"{who}: {label} has the taps {list(taps)}: an output is read at past steps alone, "
            "each tap once: use negative numbers, as [-2, -1]"
        )
    start = shape_padleft(x) if taps == (-1,) else _first_rows(x, taps, f"{who}: {label}")
    name = x.name or f"output {position}"
    kind = TensorType(start.dtype, start.type.shape[1:])
    rows = tuple(kind(f"{name}[t{_signed(tap)}]") for tap in taps)
    return State(label, taps, start, rows, x)


def _first_rows(x: TensorVariable, taps: tuple[int, ...], who: str) -> Any:
    depth = -min(taps)
    if x.ndim == 0 or (x.type.shape[0] is not None and x.type.shape[0] < depth):
        raise ShapeError(
            f"{who}: the initial value is {x.type}; the taps {list(taps)} need {depth} rows, the "
            f"one of step -{depth} first: give it {depth} rows, or shorter taps"
        )
    return x if x.type.shape[0] == depth else x[:depth]


def read_steps(
    n_steps: Any,
    sequences: Sequence[SequenceArgument],
    who: str,
    given_by: str = "n_steps or a sequence",
) -> Any:
    """Return the number of steps as an int64 scalar; ``given_by`` names the arguments that give it.
    """
    if n_steps is None:
        return _shortest(sequences, who, given_by)
    if isinstance(n_steps, bool | float | np.floating | str):
        raise DTypeError(f"{who}: n_steps is {n_steps!r}; it must be an integer")
    n = read_tensor(n_steps, f"{who}: n_steps", "it must be an integer, or an integer scalar")
    if n.ndim != 0 or not dtypes.is_discrete(n.dtype):
        raise DTypeError(
            f"{who}: n_steps is {n} ({n.type}); it must be an integer scalar: the length of x is "
            "x.shape[0], and T.cast(n, 'int64') makes an integer of a number"
        )
    n = cast_to(n, "int64")
    if isinstance(n, Constant):
        if n.data < 0:
            raise ValueError(
                f"{who}: n_steps is {n.data}; it must not be negative. To go from the last row to "
                "the first, pass go_backwards=True"
            )
        for s in sequences:
            length = s.slices[0].type.shape[0]
            if length is not None and length < n.data:
                raise ShapeError(
                    f"{who}: {s.label} has rows for {length} steps, fewer than n_steps={n.data}: "
                    f"pass a longer one than {s.source.type}, or fewer steps"
                )
    return n


def _shortest(sequences: Sequence[SequenceArgument], who: str, given_by: str) -> Any:
    if not sequences:
        raise ValueError(
            f"{who}: n_steps is missing, and there is no sequence to take it from: pass {given_by}"
        )
    known = {s.label: s.slices[0].type.shape[0] for s in sequences}
    lengths = {n for n in known.values() if n is not None}
    if len(lengths) > 1:
        found = ", ".join(f"{label}: {n}" for label, n in known.items() if n is not None)
        raise ShapeError(
            f"{who}: the sequences have rows for different numbers of steps ({found}): cut them, "
            "or pass n_steps"
        )
    if lengths and len(sequences) == sum(n is not None for n in known.values()):
        return as_tensor_variable(lengths.pop(), dtype="int64")
    n: Any = None
    for length in dict.fromkeys(shape_i(s.slices[0], 0) for s in sequences):
        n = length if n is None else minimum(n, length)
    return n


def read_selects(mode: Any, who: str) -> Callable[[frozenset[str]], bool] | None:
    """Return the test for the rewrites of the body, given by a Mode or the name of one; None: all.
    """
    if mode is None:
        return None
    levels = {"fast_run": by_fast_run, "fast_compile": by_fast_compile, "mode": by_fast_run}
    selects = getattr(mode, "selects", None)
    if selects is None and isinstance(mode, str):
        selects = levels.get(mode.lower())
    if selects is None:
        raise ValueError(
            f"{who}: mode {mode!r} is no Mode, 'FAST_RUN' or 'FAST_COMPILE'; "
            "symcomp.compile.get_mode(name) gives modes of other names"
        )
    found: Callable[[frozenset[str]], bool] = selects
    return found


def fitted(new: Any, state: State, who: str) -> Any:
    """Return the step's value of a state, cast to the dtype of the state.

    Raises
    ------
    DTypeError, ShapeError
        If it cannot be the next row.
    """
    kind, where = state.rows[0].type, f", made at {new.source}" if new.source else ""
    what = f"{who}: {state.label} is {new.type} as the step returns it{where}, but"
    if new.ndim != kind.ndim:
        raise ShapeError(
            f"{what} {kind} as it starts: both must have as many axes"
            + (
                ""
                if state.taps == (-1,)
                else f" (the initial value has {len(state.taps)} taps, so one axis more)"
            )
        )
    clash = [
        a
        for a, (m, n) in enumerate(zip(new.type.shape, kind.shape, strict=True))
        if m is not None and n is not None and m != n
    ]
    if clash:
        raise ShapeError(
            f"{what} {kind} as it starts: the lengths of axis {clash[0]} differ. Give the initial "
            "value the shape that the step returns"
        )
    if new.dtype != kind.dtype and not np.can_cast(new.dtype, kind.dtype, "safe"):
        wide = dtypes.upcast(new.dtype, kind.dtype)
        raise DTypeError(
            f"{what} {kind} as it starts: cast the initial value with T.cast(initial, {wide!r}), "
            f"or what the step returns with T.cast(..., {kind.dtype!r})"
        )
    return cast_to(new, kind.dtype)


def read_non_sequence(item: Any, position: int, who: str) -> Variable:
    """Read an element of ``non_sequences``."""
    if isinstance(item, Variable):
        return item
    wanted = "pass variables, arrays or numbers; the step finds other objects by closure"
    return read_tensor(item, f"{who}: non_sequence {position}", wanted)


def _tap(tap: Any, who: str) -> int:
    if isinstance(tap, bool) or not isinstance(tap, int | np.integer):
        raise TypeError(f"{who}: the tap {tap!r} is no integer: taps are steps, as [-1, 0]")
    return int(tap)


def _signed(tap: int) -> str:
    return f"{tap:+d}" if tap else ""


def _check_keys(item: Mapping[str, Any], allowed: Sequence[str], who: str) -> None:
    unknown = [key for key in item if key not in allowed]
    if unknown:
        raise ValueError(f"{who} has the key {unknown[0]!r}; the keys are {', '.join(allowed)}")
    if "input" in allowed and item.get("input") is None:
        raise ValueError(f"{who} is a dict without 'input': pass dict(input=x, taps=[...])")
