"""Formulas without reductions on cards: each thread computes elements, a grid apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from symcomp.codegen.cpu.bodies import BodyPlan
from symcomp.codegen.cuda.text import CudaKernel, print_function
from symcomp.codegen.loopir.ir import (
    Define,
    Index,
    IndexOp,
    KernelFunction,
    Kind,
    Loop,
    Pointer,
    Signature,
    Statement,
    Store,
    Stride,
    Var,
    plus,
)
from symcomp.codegen.loops.nests import Nest, Pattern, nest_of
from symcomp.ops.formulas.formula import Formula

THREADS = 256
# How an array is read along the axes: element i, the same element, or by steps.
FLAT, ONE, STRIDED = "flat", "one", "strided"


def print_elementwise(nest: Nest, rank: int, kinds: Sequence[str], wide: bool) -> CudaKernel:
    """Return the kernel of a nest without reductions.

    Parameters
    ----------
    nest : Nest
    rank : int
        How many axes are left where axes that can be are joined.
    kinds : sequence of {"flat", "one", "strided"}
        How each input and output lies.
    wide : bool
        Whether integers have 64 bits.
    """
    arrays = len(nest.stretched)
    plan = BodyPlan(nest, len(nest.bodies) - 1, nest.bodies[-1])
    body: list[Statement] = []
    rows: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ("n",)
    if STRIDED in kinds:
        numbers = ("n", *(f"n{axis}" for axis in range(1, rank)))
        rows = tuple(f"step{axis}" for axis in range(rank))
        body += unravel("i", [Var(f"n{axis}") for axis in range(rank)], "p")
    for array, writes in plan.pointers:
        if array >= arrays:
            name, table, place, offset, elements = f"a{array}", "literals", array - arrays, 0, 0
            body.append(Pointer(name, nest.dtypes[array], place, offset, elements, False, table))
        elif kinds[array] == STRIDED:
            by = [IndexOp("*", (Var(f"p{x}"), Stride(array, x, f"step{x}"))) for x in range(rank)]
            body.append(Pointer(f"a{array}", nest.dtypes[array], array, total(by), 0, writes))
        else:
            at: Index = Var("i") if kinds[array] == FLAT else 0
            body.append(Pointer(f"a{array}", nest.dtypes[array], array, 0, at, writes))
    body += [plan.load(v, array, 0) for v, array in (*plan.numbers, *plan.elements)]
    body += [plan.step(value) for value in plan.steps]
    body += [Store(f"a{array}", 0, plan.ref(value)) for value, array in plan.stores]
    loop = Loop(Kind.THREAD, "i", 0, Var("n"), tuple(body))
    function = KernelFunction("elements", Signature(numbers, ("data", "literals"), rows), (loop,))
    return print_function(function, arrays, nest.temporaries - arrays, THREADS, wide)


@cache
def elementwise(
    formula: Formula, patterns: tuple[Pattern, ...], rank: int, kinds: tuple[str, ...], wide: bool
) -> CudaKernel:
    """Return the kernel of the nest of a formula; see ``print_elementwise``."""
    nest = nest_of(formula, patterns)
    assert nest is not None
    return print_elementwise(nest, rank, kinds, wide)


def unravel(index: str, lengths: Sequence[Index], prefix: str) -> list[Statement]:
    """Define the positions along axes of an element by its number; the first length is not read."""
    found: list[Statement] = []
    rest: Index = Var(index)
    for axis in range(len(lengths) - 1, 0, -1):
        found.append(Define(f"{prefix}{axis}", IndexOp("%", (rest, lengths[axis]))))
        found.append(Define(f"{prefix}{axis}r", IndexOp("//", (rest, lengths[axis]))))
        rest = Var(f"{prefix}{axis}r")
    return [*found, Define(f"{prefix}0", rest)]


def total(terms: Sequence[Index]) -> Index:
    """Return the sum of indices."""
    found: Index = 0
    for term in terms:
        found = plus(found, term)
    return found
