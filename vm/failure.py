"""What is told of a call that failed: a few lines with the exception, the rest when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.config import config
from symcomp.core.record import record
from symcomp.core.tree import Tree, TreeOptions
from symcomp.core.values import describe_contents
from symcomp.vm.program import Instruction, Program
from symcomp.vm.replay import replay

# What fits on a screen with the traceback above it.
MOST_INPUTS, LONGEST_OP, LONGEST_VALUE = 6, 100, 160
# How much of the graph above the node, and of the program around it, is told in full.
DEPTH, NEIGHBOURS = 5, 4


@record
class Failure:
    """What is known of a call that failed; text alone, so that no array is kept.

    Attributes
    ----------
    error : str
        The exception in words.
    summary : str
        What is added to the exception.
    details : str
        All that is known.
    """

    error: str
    summary: str
    details: str

    def __str__(self) -> str:
        return f"{self.error}\n\n{self.details}"


def explain(problem: BaseException, step: Instruction, values: Sequence[Any]) -> None:
    """Add to an exception which node failed, on what, and the user's line that made it."""
    if step.node is not None:
        problem.add_note(_summary(step, values))


def failure(
    problem: BaseException, program: Program, position: int, values: Sequence[Any]
) -> Failure:
    """Add to an exception what was computed when it was raised; return all that is known.

    Parameters
    ----------
    program : Program
    position : int
        Of the instruction that failed.
    values : sequence
        Of its inputs.
    """
    step = program.instructions[position]
    notes = list(getattr(problem, "__notes__", ()))
    explain(problem, step, values)
    error = "\n".join([f"{type(problem).__name__}: {problem}", *notes])
    summary = _summary(step, values) if step.node is not None else step.line()
    found = Failure(error, summary, _details(program, position, values))
    if config.exception_verbosity == "high":
        problem.add_note(found.details)
    return found


def _summary(step: Instruction, values: Sequence[Any]) -> str:
    node: Any = step.node
    lines = [f"This was raised by the op {_short(str(node.op), LONGEST_OP)}, whose inputs were:"]
    inputs = list(zip(node.inputs, values, strict=False))
    for i, (x, value) in enumerate(inputs[:MOST_INPUTS]):
        name = _short(str(x), LONGEST_OP)
        lines.append(f"  {i}: {name} ({x.type}) = {_short(_contents(value), LONGEST_VALUE)}")
    if len(inputs) > MOST_INPUTS:
        lines.append(f"  and {len(inputs) - MOST_INPUTS} more (f.explain_last_error())")
    if node.source is not None:
        lines.append(f"The expression was made at {node.source}")
    return "\n".join(lines)


def _details(program: Program, position: int, values: Sequence[Any]) -> str:
    step = program.instructions[position]
    lines = [f"Instruction {position} of {len(program.instructions)}:"]
    first = max(position - NEIGHBOURS, 0)
    for i, other in enumerate(program.instructions[first : position + NEIGHBOURS + 1], first):
        lines.append(f"{'-->' if i == position else '   '} {i}  {other.line()}")
    if step.node is None:
        return "\n".join(lines)
    node = step.node
    lines += ["", f"The op: {node.op}", "Its inputs:"]
    for i, (x, value) in enumerate(zip(node.inputs, values, strict=False)):
        lines.append(f"  {i}: {x} ({x.type}) = {_contents(value)}")
        lines += [f"     made at {x.source}"] if x.source is not None else []
    lines += [f"Its outputs: {', '.join(str(out.type) for out in node.outputs)}"]
    if node.source is not None:
        lines.append(f"The expression was made at {node.source}")
    lines += _steps(node, values)
    tree = Tree(TreeOptions(DEPTH, print_type=True, print_source=True, print_inner_graphs=False))
    tree.add(node.outputs[:1])
    return "\n".join([*lines, "", "The graph above it:", *tree.lines])


def _steps(node: Any, values: Sequence[Any]) -> list[str]:
    """The steps of a fused op, each with what it gave, until one raises."""
    lines: list[str] = []
    try:
        for done in replay(node, values):
            results = "; ".join(map(describe_contents, done.outputs))
            where = f"    [{done.node.source}]" if done.node.source is not None else ""
            lines.append(f"  {done.node} = {results}{where}")
    except Exception as problem:  # noqa: BLE001  (what the replay meets is to be told)
        lines.append(f"  {problem.__notes__[-1]} {type(problem).__name__}: {problem}")
    return ["", "Its steps, one by one:", *lines] if lines else []


def _contents(value: Any) -> str:
    return "unset" if repr(value) == "unset" else describe_contents(value)


def _short(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 3]}..."
