"""Draw: the op of random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.elementwise.scalar_gamma import gammaln
from symcomp.ops.elementwise.scalar_math import cast, exp, log
from symcomp.ops.elementwise.scalar_special import gammainc_der
from symcomp.ops.random.state import (
    HALVED,
    WORDS,
    RandomType,
    generator_at,
    halved_words_of,
    is_pcg64_state,
    words_of,
)
from symcomp.ops.random.table import TABLE, Row
from symcomp.ops.shapes.alloc import sum_to
from symcomp.ops.shapes.shape import known_length

NOT_DERIVED = (
    "the draw is no smooth function of it that is known here. Use "
    "gradient.disconnected_grad(draw) where the gradient must not flow to its parameters"
)


@record
class Draw(Op):
    """state', z[i_1, .., i_k] ~ distribution(x[i_1, .., i_k] ..), independent.

    Inputs: the state, of PCG64; the lengths n_1 .. n_k; the parameters, with k axes, of length 1
    or n_i, and, where a parameter holds probabilities of outcomes, one more. Outputs: the state
    after it; z, of the lengths n_1 .. n_k (and the number of outcomes).

    Draws the numbers of NumPy's Generator. A pure function: the same state gives the same numbers.
    """

    distribution: str
    dtype: str

    multiple_outputs = True

    @property
    def row(self) -> Row:
        """The distribution's entry in the table."""
        found = TABLE.get(self.distribution)
        if found is None:
            raise ValueError(f"there is no distribution {self.distribution!r}")
        return found

    def _parts(self, inputs: Sequence[Any]) -> tuple[Any, Sequence[Any], Sequence[Any]]:
        """Return the state, the lengths and the parameters."""
        count = len(inputs) - len(self.row.parameters)
        return inputs[0], inputs[1:count], inputs[count:]

    def output_types(self, *inputs: TensorVariable) -> list[Type]:
        row, name = self.row, self.distribution
        state, lengths, parameters = self._parts(inputs)
        if not is_pcg64_state(state.type):
            raise DTypeError(
                f"{name}: the state must be a uint64 vector of 4 words, or of 6, got {state} "
                f"({state.type}): make it by T.random.state, or of numpy.random.default_rng(seed)"
            )
        if self.dtype not in row.draws:
            raise DTypeError(f"{name}: draws are {' or '.join(row.draws)}, not {self.dtype}")
        for n in lengths:
            if n.dtype != "int64" or n.ndim:
                raise DTypeError(f"{name}: a length is {n} ({n.type}); int64 scalars are needed")
        shape = [known_length(n) for n in lengths]
        if any(n is not None and n < 0 for n in shape):
            raise ShapeError(f"{name}: size is {tuple(shape)}; lengths must not be negative")
        for title, kind, is_vector, x in zip(
            row.parameters, row.dtypes, row.vectors, parameters, strict=True
        ):
            if x.dtype != kind or x.ndim != len(shape) + is_vector:
                raise DTypeError(
                    f"{name}: {title} is {x.type}; {kind} with {len(shape) + is_vector} axes is "
                    "needed"
                )
            for axis, n in enumerate(x.type.shape[: len(shape)]):
                if n not in (None, 1):
                    if shape[axis] not in (None, n):
                        raise ShapeError(
                            f"{name}: {title} ({x.type}) does not fit size {tuple(shape)}: "
                            f"axis {axis} has length {n}"
                        )
                    shape[axis] = n
        outcomes = [parameters[-1].type.shape[-1]] if row.is_vector else []
        after = RandomType() if state.type.shape == (WORDS,) else HALVED
        return [after, TensorType(self.dtype, (*shape, *outcomes))]

    def perform(self, *values: Any) -> tuple[Any, ...]:
        return self.sample(values, self.dtype)

    def sample(self, values: Sequence[Any], out: Any) -> tuple[Any, ...]:
        """Return the next state and the draws: in ``out``, an array, or of a dtype."""
        words, lengths, parameters = self._parts(values)
        size = tuple(int(n) for n in lengths)
        if any(n < 0 for n in size):
            raise ShapeError(f"{self.distribution}: size is {size}; lengths must not be negative")
        generator = generator_at(words)
        try:
            z = self.row.sample(generator, size, parameters, out)
        except ValueError as problem:
            titles = zip(self.row.parameters, parameters, strict=True)
            shown = "".join(f", {t} {x.dtype} of shape {x.shape}" for t, x in titles)
            raise ValueError(f"{self.distribution}: {problem} (size {size}{shown})") from None
        after = words_of if len(words) == WORDS else halved_words_of
        return after(generator), np.asarray(z)

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Return ``perform``, checking that axes of parameters not known to be 1 are not stretched.
        """
        check = self.length_check(node)
        if check is None:
            return self.perform

        def compute(*values: Any) -> Any:
            check(values)
            return self.perform(*values)

        return compute

    def length_check(self, node: Apply) -> Callable[[Sequence[Any]], None] | None:
        """Return the function that raises for parameters without the lengths of the draw; None if
        all are known.
        """
        count, k = len(node.inputs) - len(self.row.parameters), len(self._parts(node.inputs)[1])
        pairs = [
            (i, axis)
            for i in range(count, len(node.inputs))
            for axis, n in enumerate(node.inputs[i].type.shape[:k])
            if n != 1
        ]

        def check(values: Sequence[Any]) -> None:
            for i, axis in pairs:
                if values[i].shape[axis] != values[1 + axis]:
                    raise ShapeError(
                        f"{self.distribution}: {self.row.parameters[i - count]} has shape "
                        f"{values[i].shape}, which does not fit size "
                        f"{tuple(int(n) for n in values[1 : 1 + k])}: an axis is stretched only "
                        "if its type says that its length is 1 (T.addbroadcast)"
                    )

        return check if pairs else None

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        lengths = self._parts(node.inputs)[1]
        static = node.outputs[1].type.shape
        shape = [n if s is None else s for n, s in zip(lengths, static, strict=False)]
        return (
            [node.outputs[0].type.shape, (*shape, *shapes[-1][len(lengths) :][:1])]
            if (self.row.is_vector)
            else [node.outputs[0].type.shape, tuple(shape)]
        )

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Connect draws to their parameters; the state only adds noise without a derivative."""
        count = len(node.inputs) - len(self.row.parameters)
        return [[False, i >= count] for i in range(len(node.inputs))]

    @property
    def _smooth(self) -> bool:
        """True if the draw has a derivative in its parameters."""
        return self.distribution == "standard_gamma"

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        if self._smooth:
            return ()
        why = reason(self.distribution)
        return [[why if on else "" for on in row] for row in self.connection_pattern(node)]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        _, lengths, parameters = self._parts(inputs)
        before: list[Any] = [None] * (1 + len(lengths))
        if not self._smooth:
            return before + [NullType(reason(self.distribution))() for _ in parameters]
        (shape,) = parameters
        return [*before, sum_to(output_grads[1] * _gamma_slope(shape, outputs[1]), shape)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        if not self._smooth:
            return [None, NullType(reason(self.distribution))()]
        (shape,) = self._parts(inputs)[2]
        return [None, cast(tangents[-1] * _gamma_slope(shape, outputs[1]), self.dtype)]

    def __str__(self) -> str:
        return f"Draw{{{self.distribution}, {self.dtype}}}"


def reason(distribution: str) -> str:
    """Return why a draw has no derivative in a parameter."""
    return f"{distribution}: {NOT_DERIVED}"


def _gamma_slope(shape: Any, z: Any) -> Any:
    """Compute dz / dshape at a fixed probability P(shape, z): -(dP/dshape) / (dP/dz).

    Implicit reparameterization: Figurnov, Mohamed and Mnih (2018), "Implicit reparameterization
    gradients".
    """
    z = cast(z, "float64")
    density = exp((shape - 1) * log(z) - z - gammaln(shape))
    return -gammainc_der(shape, z) / density
