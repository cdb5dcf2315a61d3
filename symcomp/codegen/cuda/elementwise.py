"""Formulas without reductions on cards: each thread computes elements, a grid apart; or packs of
neighbouring elements, which it reads and writes by one access each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from symcomp.codegen.cpu.bodies import BodyPlan
from symcomp.codegen.cuda.text import CudaKernel, print_function
from symcomp.codegen.loopir.expressions import Index, IndexOp, Load, Stride, Var, plus, times
from symcomp.codegen.loopir.ir import (
    Define,
    KernelFunction,
    Kind,
    Let,
    Loop,
    Pack,
    Pointer,
    Signature,
    Statement,
    Store,
    WritePack,
)
from symcomp.codegen.loops.nests import Nest, Pattern, nest_of
from symcomp.ops.formulas.formula import Formula

THREADS = 256
# How an array is read along the axes: element i, the same element, by steps, or by steps and the
# same element for all of a pack.
FLAT, ONE, STRIDED, SAME = "flat", "one", "strided", "same"


def print_elementwise(
    nest: Nest, rank: int, kinds: Sequence[str], wide: bool, width: int = 1
) -> CudaKernel:
    """Return the kernel of a nest without reductions.

    Parameters
    ----------
    nest : Nest
    rank : int
        How many axes are left where axes that can be are joined.
    kinds : sequence of {"flat", "one", "strided", "same"}
        How each input and output lies.
    wide : bool
        Whether integers have 64 bits.
    width : int
        The elements of a pack, along the last axis; lengths and steps of this are those of packs.
    """
    arrays = len(nest.stretched)
    plan = BodyPlan(nest, len(nest.bodies) - 1, nest.bodies[-1])
    by_steps = STRIDED in kinds or SAME in kinds
    numbers = ("n", *(f"n{axis}" for axis in range(1, rank))) if by_steps else ("n",)
    rows = tuple(f"step{axis}" for axis in range(rank)) if by_steps else ()
    body: list[Statement] = []
    if by_steps:
        body += unravel("i", [Var(f"n{axis}") for axis in range(rank)], "p")
    for array, writes in plan.pointers:
        if array >= arrays:
            name, table, place, offset, elements = f"a{array}", "literals", array - arrays, 0, 0
            body.append(Pointer(name, nest.dtypes[array], place, offset, elements, False, table))
        elif kinds[array] in (STRIDED, SAME):
            by = [IndexOp("*", (Var(f"p{x}"), Stride(array, x, f"step{x}"))) for x in range(rank)]
            body.append(Pointer(f"a{array}", nest.dtypes[array], array, total(by), 0, writes))
        else:
            at: Index = times(Var("i"), width) if kinds[array] == FLAT else 0
            body.append(Pointer(f"a{array}", nest.dtypes[array], array, 0, at, writes))
    body += _elements(plan) if width == 1 else _packs(plan, kinds, width)
    loop = Loop(Kind.THREAD, "i", 0, Var("n"), tuple(body))
    function = KernelFunction("elements", Signature(numbers, ("data", "literals"), rows), (loop,))
    return print_function(function, arrays, nest.temporaries - arrays, THREADS, wide)


def _elements(plan: BodyPlan) -> list[Statement]:
    """Compute the element that the pointers are at."""
    return [
        *(plan.load(v, array, 0) for v, array in (*plan.numbers, *plan.elements)),
        *(plan.step(value) for value in plan.steps),
        *(Store(f"a{array}", 0, plan.ref(value)) for value, array in plan.stores),
    ]


def _packs(plan: BodyPlan, kinds: Sequence[str], width: int) -> list[Statement]:
    """Compute the pack of elements that the pointers are at."""
    dtypes, u = plan.dtypes, Var("u")
    first: list[Statement] = []
    each: list[Statement] = []
    for value, array in (*plan.numbers, *plan.elements):
        if array < len(kinds) and kinds[array] in (FLAT, STRIDED):
            name = f"k{array}"
            first.append(Pack(name, dtypes[array], width, f"a{array}"))
            each.append(Let(f"v{value}", Load(f"{name}.at", u, dtypes[array])))
        else:
            first.append(plan.load(value, array, 0))
    each += [plan.step(value) for value in plan.steps]
    each += [Store(f"k{array}.at", u, plan.ref(value)) for value, array in plan.stores]
    written = [array for _, array in plan.stores]
    first += [Pack(f"k{array}", dtypes[array], width, None) for array in written]
    last = [WritePack(f"a{array}", f"k{array}") for array in written]
    return [*first, Loop(Kind.UNROLLED, "u", 0, width, tuple(each)), *last]


@cache
def elementwise(
    formula: Formula,
    patterns: tuple[Pattern, ...],
    rank: int,
    kinds: tuple[str, ...],
    wide: bool,
    width: int = 1,
) -> CudaKernel:
    """Return the kernel of the nest of a formula; see ``print_elementwise``."""
    nest = nest_of(formula, patterns)
    assert nest is not None
    return print_elementwise(nest, rank, kinds, wide, width)


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
