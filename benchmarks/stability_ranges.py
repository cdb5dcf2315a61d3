"""List the expressions of stability_relatives.py whose value, gradient or R-op is wrong, with the
units in the last place, the worst point, and the true value there, by arithmetic with 3000 digits;
and by how many units it changes where each argument changes by half a unit in its last place.

    python benchmarks/stability_ranges.py               all families (minutes, less with gmpy2)
    python benchmarks/stability_ranges.py '^limits'     families whose "family: expression" matches
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import stability
from stability_cases import Case
from stability_relatives import RELATIVES

import symcomp
import symcomp.tensor as T

DIGITS = 3000
# The steps of difference quotients, and of limits where an expression is 0 / 0.
STEP, LIMIT_STEP = mp.mpf(10) ** -700, mp.mpf(10) ** -900
# Exponentials of larger numbers do not fit into memory.
LARGEST_EXPONENT = mp.mpf(10) ** 400
OTHER_NAMES = {
    "arctan": "atan", "arcsinh": "asinh", "arcsin": "asin", "arctanh": "atanh", "abs": "fabs",
    "arctan2": "atan2",
}  # fmt: skip
PARTS = ("value", "gradient", "R-op")
# A point, the argument, and the element of the result.
Place = tuple[tuple[Any, ...], int, int]


def _exponential(x: Any) -> Any:
    if isinstance(x, mp.mpf) and abs(x) > LARGEST_EXPONENT:
        return mp.inf if x > 0 else mp.mpf(0)
    return mp.exp(x)


class Exact(stability.Exact):
    """The functions of the expressions, of numbers of mpmath."""

    max = staticmethod(lambda x: x.max())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        arity = 2 if name == "arctan2" else 1
        return np.frompyfunc(getattr(mp, OTHER_NAMES.get(name, name)), arity, 1)

    def abs(self, x: Any) -> Any:
        return np.frompyfunc(mp.fabs, 1, 1)(x)

    def exp(self, x: Any) -> Any:
        return np.frompyfunc(_exponential, 1, 1)(x)

    def expm1(self, x: Any) -> Any:
        return self.exp(x) - 1

    def log1p(self, x: Any) -> Any:
        return self.log(1 + x)


def _at(case: Case, arguments: Any) -> Any:
    """Evaluate the expression; where it is 0 / 0, its limit; NaN where there is none."""
    if case.elementwise and np.ndim(arguments[0]):
        return np.array([_at(case, point) for point in zip(*arguments, strict=True)], object)
    for shift in (0, LIMIT_STEP):
        try:
            return case.expression(Exact(), *(x + shift for x in arguments))
        except (ZeroDivisionError, ValueError):
            continue
    return mp.nan


def truth(case: Case, point: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Compute the value, and for each argument its derivatives, as ``stability.truth`` does."""
    with mp.workdps(DIGITS):
        arguments = [stability.exact(x) for x in point]
        slopes = []
        for i, x in enumerate(point):
            ways = [np.ones(x.shape)] if case.elementwise else stability.unit_vectors(x.shape)
            columns = []
            for way in ways:
                step = STEP * stability.exact(way)
                ahead, behind = (
                    _at(case, [y + s * step if j == i else y for j, y in enumerate(arguments)])
                    for s in (1, -1)
                )
                columns.append(np.ravel(np.asarray((ahead - behind) / (2 * STEP), object)))
            slopes.append(columns[0] if case.elementwise else np.stack(columns, axis=-1))
        return {"value": [_at(case, arguments)], "gradient": slopes, "R-op": slopes}


def worst_of(case: Case) -> dict[str, tuple[float, str, Place | None]]:
    """For each part the units in the last place, and where that is."""
    worst: dict[str, tuple[float, str, Place | None]] = dict.fromkeys(PARTS, (0.0, "", None))
    system = _system(case)
    for point in case.points:
        true = truth(case, point)
        for part in PARTS:
            with np.errstate(all="ignore"):
                got = system[part](point)
            for i, (z, t) in enumerate(zip(got, true[part], strict=True)):
                units = [
                    stability.off([a], [b]) for a, b in zip(np.ravel(z), np.ravel(t), strict=True)
                ]
                k = int(np.argmax(units))
                if units[k] > worst[part][0]:
                    place = [float(x[k]) for x in point] if case.elementwise else list(point)
                    right = mp.nstr(np.ravel(t)[k], 17)
                    where = f"argument {i} at {place}: {np.ravel(z)[k]!r} where {right} is right"
                    at = tuple(x[k : k + 1] for x in point) if case.elementwise else point
                    worst[part] = units[k], where, (at, i, 0 if case.elementwise else k)
    return worst


def change_by_rounding(case: Case, part: str, place: Place) -> float:
    """Return how many units in the last place a result changes, at most, where each element of the
    arguments changes by half a unit.
    """
    point, i, k = place

    def result(arguments: Any) -> Any:
        return np.ravel(truth(case, arguments)[part][i])[k]

    with mp.workdps(DIGITS):
        exact = [stability.exact(x) for x in point]
        here, change = result(exact), mp.mpf(0)
        for a, x in enumerate(exact):
            for j in np.ndindex(x.shape):
                moved = [y.copy() for y in exact]
                moved[a][j] += np.spacing(abs(float(x[j]))) / 2
                change += abs(result(moved) - here)
        return float(change / np.spacing(abs(float(here))))


def _system(case: Case) -> dict[str, Callable[[Any], list[Any]]]:
    kinds = {1: T.dvector, 2: T.dmatrix}
    xs = [kinds[np.ndim(x)](f"x{i}") for i, x in enumerate(case.points[0])]
    z = case.expression(T, *xs)

    def function(inputs: Any, outputs: Any) -> Any:
        return symcomp.function(inputs, outputs, on_unused_input="ignore")

    def gradient(cost: Any, wrt: Any) -> Any:
        return symcomp.grad(cost, wrt, disconnected_inputs="ignore")

    def forward(y: Any, x: Any, way: Any) -> Any:
        return symcomp.gradient.Rop(y, x, way, disconnected_outputs="ignore")

    kinds[0] = T.dscalar
    return {
        "value": stability._value(case, xs, z, kinds, function),
        "gradient": stability._gradient(case, xs, z, kinds, function, gradient, None),
        "R-op": stability._r_op(case, xs, z, kinds, function, None, forward),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression")
    arguments = parser.parse_args()
    chosen = [c for c in RELATIVES if re.search(arguments.pattern, f"{c.group}: {c.name}")]
    count, right = Counter[str](), Counter[str]()
    for case in chosen:
        worst = worst_of(case)
        count[case.group] += 1
        off = {part: found for part, found in worst.items() if found[0] > stability.WITHIN}
        right[case.group] += not off
        for part, (units, where, place) in off.items():
            change = change_by_rounding(case, part, place) if place is not None else 0.0
            print(
                f"{case.group}: {case.name}, {part}: {units:.3g} ulp (rounded arguments: "
                f"{change:.3g}), {where}", flush=True,
            )  # fmt: skip
    for family in count:
        print(f"{family}: {right[family]} of {count[family]} within {stability.WITHIN:g} ulp")


if __name__ == "__main__":
    main()
