"""Print the report as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from symcomp.profiling.profiled import Data

# Longer texts are cut off.
LONGEST = 100
RULE = "-" * 78


def as_text(data: Data, n: int = 20) -> str:
    """Return the report of one or more functions as text, with the ``n`` first rows of each table.
    """
    lines = [f"Profile of {data['title']}", "=" * 78]
    for function in data["functions"]:
        lines += _calls(function, several=len(data["functions"]) > 1)
    if len(data["functions"]) > 1:
        seconds = sum(f["call_seconds"] for f in data["functions"])
        calls = sum(f["calls"] for f in data["functions"])
        lines += ["", f"All functions: {calls} calls, {duration(seconds)} in all"]
    lines += _table("Classes", data["classes"], n)
    lines += _table("Ops", data["ops"], n)
    for function in data["functions"]:
        name = f" of {function['name']}" if len(data["functions"]) > 1 else ""
        if function["instructions"]:
            lines += _instructions(f"Instructions{name}", function["instructions"], n)
        lines += _programs(function["programs"], n)
        if function["device_work"]:
            lines += _device_work(f"Work on devices{name}", function["device_work"], n)
        if function["memory"] is not None:
            lines += _memory(function["memory"], name)
    lines += _limits(data["limits"])
    if data["notes"]:
        lines += ["", "Notes", RULE, *(f"  * {note}" for note in data["notes"])]
    return "\n".join(lines) + "\n"


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.3g} ns"


def size(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} bytes"


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return the text, shortened in the middle if it is long."""
    if len(text) <= longest:
        return text
    head = (longest - 3) * 2 // 3
    return f"{text[:head]}...{text[len(text) - (longest - 3 - head) :]}"


# Why a run makes a plan.
REASONS = {
    "new_layouts": "for shapes, strides or dtypes without a plan",
    "new_outcome": "behind a branch, a length or an index that no plan had met",
    "call_declined": "for values that a native call does not take",
}


def _plans(plans: Data, what: str = "runs") -> list[str]:
    """Return how many calls, or steps, ran a kept plan, and why others did not."""
    lines = [f"  {plans['kept']} of {plans['runs']} {what} repeated a kept plan"]
    lines += [f"    {plans[key]} planned {why}" for key, why in REASONS.items() if plans[key]]
    if plans["not_kept"]:
        lines.append(
            f"    {plans['not_kept']} plans were not kept, as calls in a row had different layouts"
        )
    return lines


def _calls(function: Data, several: bool) -> list[str]:
    lines = ["", function["name"]] if several else []
    calls, total = function["calls"], function["call_seconds"]
    inside, each = function["instruction_seconds"], total / max(calls, 1)
    lines.append(f"  {calls} calls, {duration(total)} in all, {duration(each)} each")
    if total:
        share = min(100.0, 100 * inside / total)
        lines.append(
            f"  {duration(inside)} in instructions ({share:.1f} %), the rest for arguments and "
            "updates, and between instructions"
        )
    if function["timed_calls"] < calls:
        lines.append(
            f"  the instructions of {function['timed_calls']} calls were timed; counts are of all, "
            "and times are scaled to all"
        )
    if function["plans"] is not None:
        lines += _plans(function["plans"])
    if function["compile"] is not None:
        lines += ["", "Compiling", RULE, *_stages(function["compile"], 0)]
    return lines


def _stages(stage: Data, depth: int) -> list[str]:
    note = f"  ({stage['note']})" if stage["note"] else ""
    lines = [f"  {duration(stage['seconds']):>9}  {'  ' * depth}{stage['name']}{note}"]
    for part in stage["stages"]:
        lines += _stages(part, depth + 1)
    return lines


def _table(title: str, groups: Sequence[Data], n: int) -> list[str]:
    lines = ["", title, RULE, "      %    cum      time     calls      each   rows  ran in  name"]
    total = sum(group["seconds"] for group in groups) or 1.0
    so_far = 0.0
    for group in groups[:n]:
        so_far += group["seconds"]
        lines.append(
            f"  {100 * group['seconds'] / total:5.1f}  {100 * so_far / total:5.1f}  "
            f"{duration(group['seconds']):>8}  {group['count']:>8}  "
            f"{duration(group['seconds'] / max(group['count'], 1)):>8}  "
            f"{group['instructions']:>5}  {_ran_in(group):<6}  {shortened(group['name'])}"
        )
    return lines + _rest(groups[n:], total)


def _rest(groups: Sequence[Data], total: float) -> list[str]:
    if not groups:
        return []
    seconds = sum(group["seconds"] for group in groups)
    return [f"  {100 * seconds / total:5.1f}         {duration(seconds):>8}  {len(groups)} more"]


def _ran_in(row: Data) -> str:
    """Return what ran an instruction, how often Python had to, how often it was not optimized yet,
    and whether it is part of straight code by now.
    """
    places = row["ran_in"]
    text = "/".join([places] if isinstance(places, str) else places)
    if row["straight"]:
        text += " (straight)"
    if row["in_python"] and text not in ("Python", "program"):
        text += f" (Python {row['in_python']} of {row['count']})"
    if row["unoptimized"]:
        text += f" (not optimized {row['unoptimized']} of {row['count']})"
    return text


