"""Draws of a counter-based generator, Philox4x32-10: element i is a function of the state and of i.

A state is three words of uint64: the key, and the upper and the lower word of the counter. A draw
of n elements uses n counters, and adds n to the lower word. Draws are elementwise expressions, so
they are fused with what uses them, and are the same numbers on the processor and on devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import constant
from symcomp.ops.elementwise.scalar_counter import mul_high, philox_first, philox_last
from symcomp.ops.elementwise.scalar_logic import and_, ge, lt, right_shift
from symcomp.ops.elementwise.scalar_math import abs_, cast, log, sqrt
from symcomp.ops.elementwise.scalar_trigonometry import cos
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.shape import ShapeI, known_length

KEY, HIGH, LOW = 0, 1, 2


def draw_by_counter(
    state: TensorVariable, distribution: str, lengths: Sequence[Any], dtype: str,
    parameters: Sequence[Any],
) -> tuple[TensorVariable, TensorVariable]:  # fmt: skip
    """Draw from a distribution of the table; also return the next state.

    Raises
    ------
    ValueError
        If the distribution needs an unknown number of random bits for an element.
    """
    sample = SAMPLERS.get(distribution)
    if sample is None:
        raise ValueError(
            f"{distribution}: Philox draws {', '.join(SAMPLERS)}, and distributions made of "
            f"them; for {distribution} make the stream with generator='pcg64'"
        )
    count: Any = _word(1)
    place: Any = state[LOW]
    for axis in range(len(lengths) - 1, -1, -1):
        pattern = ["x"] * len(lengths)
        pattern[axis] = 0  # type: ignore[call-overload]
        n = _checked(distribution, lengths[axis])
        place = place + dimshuffle(Arange("uint64")(_word(0), count, n), *pattern)
        count = count * cast(n, "uint64")
    after = state + constant(np.array([0, 0, 1], np.uint64)) * count
    return after, sample((place, state[HIGH], state[KEY]), dtype, *parameters)


def _checked(distribution: str, n: Any) -> Any:
    """Return a length, checked when a function runs unless it is that of an array."""
    if known_length(n) is not None or (n.owner is not None and isinstance(n.owner.op, ShapeI)):
        return n
    return Assert(f"{distribution}: lengths must not be negative", ShapeError)(n, ge(n, 0))


def _word(value: int) -> Any:
    return constant(np.uint64(value))


def _shifted(bits: Any, count: int) -> Any:
    return right_shift(bits, _word(count))


def _unit(words: Any, dtype: str) -> Any:
    """Return numbers of [0, 1), in steps of 2^-53 (float32: 2^-24)."""
    bits = philox_first(*words)
    if dtype == "float64":
        return cast(_shifted(bits, 11), "float64") * 2.0**-53
    return cast(cast(_shifted(bits, 40), "int32"), "float32") * np.float32(2.0**-24)


def _positive_unit(bits: Any, dtype: str) -> Any:
    """Return numbers of (0, 1], in steps of 2^-53 (float32: 2^-32)."""
    if dtype == "float64":
        return cast(_shifted(bits, 11) + _word(1), "float64") * 2.0**-53
    return cast(_shifted(bits, 32) + _word(1), "float32") * np.float32(2.0**-32)


def _exponential(words: Any, dtype: str) -> Any:
    return abs_(log(_positive_unit(philox_first(*words), dtype)))


def _normal(words: Any, dtype: str) -> Any:
    """Transform two uniform numbers by Box and Muller (1958)."""
    bits = philox_first(*words)
    radius = sqrt(abs_(log(_positive_unit(bits, dtype))) * np.dtype(dtype).type(2))
    if dtype == "float64":
        turn = cast(_shifted(philox_last(*words), 11), dtype) * 2.0**-53
    else:
        turn = cast(cast(_shifted(and_(bits, _word(0xFFFFFFFF)), 8), "int32"), dtype)
        turn = turn * np.float32(2.0**-24)
    return radius * cos(turn * np.dtype(dtype).type(2 * pi))


def _integers(words: Any, dtype: str, low: Any, high: Any) -> Any:
    """Scale words of 64 bits: probabilities differ by at most 2^-64."""
    if not all(isinstance(x, TensorConstant) for x in (low, high)):
        low = Assert("integers: low must be below high")(low, all_(lt(low, high)))
    count = cast(high - low, "uint64")
    return low + cast(mul_high(philox_first(*words), count), "int64")


SAMPLERS: dict[str, Callable[..., Any]] = {
    "standard_uniform": _unit,
    "standard_normal": _normal,
    "standard_exponential": _exponential,
    "integers": _integers,
}
