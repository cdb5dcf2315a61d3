"""Remarks of a report: where time could be saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symcomp.config import config
from symcomp.profiling.profiled import Data
from symcomp.profiling.text import duration, shortened

# A smaller share of the time gets no remark.
WORTH = 0.02


def notes(functions: Sequence[Data]) -> list[str]:
    """Return remarks on functions, the most important first."""
    rows = [row for f in functions for row in f["instructions"]]
    rows += [row for f in functions for p in _programs(f["programs"]) for row in p["instructions"]]
    found = [*_in_python(functions), *_refused(rows), *_called_by_python(functions)]
    found += [*_small_dtypes(functions), *_overhead(functions)]
    return found


def _in_python(functions: Sequence[Data]) -> Iterable[str]:
    """Remark on instructions that Python computes."""
    for function in functions:
        total = function["instruction_seconds"]
        rows = [row for row in function["instructions"] if row["ran_in"] == "Python"]
        seconds = sum(row["seconds"] for row in rows)
        if not total or seconds < WORTH * total:
            continue
        largest = max(rows, key=lambda row: row["seconds"])
        reason = "" if config.kernels else " (config.kernels is off)"
        yield (
            f"{function['name']}: {100 * seconds / total:.0f} % of the time in instructions "
            f"({duration(seconds)}) is Python's{reason}, most of it in "
            f"{shortened(largest['op'], 60)}"
        )


def _refused(rows: Iterable[Data]) -> Iterable[str]:
    """Remark on instructions whose native code refuses these values."""
    for row in rows:
        native = row["ran_in"] not in ("Python", "program") and row["class"] != "claim"
        if row["in_python"] and native:
            yield (
                f"instruction {row['position']}, {shortened(row['op'], 60)}: in "
                f"{row['in_python']} of {row['count']} runs the {row['ran_in']} did not take its "
                "values (another layout, an empty axis, a position outside), and Python did it"
            )


def _called_by_python(functions: Iterable[Data]) -> Iterable[str]:
    """Remark on loops and graphs whose steps Python calls one by one."""
    for function in functions:
        for program in _programs(function["programs"]):
            if program["called_by_python"] is not None and program["steps"]:
                yield (
                    f"instruction {program['position']}, {shortened(program['op'], 60)}: Python "
                    f"called {program['steps']} steps one by one, as {program['called_by_python']}"
                )


def _programs(found: Iterable[Data]) -> Iterable[Data]:
    for program in found:
        yield program
        yield from _programs(program["programs"])


def _small_dtypes(functions: Sequence[Data]) -> Iterable[str]:
    """Remark on values of float64 where floatX is smaller."""
    if config.floatX == "float64":
        return
    for function in functions:
        values = [v for v in function["memory"]["values"] if v["dtype"] == "float64" and v["bytes"]]
        if values:
            yield (
                f"{function['name']}: {len(values)} values are float64 while config.floatX is "
                f"{config.floatX}; config.warn_float64 says where they come from"
            )


def _overhead(functions: Sequence[Data]) -> Iterable[str]:
    """Remark on calls that compute little."""
    for function in functions:
        seconds, inside = function["call_seconds"], function["instruction_seconds"]
        if function["calls"] > 100 and seconds and inside < 0.5 * seconds:
            each = seconds / function["calls"]
            yield (
                f"{function['name']}: {100 - 100 * inside / seconds:.0f} % of a call "
                f"({duration(each)}) is no instruction: trust_input=True leaves out the checks of "
                "arguments, f.fn(n_calls=n) the calls from Python"
            )