def _instructions(title: str, rows: Sequence[Data], n: int, indent: str = "") -> list[str]:
    lines = ["", f"{indent}{title}", indent + RULE]
    lines.append(
        f"{indent}      %      time     calls      each    GB/s  GFLOP/s  limit  ran in  what"
    )
    total = sum(row["seconds"] for row in rows) or 1.0
    ranked = sorted(rows, key=lambda row: -row["seconds"])
    for row in ranked[:n]:
        first = row["variants"][0] if row["variants"] else None
        lines.append(
            f"{indent}  {100 * row['seconds'] / total:5.1f}  {duration(row['seconds']):>8}  "
            f"{row['count']:>8}  {duration(row['seconds'] / max(row['count'], 1)):>8}  "
            f"{_rate(first, 'bytes_per_second'):>6}  {_rate(first, 'operations_per_second'):>7}  "
            f"{_share(first):>5}  "
            f"{_ran_in(row):<6}  {row['position']}: {shortened(row['text'])}"
        )
        lines += [f"{indent}          {line}" for line in _details(row)]
    return lines + [indent + line for line in _rest(ranked[n:], total)]


def _share(variant: Data | None) -> str:
    """Return how near to the machine's limits a run is."""
    if variant is None or variant["of_limit"] is None:
        return "-"
    return f"{100 * variant['of_limit']:.0f} %"


def _rate(variant: Data | None, name: str) -> str:
    if variant is None or variant[name] is None:
        return "-"
    return f"{variant[name] * 1e-9:.3g}"


def _details(row: Data) -> Iterable[str]:
    """Yield shapes, and the user's line."""
    several = len(row["variants"]) > 1
    for variant in row["variants"]:
        text = f"{shapes(variant['inputs'])} -> {shapes(variant['outputs'])}"
        if several:
            text += f"   {variant['timed']} times timed, {duration(variant['seconds_each'])} each"
        yield text
    if row["source"] is not None:
        yield f"at {row['source']}"


def shapes(known: Any) -> str:
    """Return shapes as text."""
    if known is None:
        return "other shapes"
    return ", ".join("-" if s is None else "x".join(map(str, s)) or "scalar" for s in known)


def _programs(found: Sequence[Data], n: int) -> list[str]:
    lines: list[str] = []
    for loop in found:
        steps = loop["steps"]
        lines += ["", f"{loop['op']}, instruction {loop['position']}", RULE]
        if loop["source"] is not None:
            lines.append(f"  at {loop['source']}")
        lines += [
            f"  {loop['calls']} calls, {steps} steps, {duration(loop['seconds'])} in all, "
            f"{duration(loop['seconds'] / max(steps, 1))} a step",
            f"  {100 * loop['bookkeeping']:.1f} % between instructions (rows, carried values, "
            "memory)",
            f"  {loop['without_python']} steps were done without Python",
        ]
        if loop["plans"] is not None:
            lines += _plans(loop["plans"], "steps")
        if loop["called_by_python"] is not None:
            lines.append(f"  Python called each step: {loop['called_by_python']}")
        lines += _instructions("Instructions of a step", loop["instructions"], n, "  ")
        lines += _programs(loop["programs"], n)
    return lines


def _device_work(title: str, rows: Sequence[Data], n: int) -> list[str]:
    lines = ["", f"{title}, timed there", RULE]
    lines.append("      %      time     count      each    GB/s  kind       what")
    total = sum(row["seconds"] for row in rows) or 1.0
    for row in rows[:n]:
        rate = f"{row['bytes'] / row['seconds'] * 1e-9:.3g}" if row["seconds"] else "-"
        lines.append(
            f"  {100 * row['seconds'] / total:5.1f}  {duration(row['seconds']):>8}  "
            f"{row['count']:>8}  {duration(row['seconds'] / row['count']):>8}  {rate:>6}  "
            f"{row['kind']:<9}  {shortened(row['label'] or size(row['bytes']))} on {row['device']}"
        )
    lines += _rest(rows[n:], total)
    for kind, what in (("to device", "to devices"), ("to host", "to the host")):
        moved = [row for row in rows if row["kind"] == kind]
        if moved:
            nbytes, count = (sum(row[key] for row in moved) for key in ("bytes", "count"))
            lines.append(f"  {size(nbytes):>12}  copied {what}, in {count} copies")
    return lines


def _memory(memory: Data, name: str) -> list[str]:
    lines = ["", f"Memory{name}, for the shapes seen most", RULE]
    for title, key in (
        ("arguments, shared variables, constants", "inputs"),
        ("results", "results"),
        ("internal, each value in its own array", "unplanned"),
        ("internal, as planned", "planned"),
        ("peak without a plan", "unplanned_peak"),
        ("peak as planned", "peak"),
    ):
        lines.append(f"  {size(memory[key]):>12}  {title}")
    largest = sorted(memory["values"], key=lambda v: -v["bytes"])[:5]
    for value in (v for v in largest if v["bytes"]):
        shape = "x".join(map(str, value["shape"])) or "scalar"
        lines.append(
            f"  {size(value['bytes']):>12}  s{value['slot']} {value['name']}: {value['dtype']} "
            f"{shape}, instructions {value['born']} to {value['dies']}"
        )
    return lines


def _limits(found: Data) -> list[str]:
    return [
        "",
        "This machine's limits, measured; the column limit says how much of them is reached",
        RULE,
        f"  {found['memory'] * 1e-9:8.3g} GB/s copying memory, {found['cache'] * 1e-9:.3g} GB/s "
        "copying what is in the cache",
        f"  {found['float64'] * 1e-9:8.3g} GFLOP/s multiplying matrices of float64, "
        f"{found['float32'] * 1e-9:.3g} of float32",
    ]
