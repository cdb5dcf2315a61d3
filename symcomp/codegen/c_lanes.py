"""Passes in C over elements next to each other, whose totals stay in registers: there are as many
lanes as fit, and rows of some elements for each. So there is one comparison for two that tells
whether one is NaN, and one wait for all that are added up before they are added to the lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symcomp.codegen.c_folds import Fold, parts_of_one
from symcomp.codegen.c_loops import LANE_ARGUMENTS, indented, loop, of_row, portions
from symcomp.core.record import record

# Sums are in parts of so many rows, whose rounding errors grow, before these are added up.
PART = 16


@record
class Pass:
    """The lines of a body that reduces.

    Attributes
    ----------
    folds : tuple of Fold
    before : tuple of str
        What comes before the loop over elements: pointers, and numbers that are the same for all.
    inside : tuple of str
        What is computed for each element.
    stores : tuple of str
        What is written.
    moving : frozenset of int
        The arrays that have an element for each that is reduced.
    read : frozenset of int
        Those of them that are read.
    ways : int
        How many elements of a row each lane has.
    """

    folds: tuple[Fold, ...]
    before: tuple[str, ...]
    inside: tuple[str, ...]
    stores: tuple[str, ...]
    moving: frozenset[int]
    read: frozenset[int]
    ways: int


def folded(
    folds: Sequence[Fold],
    inside: Sequence[str],
    stores: Sequence[str],
    endings: Sequence[str],
    settled: bool = False,
) -> list[str]:
    """What a loop does with several elements at once, whose variables have these ``endings``."""
    lines = [of_row(line, ending) for ending in endings for line in inside]
    for fold in folds:
        lines += fold.fold([fold.element(ending) for ending in endings], settled)
    return lines + [of_row(line, ending) for ending in endings for line in stores]


def function_of_lanes(number: int, total: int, given: Pass) -> list[str]:
    """The function of body ``number``, from the beginning of totals to results; there are ``total``
    arrays.
    """
    folds = given.folds
    sums = [fold for fold in folds if fold.has_error]
    others = [fold for fold in folds if not fold.has_error]
    # Errors of sums grow with the rows of a part, and then with the number of parts.
    begin = [line for fold in sums for line in fold.start()]
    join = [line for fold in sums for line in fold.join()]
    part = _deep(2, (*begin, *_rows(given), *join))
    first = [line for fold in folds for line in fold.totals()]
    first += [line for fold in others for line in fold.start()]
    first += [line for fold in sums for line in fold.start("q")]
    parts = [*((fold, "p") for fold in others), *((fold, "q") for fold in sums)]
    compared = given.ways > 1 and any(fold.compares for fold in folds)
    once = "READ_ONCE " if compared else ""
    return [
        f"{once}static void NAME_lanes{number}{LANE_ARGUMENTS}",
        "{",
        f"    enum {{ n = {parts_of_one(folds, given.ways) // given.ways}, total = {total} }};",
        "    char *data[total];",
        "    memcpy(data, given, sizeof data);",
        "    while (count--) {",
        *_deep(2, first),
        *_deep(1, portions(PART if sums else 0, part)),
        "        if (rest) {",
        *_deep(3, (*begin, *_rest(given), *join)),
        "        }",
        "        if (added) {",
        *_deep(3, (line for fold, array in parts for line in fold.settle(array))),
        "        } else {",
        *_deep(3, (line for fold, array in parts for line in fold.keep(array))),
        f"            NAME_finish{number // 2}(n, 1, data);",
        f"            NAME_{number + 1}(1, 1, data, next);",
        "        }",
        "        for (int a = 0; a < total; a++)",
        "            data[a] += next[a];",
        "    }",
        "}",
        "",
    ]


def _rows(given: Pass) -> list[str]:
    """The whole rows of a part."""
    endings = [f"_{way}" for way in range(given.ways)]
    starts = [line for i, way in enumerate(endings) for line in _starts(given, way, f"{i} * n")]
    inside = folded(given.folds, given.inside, given.stores, endings)
    return ["for (; r < end; r++) {", *_deep(1, (*starts, *loop(inside))), "}"]


def _rest(given: Pass) -> list[str]:
    """What is left over after the last whole row, an element for each lane at a time; the last time
    for some of the lanes.
    """
    folds = given.folds
    starts = [line.replace("r * step", "rows * step") for line in _starts(given, "", "first")]
    lines = ["int64_t first = 0;"]
    if given.ways > 1:
        whole = loop(folded(folds, given.inside, given.stores, [""]))
        lines += ["for (; first + n <= rest; first += n) {", *_deep(1, (*starts, *whole)), "}"]
    inside = [fold.missing() for fold in folds]
    there = (*given.inside, *(fold.there() for fold in folds), *given.stores)
    inside += ["if (first + i < rest) {", *_deep(1, there), "}"]
    for fold in folds:
        inside += fold.fold([fold.maybe()])
    return [*lines, "if (first < rest) {", *_deep(1, (*starts, *loop(inside))), "}"]


def _starts(given: Pass, ending: str, offset: str) -> list[str]:
    """What comes before the loop, for elements ``offset`` from the first of a row; memory is asked
    for early.
    """
    lines = []
    for line in given.before:
        text = of_row(line, ending)
        moves = any(f" *a{a}{ending} = " in text for a in given.moving)
        lines.append(f"{text[:-1]} + {offset};" if moves else text)
    for a in sorted(given.read):
        size = f"n * (int64_t)sizeof *a{a}{ending}"
        lines.append(f"ask_for((const char *)a{a}{ending} + AHEAD, {size});")
    return lines


def _deep(depth: int, lines: Iterable[str]) -> list[str]:
    return [indented(line, depth) for line in lines]
