"""Functions that compute steps of a formula with NumPy, and a whole formula as one Python function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core.op import Op
from symcomp.ops.elementwise.elemwise import ScalarOp
from symcomp.ops.formulas.blocks import Pattern
from symcomp.ops.formulas.formula import Formula, Step, folded_axes, joint_pattern


def direct(step: Step) -> Callable[..., Any]:
    """Return the function that computes a step: a ufunc, or ``perform`` with kept axes."""
    function = step.function
    return function.function if isinstance(function, ScalarOp) else keeping_axes(function)


def keeping_axes(function: Op) -> Callable[..., Any]:
    """Return ``perform``, keeping reduced axes at length 1."""
    axes = folded_axes(function)

    def compute(x: Any, *others: Any) -> Any:
        z = function.perform(x, *others)
        return z.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if axes else z

    return compute


def without(z: Any, axes: tuple[int, ...]) -> Any:
    """Return ``z`` without ``axes``, which have length 1."""
    return z.reshape([n for a, n in enumerate(z.shape) if a not in axes]) if axes else z


def dead_after(formula: Formula) -> list[tuple[int, ...]]:
    """Return, for each step, the values that no later step reads."""
    results = {result.value for result in formula.results}
    dead: list[list[int]] = [[] for _ in formula.steps]
    for value, number in formula.last_use.items():
        if value not in results:
            dead[number - formula.first_step].append(value)
    return [tuple(values) for values in dead]


def ufunc_of(formula: Formula, step: Step) -> Any:
    """Return the ufunc that computes a step in its dtype, or the one that adds up its arguments;
    None if there is none.
    """
    row = step.function
    if not isinstance(row, ScalarOp):
        return None
    dtypes = [np.dtype(formula.dtypes[a]) for a in step.arguments]
    if row.name == "add" and len(dtypes) > 1:
        # All of one dtype, so that the partial sums have it too.
        return np.add if {*dtypes} == {np.dtype(step.dtype)} else None
    ufunc = row.numpy
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1:
        return None
    return ufunc if ufunc.resolve_dtypes((*dtypes, None))[-1] == step.dtype else None


def straight_line(formula: Formula, patterns: Sequence[Pattern]) -> Callable[..., tuple[Any, ...]]:
    """Return the function from the inputs to the results, all elements at once.

    The generated function has a line for each step, so that a call costs little more than its
    ufuncs; these overwrite arrays that no later step reads.

    Parameters
    ----------
    formula : Formula
    patterns : sequence of tuple of bool
        For each value, which of its axes have length 1.
    """
    inputs = [f"x{i}" for i in range(len(formula.inputs))]
    literals = {f"c{i}": literal.array for i, literal in enumerate(formula.literals)}
    names = [*inputs, *literals]
    space: dict[str, Any] = {**literals, "drop": without}
    fresh: set[int] = set()  # temporaries, which may be overwritten
    # A reduction that ends a formula needs no axes inserted and dropped again.
    ends = _ends(formula)
    lines = []
    for step, dead in zip(formula.steps, dead_after(formula), strict=True):
        number = len(names)
        names.append(f"t{number}")
        # Without axes, ufuncs return no arrays.
        ufunc = ufunc_of(formula, step) if patterns[0] else None
        compute = ends.get(number) or direct(step)
        space[f"f{number}"] = ufunc or in_dtype(compute, step.dtype)
        split = 2 if ufunc is np.add else len(step.arguments)
        first, rest = step.arguments[:split], step.arguments[split:]
        given = [names[a] for a in first]
        whole = joint_pattern(patterns[a] for a in first) == patterns[number]
        target = f", out={names[number]}" if whole else ""
        if ufunc is not None:
            fresh.add(number)
            given += [
                f"out={names[a]}"
                for a in first
                if a in fresh & {*dead} - {*rest}
                and formula.dtypes[a] == step.dtype
                and whole
                and patterns[a] == patterns[number]
            ][:1]
        lines.append(f"{names[number]} = f{number}({', '.join(given)})")
        for a in rest:
            lines.append(f"{names[number]} = f{number}({names[number]}, {names[a]}{target})")
        lines += [f"del {names[a]}" for a in dead if a >= formula.first_step]
    results = "".join(
        f"drop({names[r.value]}, {r.dropped}), "
        if r.dropped and r.value not in ends
        else f"{names[r.value]}, "
        for r in formula.results
    )
    text = "\n    ".join([f"def run({', '.join(inputs)}):", *lines, f"return ({results})"])
    exec(compile(text, f"<{formula}>", "exec"), space)
    return space["run"]


def _ends(formula: Formula) -> dict[int, Callable[..., Any]]:
    """Return the reductions that are results without the reduced axes, and the function that
    computes each.
    """
    found: dict[int, Callable[..., Any]] = {}
    for result in formula.results:
        function = formula.steps[result.value - formula.first_step].function
        if isinstance(function, ScalarOp) or result.value in formula.last_use:
            continue
        if result.dropped and result.dropped == folded_axes(function):
            found[result.value] = function.perform
    return found


def in_dtype(function: Any, name: str) -> Callable[..., Any]:
    """Return ``function`` with its result as an array of this dtype."""
    dtype = np.dtype(name)

    def compute(*values: Any) -> Any:
        z = function(*values)
        return z if type(z) is np.ndarray and z.dtype == dtype else np.asarray(z, dtype)

    return compute
