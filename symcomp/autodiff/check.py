"""Check derivatives against finite differences: the L-op by elements, the R-op along directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.autodiff.lop import Lop
from symcomp.autodiff.rop import Rop
from symcomp.core import dtype as dtypes
from symcomp.core.evaluate import evaluator
from symcomp.core.node import Variable
from symcomp.errors import GradientError
from symcomp.ops.convert import cast_to

Compile = Callable[[Sequence[Variable], Sequence[Variable]], Callable[[Sequence[Any]], list[Any]]]

# Step and tolerance for central differences: the step is about the cube root of the rounding unit.
STEPS = {
    "float64": 6e-6, "complex128": 6e-6, "float32": 5e-3, "complex64": 5e-3, "float16": 0.1,
    "bfloat16": 0.1,
}  # fmt: skip
TOLERANCES = {
    "float64": 1e-5,
    "complex128": 1e-5,
    "float32": 2e-2,
    "complex64": 2e-2,
    "float16": 0.2,
    "bfloat16": 0.2,
}


class NumericGradient:
    """The gradient of Re(sum(conj(seed) * f(values))), by central differences.

    Parameters
    ----------
    f : callable
        Maps a list of arrays to one array.
    values : list of ndarray
    wrt : sequence of int
        Positions of the values to differentiate.
    seed : ndarray
        An array of the shape of ``f(values)``.
    step : float
    """

    def __init__(
        self, f: Callable[..., Any], values: list[Any], wrt: Sequence[int], seed: Any, step: float
    ) -> None:
        self._f, self._values, self._seed, self._step = f, values, seed, step
        self.gradients = [self._differentiate(i) for i in wrt]

    def _project(self, values: list[Any]) -> float:
        return float(np.sum(np.conj(self._seed) * self._f(values)).real)

    def _differentiate(self, position: int) -> Any:
        x = self._values[position]
        wide = np.zeros(x.shape, np.complex128 if x.dtype.kind == "c" else np.float64)
        for index in np.ndindex(x.shape):
            wide[index] = self._partial(position, index, self._step)
            if x.dtype.kind == "c":
                wide[index] += 1j * self._partial(position, index, 1j * self._step)
        return wide

    def _partial(self, position: int, index: Any, step: Any) -> float:
        ends, places = [], []
        for sign in (1, -1):
            moved = self._values[position].copy()
            moved[index] += sign * step
            places.append(moved[index])
            values = list(self._values)
            values[position] = moved
            ends.append(self._project(values))
        width = abs(places[0] - places[1])
        return (ends[0] - ends[1]) / float(width)


def check_derivatives(
    inputs: Sequence[Any],
    output: Any,
    values: Sequence[Any],
    rng: np.random.Generator,
    eps: float | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    compile_graph: Compile = evaluator,
    forward: bool = True,
    numeric: Sequence[Any] | None = None,
) -> Sequence[Any]:
    """Compare L-op and R-op of ``output`` with finite differences at ``values``; return these.

    Parameters
    ----------
    inputs : sequence of TensorVariable
        The floating ones are differentiated.
    output : TensorVariable
        Whole numbers, as those of ``argmax``, have the derivative zero.
    values : sequence of ndarray
    rng : numpy.random.Generator
        Draws the projection and the directions.
    eps, abs_tol, rel_tol : float, optional
        Step and tolerances; by default suited to the least precise dtype.
    compile_graph : callable
        Compiles a graph to a function.
    forward : bool
        Check the R-op too.
    numeric : sequence of ndarray, optional
        The finite differences, from a check of another graph of the same function, with an equal
        ``rng``.

    Raises
    ------
    GradientError
        If an element differs by more than both tolerances.
    """
    if dtypes.is_discrete(output.dtype):
        output = cast_to(output, "float64")
    wrt = [i for i, x in enumerate(inputs) if not dtypes.is_discrete(x.dtype)]
    targets = [inputs[i] for i in wrt]
    kinds = [x.dtype for x in targets] + [output.dtype]
    worst = max(kinds, key=lambda kind: STEPS[kind])
    step = eps or STEPS[worst]
    atol = TOLERANCES[worst] if abs_tol is None else abs_tol
    rtol = TOLERANCES[worst] if rel_tol is None else rel_tol
    run = compile_graph(inputs, [output])
    values = [np.asarray(v) for v in values]
    result = np.asarray(run(values)[0])
    seed = _random(rng, result.shape, output.dtype)
    if numeric is None:
        numeric = NumericGradient(
            lambda vs: np.asarray(run(vs)[0]), list(values), wrt, seed, step
        ).gradients
    u = output.type("seed")
    pulled = Lop([output], targets, [u], disconnected_inputs="ignore")
    found = compile_graph([*inputs, u], pulled)([*values, seed])
    for x, position, symbolic, estimate in zip(targets, wrt, found, numeric, strict=True):
        _compare("pullback (L-op)", output, x, position, symbolic, estimate, atol, rtol)
    if forward:
        _check_forward(
            inputs, targets, output, values, seed, numeric, wrt, rng, atol, rtol, compile_graph
        )
    return numeric


def _check_forward(
    inputs: Sequence[Any],
    targets: Sequence[Any],
    output: Any,
    values: Sequence[Any],
    seed: Any,
    numeric: Sequence[Any],
    wrt: Sequence[int],
    rng: np.random.Generator,
    atol: float,
    rtol: float,
    compile_graph: Compile,
) -> None:
    """Check that <seed, J v> equals <J^T seed, v> for random v, one input at a time and all
    together.
    """
    directions = [_random(rng, values[i].shape, x.dtype) for i, x in zip(wrt, targets, strict=True)]
    symbols = [x.type("direction") for x in targets]
    groups = [[i] for i in range(len(targets))]
    if len(targets) > 1:
        groups.append(list(range(len(targets))))
    for group in groups:
        points = [symbols[i] if i in group else None for i in range(len(targets))]
        pushed = Rop(output, list(targets), points, disconnected_outputs="ignore")
        free = [symbols[i] for i in group]
        dz = compile_graph([*inputs, *free], [pushed])([*values, *(directions[i] for i in group)])[
            0
        ]
        got = np.sum(np.conj(seed) * dz).real
        want = sum(np.sum(np.conj(numeric[i]) * directions[i]).real for i in group)
        scale = sum(np.sum(np.abs(numeric[i]) * np.abs(directions[i])) for i in group)
        name = ", ".join(str(targets[i]) for i in group)
        if not abs(got - want) <= atol + rtol * max(scale, abs(want)):
            raise GradientError(
                f"pushforward (R-op) of {output} along {name} ({_types(targets, group)}): "
                "projected "
                f"{got:.10g}, finite differences give {want:.10g}"
            )


def _types(targets: Sequence[Any], group: Sequence[int]) -> str:
    return ", ".join(str(targets[i].type) for i in group)


def _random(rng: np.random.Generator, shape: Any, dtype: str) -> Any:
    """Draw numbers of magnitude 0.5 to 1.5 and random sign, so that no error is multiplied by zero.
    """
    sample = (rng.random(shape) + 0.5) * rng.choice([-1.0, 1.0], shape)
    if dtypes.is_complex(dtype):
        sample = sample + 1j * (rng.random(shape) + 0.5)
    return np.asarray(sample, dtype)


def _compare(
    what: str,
    output: Any,
    x: Any,
    position: int,
    symbolic: Any,
    numeric: Any,
    atol: float,
    rtol: float,
) -> None:
    symbolic = np.asarray(symbolic)
    if symbolic.shape != numeric.shape:
        raise GradientError(
            f"{what} of {output} with respect to input {position} ({x}): shape {symbolic.shape}, "
            f"the input has {numeric.shape}"
        )
    error = np.abs(symbolic - numeric)
    bad = ~(error <= atol + rtol * np.maximum(np.abs(symbolic), np.abs(numeric)))
    if np.any(bad):
        where = np.unravel_index(
            np.argmax(np.where(bad, np.nan_to_num(error, nan=np.inf), -1)), error.shape
        )
        raise GradientError(
            f"{what} of {output} with respect to input {position} ({x}, {x.type}), element "
            f"{tuple(int(i) for i in where)}: symbolic {symbolic[where]:.10g}, finite differences "
            f"{numeric[where]:.10g} (abs_tol {atol:g}, rel_tol {rtol:g})"
        )
