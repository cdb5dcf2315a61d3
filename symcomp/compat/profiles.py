"""Theano's names for the counts of profiles: ``profile.fct_call_time``, ``profile.apply_time``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from symcomp.core.node import Apply
from symcomp.profiling.stats import ProfileStats
from symcomp.vm.opcodes import Opcode


def _counted(profile: ProfileStats) -> Iterator[tuple[Apply, Any, str | None]]:
    """Yield the nodes that ran, with their counts, and what runs them."""
    for function in profile.functions:
        code = function.tally.program.instructions
        for counted in function.tally.counted():
            step = code[counted.position]
            if step.opcode is Opcode.CALL and step.node is not None:
                yield step.node, counted, function.tally.kinds[counted.position]


def _totals(key: Callable[[Apply], Hashable], value: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a table of the sums of a value over all nodes with the same key."""

    def table(profile: ProfileStats) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for node, counted, _ in _counted(profile):
            found[key(node)] = found.get(key(node), 0) + value(counted)
        return found

    return table


def _each_node(node: Apply) -> Apply:
    return node


def _op(node: Apply) -> Any:
    return node.op


def _class(node: Apply) -> type:
    return type(node.op)


def _seconds(counted: Any) -> float:
    return float(counted.seconds)


def _runs(counted: Any) -> int:
    return int(counted.runs)


def _one(counted: Any) -> int:
    return 1


def _in_c(profile: ProfileStats) -> dict[Apply, bool]:
    """Return, for each node, whether C computes it."""
    return {node: kind != "python" for node, _, kind in _counted(profile)}


def _stages(*prefixes: str) -> Callable[[ProfileStats], float]:
    """Return a function that sums the seconds of the stages of compiling with these prefixes."""

    def seconds(profile: ProfileStats) -> float:
        return sum((s for name, s in profile.compile_phases if name.startswith(prefixes)), 0.0)

    return seconds


def _compile_time(profile: ProfileStats) -> float:
    return sum((f.spans.seconds for f in profile.functions if f.spans is not None), 0.0)


def _vm_call_time(profile: ProfileStats) -> float:
    """Return the time of the instructions, without arguments and updates."""
    return sum(seconds for seconds in _APPLY_TIME(profile).values())


def _nodes(profile: ProfileStats) -> int:
    return sum(len(f.program.instructions) for f in profile.functions)


_APPLY_TIME = _totals(_each_node, _seconds)

#: Members that profiles have in Theano.
PROFILE: dict[str, Any] = {
    "apply_callcount": property(_totals(_each_node, _runs)),
    "apply_cimpl": property(_in_c),
    "apply_time": property(_APPLY_TIME),
    "class_callcount": _totals(_class, _runs),
    "class_nodes": _totals(_class, _one),
    "class_time": _totals(_class, _seconds),
    "compile_time": property(_compile_time),
    "fct_call_time": property(lambda profile: profile.call_seconds),
    "fct_callcount": property(lambda profile: profile.calls),
    "linker_time": property(_stages("lower", "machine")),
    "nb_nodes": property(_nodes),
    "op_callcount": _totals(_op, _runs),
    "op_nodes": _totals(_op, _one),
    "op_time": _totals(_op, _seconds),
    "optimizer_time": property(_stages("rewrite:")),
    "vm_call_time": property(_vm_call_time),
}
