"""The report as a page: each program as a graph coloured by time, and the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from symcomp.drawing.graph import DrawnEdge, DrawnGraph, DrawnNode, Measure
from symcomp.drawing.page import Table, as_html
from symcomp.profiling.profiled import Data, Profiled
from symcomp.profiling.report import op_name
from symcomp.profiling.text import duration, shapes, shortened, size
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program

# The most instructions that are drawn: the slowest ones.
MOST_DRAWN = 1500
MEASURES = (
    Measure("time", duration),
    Measure("time of a run", duration),
    Measure("runs", "{:.0f}".format),
    Measure("GB/s", "{:.3g}".format),
    Measure("GFLOP/s", "{:.3g}".format),
    Measure("part of the machine's limits", "{:.0%}".format),
    Measure("runs in Python", "{:.0f}".format),
)


def as_page(data: Data, functions: Sequence[Profiled]) -> str:
    """Return the page of the report ``data`` on ``functions``."""
    graphs: list[DrawnGraph] = []
    tables: list[Table] = []
    titles: set[str] = set()
    for function, known in zip(functions, data["functions"], strict=True):
        title = _unused(function.name, titles)
        graphs += _graphs(title, function.tally, known, titles)
        tables.append(_instructions(title, known["instructions"], function.program))
    tables += [_groups("Classes", data["classes"]), _groups("Ops", data["ops"])]
    tables += [_stages(f) for f in data["functions"] if f["compile"] is not None]
    tables += [_device_work(f) for f in data["functions"] if f["device_work"]]
    tables += [_memory(f) for f in data["functions"]]
    if data["notes"]:
        tables.append(Table("Notes", ["note"], [[note] for note in data["notes"]]))
    return as_html(f"Profile of {data['title']}", graphs, tables, _facts(data))


def _unused(title: str, titles: set[str]) -> str:
    """Return the title, with a number appended if it is taken."""
    found, k = title, 1
    while found in titles:
        k += 1
        found = f"{title} ({k})"
    titles.add(found)
    return found


def _facts(data: Data) -> list[tuple[str, str]]:
    calls = sum(f["calls"] for f in data["functions"])
    seconds = sum(f["call_seconds"] for f in data["functions"])
    inside = sum(f["instruction_seconds"] for f in data["functions"])
    limits = data["limits"]
    return [
        ("calls", str(calls)),
        ("in all", duration(seconds)),
        ("in instructions", duration(inside)),
        ("GB/s copying memory", f"{limits['memory'] * 1e-9:.3g}"),
        ("GFLOP/s of float64", f"{limits['float64'] * 1e-9:.3g}"),
        ("GFLOP/s of float32 at most, as measured", f"{limits['float32'] * 1e-9:.3g}"),
    ]


# -- graphs


def _graphs(title: str, tally: Any, known: Data, titles: set[str]) -> list[DrawnGraph]:
    """Return the graph of a program, and those of the programs that it runs."""
    inner_titles: dict[int, str] = {}
    inner_graphs: list[DrawnGraph] = []
    inner = sorted(tally.inner.items(), key=lambda item: item[0][0])
    for ((position, _), (_, tally_inside)), inside in zip(inner, known["programs"], strict=True):
        name = _unused(f"{title}, {position}: {shortened(inside['op'], 40)}", titles)
        inner_titles[position] = name
        inner_graphs += _graphs(name, tally_inside, inside, titles)
    return [_graph(title, tally.program, known["instructions"], inner_titles), *inner_graphs]


def _graph(
    title: str, program: Program, rows: Sequence[Data], inner_titles: dict[int, str]
) -> DrawnGraph:
    """Return the graph of the instructions that compute, and their operands."""
    by_position = {row["position"]: row for row in rows}
    total = sum(row["seconds"] for row in rows) or 1.0
    drawn = _drawn(program, by_position)
    makers = _makers(program, drawn)
    nodes: dict[str, DrawnNode] = {}
    edges: list[DrawnEdge] = []
    for position in drawn:
        step = program.instructions[position]
        nodes[str(position)] = _node(
            position, step, by_position.get(position), total, inner_titles.get(position, "")
        )
        for slot in step.inputs:
            for source in makers.get(slot, ()):
                edges.append(DrawnEdge(source, str(position), _value(program, slot)))
            if slot not in makers and slot in _given(program):
                given = _source(program, slot)
                nodes[given.id] = given
                edges.append(DrawnEdge(given.id, str(position), _value(program, slot)))
    edges += _choices(program, drawn)
    for k, slot in enumerate(program.outputs):
        for source in makers.get(slot, ()):
            nodes[f"output {k}"] = DrawnNode(
                f"output {k}", f"output {k}", "output", {}, [("value", _value(program, slot))]
            )
            edges.append(DrawnEdge(source, f"output {k}", _value(program, slot)))
    return DrawnGraph(title, [*nodes.values()], edges, MEASURES)


def _drawn(program: Program, rows: dict[int, Data]) -> list[int]:
    """Return the instructions that are drawn, in their order."""
    shown = [
        i
        for i, step in enumerate(program.instructions)
        if step.opcode not in (Opcode.JUMP, Opcode.FREE, Opcode.SKIP_IF_SET)
    ]
    if len(shown) <= MOST_DRAWN:
        return shown
    slowest = sorted(shown, key=lambda i: -rows[i]["seconds"] if i in rows else 0.0)
    return sorted(slowest[:MOST_DRAWN])


def _makers(program: Program, drawn: Iterable[int]) -> dict[int, list[str]]:
    """Return, for each slot, the nodes that set it: several if branches meet."""
    found: dict[int, list[str]] = {}
    for position in drawn:
        for slot in program.instructions[position].outputs:
            found.setdefault(slot, []).append(str(position))
    return found


def _choices(program: Program, drawn: Sequence[int]) -> Iterator[DrawnEdge]:
    """Yield edges from conditions to the values that they choose."""
    code = program.instructions
    moves = [i for i in drawn if code[i].opcode is Opcode.MOVE]
    for position in drawn:
        step = code[position]
        if step.opcode is Opcode.BRANCH and step.node is not None:
            for i in moves:
                if program.variables[code[i].outputs[0]] is step.node.outputs[0]:
                    yield DrawnEdge(str(position), str(i), "if" if i < step.target else "else")


def _given(program: Program) -> set[int]:
    """Return the slots that no instruction sets."""
    return {*program.inputs, *program.constants}


def _source(program: Program, slot: int) -> DrawnNode:
    """Return the node of an input or a constant."""
    variable = program.variables[slot]
    kind = "constant" if slot in program.constants else "input"
    label = shortened(str(variable), 34) + f"\n{variable.type}"
    details = [("slot", f"s{slot}"), ("type", str(variable.type))]
    return DrawnNode(f"s{slot}", label, kind, {}, details)


def _value(program: Program, slot: int) -> str:
    variable = program.variables[slot]
    return f"s{slot}: {shortened(str(variable), 60)} ({variable.type})"


def _node(
    position: int, step: Instruction, row: Data | None, total: float, opens: str
) -> DrawnNode:
    name = _label(step)
    if row is None:
        details = [("instruction", f"{position}: {step.line()}"), ("runs", "0")]
        return DrawnNode(str(position), f"{name}\nnever ran", "op", {}, details, opens)
    share = f"{100 * row['seconds'] / total:.1f} %  {duration(row['seconds'])}"
    return DrawnNode(
        str(position), f"{name}\n{share}", "op", _values(row), _details(row, share), opens
    )


def _label(step: Instruction) -> str:
    name = {Opcode.BRANCH: "if", Opcode.MOVE: "branch"}.get(step.opcode)
    return name or shortened(op_name(step), 34)


def _values(row: Data) -> dict[str, float]:
    each = row["seconds"] / max(row["count"], 1)
    found = {
        "time": row["seconds"],
        "time of a run": each,
        "runs": float(row["count"]),
        "runs in Python": float(row["in_python"]),
    }
    if row["variants"]:
        first = row["variants"][0]
        for name, key in (("GB/s", "bytes_per_second"), ("GFLOP/s", "operations_per_second")):
            if first[key] is not None:
                found[name] = first[key] * 1e-9
        if first["of_limit"] is not None:
            found["part of the machine's limits"] = first["of_limit"]
    return found


def _details(row: Data, share: str) -> list[tuple[str, str]]:
    each = row["seconds"] / max(row["count"], 1)
    found = [
        ("instruction", f"{row['position']}: {row['text']}"),
        ("time", share),
        ("runs", f"{row['count']}, {duration(each)} each"),
        ("done by", row["ran_in"]),
    ]
    if row["in_python"]:
        found.append(("runs in Python", str(row["in_python"])))
    if row["unoptimized"]:
        found.append(("runs of code not optimized yet", str(row["unoptimized"])))
    if row["straight"]:
        found.append(("by now", "part of straight code"))
    for variant in row["variants"]:
        text = f"{shapes(variant['inputs'])} -> {shapes(variant['outputs'])}"
        text += f"\n{variant['timed']} times timed, {duration(variant['seconds_each'])} each"
        if variant["bytes"]:
            text += f"\n{size(variant['bytes'])}"
        if variant["bytes_per_second"] is not None:
            text += f", {variant['bytes_per_second'] * 1e-9:.3g} GB/s"
        if variant["operations_per_second"] is not None:
            text += f", {variant['operations_per_second'] * 1e-9:.3g} GFLOP/s"
        if variant["of_limit"] is not None:
            text += f"\n{variant['of_limit']:.0%} of the machine's limits"
        found.append(("shapes", text))
    if row["source"] is not None:
        found.append(("made at", row["source"]))
    return found


# -- tables


def _instructions(title: str, rows: Sequence[Data], program: Program) -> Table:
    total = sum(row["seconds"] for row in rows) or 1.0
    drawn = {*_drawn(program, {row["position"]: row for row in rows})}
    ranked = [row for row in rows if row["position"] in drawn]
    ranked.sort(key=lambda row: -row["seconds"])
    columns = ["%", "time", "runs", "each", "GB/s", "GFLOP/s", "done by", "instruction"]
    cells = []
    for row in ranked:
        values = _values(row)
        rates = [f"{values[k]:.3g}" if k in values else "" for k in ("GB/s", "GFLOP/s")]
        cells.append(
            [
                f"{100 * row['seconds'] / total:.1f}",
                duration(row["seconds"]),
                str(row["count"]),
                duration(values["time of a run"]),
                *rates,
                row["ran_in"],
                f"{row['position']}: {shortened(row['text'], 160)}",
            ]
        )
    nodes = [(title, str(row["position"])) for row in ranked]
    return Table(f"Instructions of {title}", columns, cells, nodes)


def _groups(title: str, groups: Sequence[Data]) -> Table:
    total = sum(group["seconds"] for group in groups) or 1.0
    cells = [
        [
            f"{100 * group['seconds'] / total:.1f}",
            duration(group["seconds"]),
            str(group["count"]),
            str(group["instructions"]),
            "/".join(group["ran_in"]),
            shortened(group["name"], 160),
        ]
        for group in groups
    ]
    return Table(title, ["%", "time", "runs", "instructions", "done by", "name"], cells)


def _stages(function: Data) -> Table:
    def walk(stage: Data, depth: int) -> Iterator[list[str]]:
        yield [duration(stage["seconds"]), "\u2003" * depth + stage["name"] + _note(stage)]
        for part in stage["stages"]:
            yield from walk(part, depth + 1)

    return Table(
        f"Compiling {function['name']}", ["time", "stage"], [*walk(function["compile"], 0)]
    )


def _note(stage: Data) -> str:
    return f" ({stage['note']})" if stage["note"] else ""


def _device_work(function: Data) -> Table:
    cells = [
        [
            duration(row["seconds"]),
            str(row["count"]),
            size(row["bytes"]),
            row["kind"],
            row["device"],
            shortened(row["label"], 160),
        ]
        for row in function["device_work"]
    ]
    heads = ["time", "runs", "bytes", "kind", "device", "what"]
    return Table(f"Work on devices of {function['name']}", heads, cells)


def _memory(function: Data) -> Table:
    memory = function["memory"]
    cells = [
        [size(memory["inputs"]), "arguments, shared variables, constants"],
        [size(memory["results"]), "results"],
        [size(memory["unplanned"]), "internal values, each in its own array"],
        [size(memory["planned"]), "internal values, as planned"],
        [size(memory["unplanned_peak"]), "peak without a plan"],
        [size(memory["peak"]), "peak as planned"],
    ]
    for v in sorted(memory["values"], key=lambda v: -v["bytes"])[:20]:
        if v["bytes"]:
            shape = "x".join(map(str, v["shape"])) or "scalar"
            text = f"s{v['slot']} {v['name']}: {v['dtype']} {shape}, {v['born']} to {v['dies']}"
            cells.append([size(v["bytes"]), text])
    return Table(f"Memory of {function['name']}", ["bytes", "what"], cells)
