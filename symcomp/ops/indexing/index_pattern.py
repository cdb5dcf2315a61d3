"""Index expressions as data: the static pattern of ``x[...]``, and the parts that are inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.fields import Axis
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import StaticShape, TensorConstant, TensorType, TensorVariable
from symcomp.errors import (
    AxisError,
    DTypeError,
    IndexOutOfRangeError,
    ParameterError,
    ShapeError,
)
from symcomp.ops.convert import as_tensor_variable, cast_to, constant
from symcomp.ops.elementwise.scalar_logic import eq, ge, lt, switch
from symcomp.ops.elementwise.scalar_math import maximum, minimum
from symcomp.ops.shapes.shape import shape_tuple

SYMBOL = "?"  # an int64 scalar, given as an input
ARRAY = "array"  # an integer array, given as an input
FLAG = "flag"  # a bool scalar, given as an input: an array of length 1 or 0 that takes no axis
NEW = "new"  # a new axis of length 1
NOTHING = "..."  # an ellipsis for no axis: it still separates the index arrays on its sides
MARKS = (SYMBOL, ARRAY, FLAG, NEW, NOTHING)
FARTHEST = np.iinfo(np.int64).max  # larger bounds of a slice have the same effect


class Slice(NamedTuple):
    """A slice whose parts are None, an int, or SYMBOL."""

    start: int | str | None = None
    stop: int | str | None = None
    step: int | str | None = None

    def __str__(self) -> str:
        text = ":".join("" if part is None else str(part) for part in self[:2])
        return text if self.step is None else f"{text}:{self.step}"


Entry = int | str | Slice
IndexPattern = tuple[Entry, ...]


def check_pattern(name: str, pattern: IndexPattern) -> None:
    """Raise ParameterError if an entry is not part of an index expression; ``name`` is the op."""
    for entry in pattern:
        parts: tuple[Any, ...] = entry if isinstance(entry, Slice) else ()
        numbers = [n for n in (*parts, entry) if isinstance(n, int)]
        if (
            (isinstance(entry, str) and entry not in MARKS)
            or any(isinstance(part, str) and part != SYMBOL for part in parts)
            or (isinstance(entry, Slice) and entry.step == 0)
            or any(abs(n) > FARTHEST for n in numbers)
        ):
            raise ParameterError(f"{name}: {entry!a:.80} is no entry of an index expression")


def is_advanced(pattern: IndexPattern) -> bool:
    """Tell whether a pattern contains index arrays."""
    return ARRAY in pattern or FLAG in pattern


def left_out(entry: Any) -> tuple[int, int] | None:
    """Return how many elements ``a:-b`` omits at the start and at the end, for numbers; else None.
    """
    if not isinstance(entry, Slice) or entry.step not in (None, 1):
        return None
    start, stop = entry.start or 0, entry.stop
    if not isinstance(start, int) or start < 0:
        return None
    if stop is None:
        return start, 0
    return (start, -stop) if isinstance(stop, int) and stop < 0 else None


def describe(pattern: IndexPattern) -> str:
    """Return the pattern as Python source."""
    return ", ".join("newaxis" if entry == NEW else str(entry) for entry in pattern)


def fill_pattern(pattern: IndexPattern, values: Sequence[Any], whole: Any = int) -> tuple[Any, ...]:
    """Return the index expression for given inputs; ``whole`` converts the scalars."""
    rest = iter(values)
    return tuple(_fill_entry(entry, rest, whole) for entry in pattern)


def _fill_entry(entry: Entry, rest: Iterator[Any], whole: Any) -> Any:
    if isinstance(entry, Slice):
        return slice(*(whole(next(rest)) if part == SYMBOL else part for part in entry))
    if entry == NEW:
        return None
    if entry == NOTHING:
        return Ellipsis
    if entry in (ARRAY, FLAG):
        return next(rest)
    return whole(next(rest)) if entry == SYMBOL else entry


# -- reading an index expression


def read_key(x: TensorVariable, key: Any) -> tuple[IndexPattern, list[TensorVariable]]:
    """Return the pattern of ``x[key]`` and its inputs.

    Raises
    ------
    ShapeError, DTypeError, IndexOutOfRangeError
    """
    entries = list(key or [Ellipsis]) if isinstance(key, tuple) else [key]
    entries = _expand_ellipsis(x, [_prepare(entry) for entry in entries])
    pattern: list[Entry] = []
    inputs: list[TensorVariable] = []
    axis = 0
    for entry in entries:
        if entry is None:
            pattern.append(NEW)
        elif entry is Ellipsis:
            pattern.append(NOTHING)
        elif isinstance(entry, slice):
            pattern.append(_read_slice(entry, inputs))
            axis += 1
        elif _is_mask(entry) and entry.ndim == 0:
            pattern.append(FLAG)
            inputs.append(entry)
        elif _is_mask(entry):
            pattern.extend([ARRAY] * entry.ndim)
            inputs.extend(_mask_positions(x, entry, axis))
            axis += entry.ndim
        else:
            pattern.append(_read_integers(x, entry, axis, inputs))
            axis += 1
    if axis > x.ndim:
        raise AxisError(f"too many indices: {axis} for {x} with {x.ndim} axes ({x.type})")
    return tuple(pattern), inputs


def _prepare(entry: Any) -> Any:
    """Return None, Ellipsis, slices and ints as they are; everything else as a tensor variable."""
    if isinstance(entry, Variable):
        # Variables on devices stand for tensors.
        return entry.as_tensor_variable() if hasattr(entry, "as_tensor_variable") else entry
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool | np.bool_):
        return int(entry)
    try:
        v = as_tensor_variable(entry)
    except (TypeError, ValueError):
        raise DTypeError(
            f"{entry!r} is no index: use integers, slices, None, ... or integer or bool arrays"
        ) from None
    nothing = isinstance(entry, list | tuple) and isinstance(v, TensorConstant) and not v.data.size
    return constant(v.data, dtype="int64") if nothing else v


def _is_mask(entry: Any) -> bool:
    return isinstance(entry, TensorVariable) and entry.dtype == "bool"


def _axes_used(entry: Any) -> int:
    if entry is None:
        return 0
    return entry.ndim if _is_mask(entry) else 1


def _expand_ellipsis(x: TensorVariable, entries: list[Any]) -> list[Any]:
    places = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(places) > 1:
        raise ShapeError("an index can only have a single ellipsis ('...')")
    used = sum(_axes_used(entry) for entry in entries if entry is not Ellipsis)
    if used > x.ndim:
        raise AxisError(f"too many indices: {used} for {x} with {x.ndim} axes ({x.type})")
    if not places:
        return entries
    full: list[Any] = [slice(None)] * (x.ndim - used) or [Ellipsis]
    return entries[: places[0]] + full + entries[places[0] + 1 :]


def _read_slice(entry: slice, inputs: list[TensorVariable]) -> Slice:
    parts: list[Any] = []
    for part in (entry.start, entry.stop, entry.step):
        if part is None:
            parts.append(None)
            continue
        if isinstance(part, int):
            part = min(max(part, -FARTHEST), FARTHEST)
        v = as_tensor_variable(part)
        if v.ndim != 0 or not dtypes.is_discrete(v.dtype) or v.dtype == "bool":
            raise DTypeError(f"slice: {part!r} ({v.type}) is no integer scalar")
        if isinstance(v, TensorConstant):
            parts.append(int(v.data))
        else:
            parts.append(SYMBOL)
            inputs.append(cast_to(v, "int64"))
    if parts[2] == 0:
        raise ShapeError("slice: the step cannot be 0")
    return Slice(*parts)


def _mask_positions(x: TensorVariable, mask: TensorVariable, axis: int) -> list[TensorVariable]:
    """Return the positions where the mask of ``axis`` and the following axes is true: an index
    array for each.
    """
    lengths = shape_tuple(x)[axis : axis + mask.ndim]
    unsure = []
    for a, (n, length) in enumerate(zip(shape_tuple(mask), lengths, strict=True)):
        if not (isinstance(n, int) and isinstance(length, int)):
            unsure.append((a, n, length))
        elif n != length:
            raise IndexOutOfRangeError(
                f"boolean index: axis {a} of the mask has length {n}, axis {axis + a} of {x} "
                f"({x.type}) has {length}"
            )
    if isinstance(mask, TensorConstant):
        found: list[TensorVariable] = [constant(p) for p in np.nonzero(mask.data)]
    else:
        found = list(mask.nonzero())
    if unsure:
        axes, *both = zip(*unsure, strict=True)
        fits = MaskFits(tuple((a, axis + a) for a in axes))
        found[0] = fits(found[0], *(as_tensor_variable(n) for side in both for n in side))
    return found


@record
class MaskFits(Op):
    """z = positions, a view; an error if the mask and the axes that it indexes differ in length.

    Inputs: positions, the lengths of the mask, and those of the tensor, one for each pair of
    ``axes`` (axis of the mask, axis of the tensor).
    """

    axes: tuple[tuple[Axis, Axis], ...]

    no_derivative = "positions are integers"
    view_map = {0: (0,)}

    def output_types(self, positions: TensorVariable, *lengths: TensorVariable) -> list[TensorType]:
        if len(lengths) != 2 * len(self.axes):
            raise TypeError(f"{self}: {2 * len(self.axes)} lengths are needed, got {len(lengths)}")
        return [positions.type]

    def perform(self, positions: Any, *lengths: Any) -> Any:
        n = len(self.axes)
        for (a, axis), have, want in zip(self.axes, lengths[:n], lengths[n:], strict=True):
            if have != want:
                raise IndexOutOfRangeError(
                    f"boolean index: axis {a} of the mask has length {have}, axis {axis} of the "
                    f"tensor has {want}"
                )
        return positions

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]


def _read_integers(x: TensorVariable, entry: Any, axis: int, inputs: list[TensorVariable]) -> Entry:
    length = x.type.shape[axis]
    if isinstance(entry, TensorConstant) and entry.ndim == 0 and dtypes.is_discrete(entry.dtype):
        entry = int(entry.data)
    if isinstance(entry, int):
        if length is not None and not -length <= entry < length:
            raise IndexOutOfRangeError(
                f"index {entry} is out of bounds for axis {axis} of {x} ({x.type}), which has "
                f"length {length}"
            )
        return entry
    if not dtypes.is_discrete(entry.dtype):
        raise DTypeError(
            f"index {entry} has dtype {entry.dtype}; only integers and booleans can index: cast "
            "it to int64"
        )
    if entry.ndim == 0:
        inputs.append(cast_to(entry, "int64"))
        return SYMBOL
    if isinstance(entry, TensorConstant) and length is not None:
        _check_positions(x, entry.data, axis, length)
    inputs.append(entry)
    return ARRAY


def _check_positions(x: TensorVariable, positions: Any, axis: int, length: int) -> None:
    wrong = positions[(positions < -length) | (positions >= length)]
    if wrong.size:
        raise IndexOutOfRangeError(
            f"index {wrong[0]} of an index array is out of bounds for axis {axis} of {x} "
            f"({x.type}), which has length {length}"
        )


# -- shapes


def slice_length(n: Any, entry: Slice | slice) -> Any:
    """Return the number of elements in a slice of an axis of length ``n``; ints and scalar
    variables mix.
    """
    start, stop, step = entry.start, entry.stop, entry.step
    if all(part is None or isinstance(part, int) for part in (start, stop, step)) and isinstance(
        n, int
    ):
        return len(range(*slice(start, stop, step).indices(n)))
    if start is None and stop is None and step in (None, 1, -1):
        return n
    step = 1 if step is None else step
    if isinstance(step, int):
        return _directed_length(n, start, stop, step)
    return switch(
        ge(step, 0),
        _directed_length(n, start, stop, step, True),
        _directed_length(n, start, stop, step, False),
    )


def _directed_length(n: Any, start: Any, stop: Any, step: Any, forward: bool | None = None) -> Any:
    forward = step > 0 if forward is None else forward
    low, high = (0, n) if forward else (-1, n - 1)
    first = (low if forward else high) if start is None else _clamp(start, n, low, high)
    last = (high if forward else low) if stop is None else _clamp(stop, n, low, high)
    span, size = (last - first, step) if forward else (first - last, -step)
    # Not (span + size - 1) // size, which overflows for steps near the int64 limit.
    return maximum(_whole(span - 1) // size, -1) + 1


def _whole(v: Any) -> Any:
    return as_tensor_variable(v, dtype="int64") if isinstance(v, int) else v


def _clamp(v: Any, n: Any, low: Any, high: Any) -> Any:
    counted = (
        v + n
        if isinstance(v, int) and v < 0
        else v
        if isinstance(v, int)
        else switch(lt(v, 0), v + n, v)
    )
    return minimum(maximum(_whole(counted), low), high)


def index_shape(
    lengths: Sequence[Any],
    pattern: IndexPattern,
    key: Sequence[Any],
    array_shapes: Sequence[Sequence[Any]],
    broadcast: Any,
    length_of: Any = slice_length,
) -> tuple[Any, ...]:
    """Return the shape of ``x[key]``, by NumPy's rule for the position of the axes of index arrays.

    Parameters
    ----------
    lengths : sequence
        The shape of x.
    key : sequence
        The pattern with its scalar inputs put in (their values in arrays do not matter).
    array_shapes : sequence of shapes
        The shapes of the index arrays, and of the flags.
    broadcast : callable
        Shapes -> shape.
    length_of : callable
        Length of an axis, slice -> length of the slice.
    """
    advanced = is_advanced(pattern)
    result: list[Any] = []
    place = None
    last_advanced = -1
    scattered = False
    axis = 0
    for i, entry in enumerate(pattern):
        if entry == NEW:
            result.append(1)
        elif entry == NOTHING:
            continue
        elif isinstance(entry, Slice):
            result.append(length_of(lengths[axis], key[i]))
            axis += 1
        else:
            if advanced:
                scattered |= last_advanced not in (-1, i - 1)
                last_advanced = i
                place = len(result) if place is None else place
            axis += entry != FLAG
    result.extend(lengths[axis:])
    if advanced:
        at = 0 if scattered else place or 0
        result[at:at] = broadcast(array_shapes)
    return tuple(result)


@cache
def _places(pattern: IndexPattern) -> tuple[str, ...]:
    """Return the marks of the entries that are inputs, in order."""
    parts = [part for entry in pattern for part in (entry if isinstance(entry, Slice) else [entry])]
    return tuple(part for part in parts if part in (SYMBOL, ARRAY, FLAG))


def _fills(place: str, x: TensorVariable) -> bool:
    """Tell whether an input fits a mark."""
    if place == FLAG:
        return x.ndim == 0 and x.dtype == "bool"
    return dtypes.is_integer(x.dtype) and (x.ndim > 0) == (place == ARRAY)


def static_shape(
    x: TensorVariable, pattern: IndexPattern, inputs: Sequence[TensorVariable]
) -> StaticShape:
    """Return the static shape of ``x[key]``; the inputs are checked."""
    places = _places(pattern)
    if len(places) != len(inputs) or not all(map(_fills, places, inputs)):
        given = ", ".join(str(v.type) for v in inputs)
        raise DTypeError(f"the index [{describe(pattern)}] needs {places}; given is ({given})")
    used = sum(entry not in (NEW, NOTHING, FLAG) for entry in pattern)
    if used > x.ndim:
        raise AxisError(f"the index [{describe(pattern)}] has {used} axes, {x} ({x.type}) fewer")
    arrays = [
        _flag_shape(v, None) if v.dtype == "bool" else v.type.shape
        for v in inputs
        if v.ndim > 0 or v.dtype == "bool"
    ]
    return index_shape(
        x.type.shape, pattern, pattern, arrays, _broadcast_known, _known_slice_length
    )


def runtime_shape(
    lengths: Sequence[Any],
    pattern: IndexPattern,
    inputs: Sequence[TensorVariable],
    shapes: Sequence[Sequence[Any]],
) -> tuple[Any, ...]:
    """Return the shape of ``x[key]`` from the lengths of x and the shapes of the inputs."""
    arrays = [
        _flag_shape(v, switch(v, np.int64(1), np.int64(0))) if v.dtype == "bool" else shape
        for v, shape in zip(inputs, shapes, strict=True)
        if v.ndim > 0 or v.dtype == "bool"
    ]
    key = fill_pattern(pattern, inputs, whole=lambda v: v)
    return index_shape(lengths, pattern, key, arrays, _broadcast_lengths)


def _flag_shape(flag: TensorVariable, otherwise: Any) -> tuple[Any, ...]:
    """Return the shape of a bool scalar as an index array: length 1 or 0."""
    return (int(flag.data),) if isinstance(flag, TensorConstant) else (otherwise,)


def _known_slice_length(n: int | None, entry: Slice) -> int | None:
    """Return the length of a slice if it is certain, else None."""
    if SYMBOL in entry:
        return None
    if n is not None:
        return len(range(*slice(*entry).indices(n)))
    return 0 if entry.stop == 0 and entry.step in (None, 1) else None


def _broadcast_known(shapes: Sequence[StaticShape]) -> list[int | None]:
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result: list[int | None] = []
    for lengths in zip(*padded, strict=True):
        known = {n for n in lengths if n not in (1, None)}
        if len(known) > 1:
            raise IndexOutOfRangeError(
                f"index arrays of shapes {', '.join(map(str, shapes))} do not broadcast"
            )
        result.append(known.pop() if known else None if None in lengths else 1)
    return result


def _broadcast_lengths(shapes: Sequence[Any]) -> list[Any]:
    """Return the lengths that index arrays broadcast to at run time, where any length 1 stretches.
    """
    rank = max(len(s) for s in shapes)
    result: list[Any] = []
    for axis in range(rank):
        length: Any = 1
        for shape in shapes:
            n = shape[axis - rank + len(shape)] if axis >= rank - len(shape) else 1
            if isinstance(length, int) and length == 1:
                length = n
            elif not (isinstance(n, int) and n == 1):
                length = n if isinstance(n, int) else switch(eq(length, 1), n, length)
        result.append(length)
    return result
