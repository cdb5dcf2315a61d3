"""Turn counts into a report: plain data, from which text and pages are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Variable
from symcomp.core.spans import Span
from symcomp.core.tensor import TensorType
from symcomp.profiling.devices import device_data
from symcomp.profiling.limits import limits
from symcomp.profiling.profiled import Data, Profiled
from symcomp.profiling.work import bytes_moved, operations
from symcomp.vm.memory import measure, report
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction
from symcomp.vm.tally import Counted, Tally, Variant

# The module of the op of loops.
LOOPS = "symcomp.scan.op"
# Larger operands are read from memory, not from the cache.
LARGE_WORK = 4 * 2**20
# The word for each kind of native call; all others are "C".
RAN_IN = {
    "kernel": "kernel",
    "product": "BLAS",
    "decompose": "LAPACK",
    "view": "view",
    "transpose": "view",
    "reshape": "view",
    "split": "view",
    "diagonal": "view",
    "part on device": "view",
    "length on device": "view",
    "matrix on device": "view",
    "share": "view",
    "region": "device",
    "to device": "device",
    "to host": "device",
    "python": "Python",
}


def function_data(profiled: Profiled) -> Data:
    """Return all data of one function."""
    instructions = rows(profiled.tally)
    return {
        "name": profiled.name,
        "calls": profiled.calls.count,
        "timed_calls": profiled.calls.timed,
        "call_seconds": profiled.calls.seconds,
        "instruction_seconds": sum(row["seconds"] for row in instructions),
        "plans": getattr(getattr(profiled.tally, "machine", None), "planning", None),
        "compile": None if profiled.spans is None else _stage(profiled.spans),
        "instructions": instructions,
        "programs": programs(profiled.tally, instructions),
        "memory": memory(profiled),
        "device_work": device_data(profiled.timeline),
    }


def memory(profiled: Profiled) -> Data:
    """Return the memory that a call needs, for the recorded shapes; instructions that did not run
    count nothing.
    """
    program = profiled.program
    shapes = _Shapes(seen_shapes(profiled.tally))
    freed, kept = profiled.plans()
    held = [shapes.bytes_of(program.variables[i]) for i in program.inputs]
    held += [v.nbytes for v in program.constants.values() if isinstance(v, np.ndarray)]
    found = report(
        measure(program, shapes), measure(freed, shapes), measure(kept, shapes), sum(held)
    )
    values = [
        {
            "slot": v.slot,
            "name": v.name,
            "dtype": v.dtype,
            "shape": list(v.shape),
            "bytes": v.bytes,
            "born": v.born,
            "dies": v.dies,
            "buffers": list(v.buffers),
        }
        for v in found.values
    ]
    return {
        "inputs": found.inputs,
        "results": found.results,
        "unplanned": found.unplanned,
        "planned": found.planned,
        "unplanned_peak": found.unplanned_peak,
        "peak": found.peak,
        "buffers": list(found.buffers),
        "values": values,
    }


class _Shapes(dict[Variable, tuple[int, ...]]):
    """The recorded shapes; variables without one count as empty."""

    def __missing__(self, variable: Variable) -> tuple[int, ...]:
        return (0,)

    def bytes_of(self, variable: Variable) -> int:
        """Return the bytes of the elements of a variable."""
        if not isinstance(variable.type, TensorType):
            return 0
        size = 1
        for n in self[variable]:
            size *= n
        return size * int(variable.type.numpy_dtype.itemsize)


def seen_shapes(tally: Any) -> dict[Variable, tuple[int, ...]]:
    """Return the shapes of values that were timed most often."""
    found: dict[Variable, tuple[int, ...]] = {}
    for counted in tally.counted():
        step = tally.program.instructions[counted.position]
        variant = usual(counted)
        if variant is None or variant.inputs is None or variant.outputs is None:
            continue
        slots = [*step.inputs, *step.outputs]
        for slot, shape in zip(slots, [*variant.inputs, *variant.outputs], strict=True):
            if shape is not None:
                found[tally.program.variables[slot]] = shape
    return found


def usual(counted: Counted) -> Variant | None:
    """Return the shapes that were timed most often."""
    return max(counted.variants, key=lambda v: v.timed, default=None)


def rows(tally: Any) -> list[Data]:
    """Return the instructions of a program that ran, in its order."""
    code, found = tally.program.instructions, []
    for counted in tally.counted():
        step = code[counted.position]
        variants = [_variant(step, v) for v in counted.variants if v.timed]
        variants.sort(key=lambda v: -v["timed"])
        kind, kernel = tally.kinds[counted.position], tally.kernels[counted.position]
        source = step.node.source if step.node is not None else None
        found.append(
            {
                "position": counted.position,
                "text": step.line(),
                "op": op_name(step),
                "class": class_name(step),
                "source": None if source is None else str(source),
                "ran_in": _place(step, kind),
                "count": counted.runs,
                "in_python": counted.in_python,
                "unoptimized": min(kernel.early_calls, counted.runs) if kernel else 0,
                "straight": counted.position in tally.straight,
                "timed": counted.timed,
                "seconds": counted.seconds,
                "usual_seconds": counted.usual * counted.runs,
                "variants": variants,
            }
        )
    return found


def _place(step: Instruction, kind: str | None) -> str:
    """Return the name of the code that runs an instruction."""
    if step.node is not None and step.node.op.inner_graphs():
        return "program"
    return "machine" if kind is None else RAN_IN.get(kind, "C")


def op_name(step: Instruction) -> str:
    """Return the name of the op of an instruction, without its operands."""
    if step.opcode is Opcode.CALL and step.node is not None:
        return str(step.node.op)
    return "claim" if step.claims else step.opcode.name.lower()


def class_name(step: Instruction) -> str:
    """Return the class of the op of an instruction."""
    if step.opcode is Opcode.CALL and step.node is not None:
        return type(step.node.op).__name__
    return op_name(step)


def _variant(step: Instruction, variant: Variant) -> Data:
    moved = bytes_moved(step, variant.inputs, variant.outputs)
    call = step.opcode is Opcode.CALL
    count = operations(step.node if call else None, variant.inputs, variant.outputs)
    each = variant.usual
    return {
        "inputs": _lists(variant.inputs),
        "outputs": _lists(variant.outputs),
        "timed": variant.timed,
        "seconds_each": each,
        "bytes": moved,
        "operations": count,
        "bytes_per_second": moved / each if moved and each else None,
        "operations_per_second": count / each if count and each else None,
        "of_limit": _of_limit(step, moved, count, each),
    }


def _of_limit(step: Instruction, moved: int | None, count: int | None, each: float) -> float | None:
    """Return the least time that the machine needs, by its limits, divided by the measured time."""
    if not each or not (moved or count):
        return None
    found = limits()
    rate = found.memory if (moved or 0) > LARGE_WORK else found.cache
    single = step.node is not None and any(
        getattr(v.type, "dtype", "") in ("float32", "complex64") for v in step.node.outputs
    )
    needed = (moved or 0) / rate, (count or 0) / (found.float32 if single else found.float64)
    return max(needed) / each


def _lists(shapes: Sequence[Any] | None) -> Any:
    return None if shapes is None else [None if s is None else list(s) for s in shapes]


def programs(tally: Any, outer_rows: Iterable[Data]) -> list[Data]:
    """Return the programs that the instructions of ``outer_rows`` ran, mostly the steps of loops.
    """
    outer = {row["position"]: row for row in outer_rows}
    found = []
    for (position, number), (_, inner) in sorted(tally.inner.items(), key=lambda item: item[0]):
        instructions = rows(inner)
        seconds = sum(row["seconds"] for row in instructions)
        row = outer[position]
        # Times of usual runs: interruptions affect the two measurements differently.
        inside = sum(row["usual_seconds"] for row in instructions)
        found.append(
            {
                "position": position,
                "op": row["op"],
                "source": row["source"],
                "calls": row["count"],
                "seconds": row["seconds"],
                "steps": inner.runs,
                "plans": getattr(getattr(inner, "machine", None), "planning", None),
                "without_python": inner.without_python,
                "called_by_python": _why_python_calls(tally, position, number),
                "instruction_seconds": seconds,
                "bookkeeping": max(0.0, 1 - inside / (row["usual_seconds"] or 1.0)),
                "instructions": instructions,
                "programs": programs(inner, instructions),
            }
        )
    return found


def _why_python_calls(tally: Any, position: int, number: int) -> str | None:
    """Return why Python calls a program within an instruction; None if the machine runs it.

    Parameters
    ----------
    tally : NativeTally or Tally
    position, number : int
        The key of the program in ``tally.inner``.
    """
    if isinstance(tally, Tally):
        return "the linker of the function is Python's"
    step = tally.program.instructions[position]
    if tally.kinds[position] in ("loop", "graph"):
        # The machine's own program comes first.
        refused = "the machine did not take the values (a value changes its shape, or is no array)"
        return None if number == 0 else refused
    if any(body.policy.inspector is not None for body in step.bodies):
        return "its mode inspects the values of each step"
    odd = [str(z.type) for z in step.node.outputs if not isinstance(z.type, TensorType)]
    if odd and type(step.node.op).__module__ == LOOPS and step.bodies[0].native is not None:
        return None  # one step after another
    if odd:
        return f"its results are no arrays of the host: {', '.join(odd)}"
    return "its op has no native code"


def _stage(span: Span) -> Data:
    return {
        "name": span.name,
        "note": span.note,
        "seconds": span.seconds,
        "stages": [_stage(part) for part in span.inner],
    }


def grouped(instructions: Iterable[Data], key: str) -> list[Data]:
    """Group instructions by their op or class, the slowest groups first."""
    found: dict[str, Data] = {}
    for row in instructions:
        group = found.setdefault(
            row[key],
            {"name": row[key], "seconds": 0.0, "ran_in": [], "straight": False}
            | dict.fromkeys(("count", "in_python", "unoptimized", "instructions"), 0),
        )
        for field in ("seconds", "count", "in_python", "unoptimized"):
            group[field] += row[field]
        group["instructions"] += 1
        if row["ran_in"] not in group["ran_in"]:
            group["ran_in"].append(row["ran_in"])
    return sorted(found.values(), key=lambda group: -group["seconds"])
