"""The memory report of a compiled function: the shapes of all values, given shapes or values of its
inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.compile.maker import Input, Maker
from symcomp.core.evaluate import evaluate
from symcomp.core.node import Variable
from symcomp.core.record import replace
from symcomp.core.tensor import TensorType
from symcomp.core.walk import graph_inputs, toposort
from symcomp.cvm.executable import Executable
from symcomp.cvm.machine import NativeMachine
from symcomp.errors import ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.rewrite.shapes import Shapes
from symcomp.vm.memory import MemoryReport, measure, report
from symcomp.vm.program import Program

usage = lazy_module("symcomp.gpu.usage")
transfers = lazy_module("symcomp.gpu.transfers")


def memory_report(maker: Maker, executable: Executable, examples: Sequence[Any]) -> MemoryReport:
    """Return the memory report of a program made by ``maker``; see ``Function.memory_report``."""
    program, machine = executable.program, executable.machine
    values, shapes = value_shapes(maker, program, examples)
    freed, kept = (measure(other, shapes) for other in maker.other_programs())
    inputs = _bytes_of_inputs(program, values)
    given = [None if _on_host(x) is not None else shapes.get(x) for x in maker.fgraph.inputs]
    given += [None] * (len(program.inputs) - len(given))
    allocated = machine.allocated(given) if isinstance(machine, NativeMachine) else None
    usages = usage.device_usages(executable, shapes, inputs) if _has_devices(executable) else ()
    planned = measure(program, shapes)
    here = tuple(v for v in planned.values if _on_host(program.variables[v.slot]) is None)
    planned = replace(planned, values=here)
    return report(planned, freed, kept, inputs["cpu"], allocated, usages)


def drop_arenas(executable: Executable) -> None:
    """Give back the memory on devices that is kept for intermediate values of the next call."""
    if _has_devices(executable):
        for region in usage.regions_of(executable):
            region.drop_arena()


def _has_devices(executable: Executable) -> bool:
    """Return whether values of the program, or of graphs in its ops, live on devices."""
    return any(
        _on_host(x) is not None for one in executable.together() for x in one.program.variables
    )


def _on_host(variable: Variable) -> TensorType | None:
    """Return the type of the same arrays on the host; None if a variable's are there."""
    return getattr(variable.type, "on_host", None)


def _bytes_of_inputs(program: Program, values: Mapping[Variable, Any]) -> Mapping[str, int]:
    """Return the bytes of inputs and constants, by the places that they live in."""
    found = Counter(cpu=0)
    constants = {program.variables[slot]: x for slot, x in program.constants.items()}
    for variable, value in {**values, **constants}.items():
        kind: Any = variable.type
        if _on_host(variable) is not None:
            found[kind.device] += value.nbytes
        elif isinstance(value, np.ndarray):
            found["cpu"] += value.nbytes
    return found


def value_shapes(
    maker: Maker, program: Program, examples: Sequence[Any]
) -> tuple[dict[Variable, Any], dict[Variable, tuple[int, ...]]]:
    """Return the values of the inputs, and the shapes of all values that ``program`` computes."""
    values, without_value = _read_examples(maker, examples)
    return values, _infer(maker, program, values, without_value)


def _read_examples(
    maker: Maker, examples: Sequence[Any]
) -> tuple[dict[Variable, Any], set[Variable]]:
    """Return the values of the inputs, and those of which only the shape is used."""
    explicit = [spec for spec in maker.inputs if not spec.implicit]
    if len(examples) > len(explicit):
        raise TypeError(
            f"{maker.name}: memory_report: got {len(examples)} examples for {len(explicit)} inputs"
        )
    given = {id(spec): example for spec, example in zip(explicit, examples, strict=False)}
    values: dict[Variable, Any] = {}
    without_value: set[Variable] = set()
    for variable, spec in zip(maker.fgraph.inputs, maker.inputs, strict=True):
        example = given.get(id(spec), spec.container.value)
        kind: Any = spec.type
        if example is None or _is_shape(example):
            example, kind = _stand_in(maker, spec, example), _on_host(variable) or kind
            without_value.add(variable)
        values[variable] = kind.filter(example, spec.strict, spec.allow_downcast)
    return values, without_value


def _is_shape(example: Any) -> bool:
    return isinstance(example, tuple) and all(isinstance(n, int | np.integer) for n in example)


def _stand_in(maker: Maker, spec: Input, shape: Any) -> Any:
    """Return an array of the shape given, or known from the type, that takes no memory."""
    kind = getattr(spec.type, "on_host", spec.type)
    static = kind.shape if isinstance(kind, TensorType) else (None,)
    if shape is None:
        shape = static
    if not isinstance(kind, TensorType) or any(n is None for n in shape):
        raise ShapeError(
            f"{maker.name}: memory_report: the shape of {spec.name or spec.variable} ({kind}) is "
            "not known: give an example value or, as a tuple, its shape"
        )
    return np.broadcast_to(np.zeros((), kind.numpy_dtype), shape)


def _original(x: Variable) -> Variable:
    """Return the array on a device that ``x`` is copied from, whose lengths need no copy; or ``x``.
    """
    there = None if x.owner is None else x.owner.inputs[0]
    is_copy = there is not None and _on_host(there) is not None
    return there if is_copy and isinstance(x.owner.op, transfers.ToHost) else x  # type: ignore


def _infer(
    maker: Maker, program: Program, values: Mapping[Variable, Any], without_value: set[Variable]
) -> dict[Variable, tuple[int, ...]]:
    """Return the shapes of all values."""
    facts = Shapes(anywhere=True)
    lengths = {
        variable: facts.of(variable)
        for variable in program.variables
        if facts.of(variable) is not None
    }
    asked = list(dict.fromkeys(n for s in lengths.values() for n in s if isinstance(n, Variable)))
    known = dict(values)
    for node in toposort(asked):
        if type(node.op) in (Shape, ShapeI):
            x = _original(node.inputs[0])
            if x in values and (x in without_value or _on_host(x) is not None):
                known[node.outputs[0]] = np.asarray(node.op.perform(known[x]))
    reached = {v for v in graph_inputs(asked, known) if v in without_value}
    if reached:
        names = ", ".join(str(v) for v in values if v in reached)
        raise ShapeError(
            f"{maker.name}: memory_report: shapes depend on the value of {names}: give an example "
            "of it, not its shape"
        )
    found = dict(zip(asked, evaluate(asked, known), strict=True))
    return {v: tuple(int(found.get(n, n)) for n in shape) for v, shape in lengths.items()}
