"""Messages about a call that failed: a few lines with the exception, the rest on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.config import config
from symcomp.core.record import record
from symcomp.core.tree import Tree, TreeOptions
from symcomp.core.values import describe_contents
from symcomp.vm.program import Instruction, Program
from symcomp.vm.replay import replay

# Limits that fit on a screen with the traceback above it.
MOST_INPUTS, LONGEST_OP, LONGEST_NAME, LONGEST_VALUE = 6, 100, 60, 160
# How much of the graph above the node, and of the program around it, is told in full.
DEPTH, NEIGHBOURS = 5, 4
# Where an exception keeps the details of the programs that it came through.
INSIDE = "_symcomp_details"
# The files of functions that tracebacks show without their lines.
COMPILED = (".pxi", ".pyx")


@record
class Failure:
    """The description of a call that failed; only text, so that no array is kept alive.

    Attributes
    ----------
    error : str
        The exception and its message.
    summary : str
        The text added to the exception.
    details : str
        The full description.
    """

    error: str
    summary: str
    details: str

    def __str__(self) -> str:
        return f"{self.error}\n\n{self.details}"


def explain(problem: BaseException, step: Instruction, values: Sequence[Any]) -> None:
    """Add to an exception which node failed, on what, and the user's line that made it."""
    if step.node is not None:
        problem.add_note(_summary(step, values, getattr(problem, "__notes__", ())))


def failure(
    problem: BaseException, program: Program, position: int, values: Sequence[Any]
) -> Failure:
    """Add to an exception the node that was computed when it was raised; return the full
    description.

    For a loop, the details repeat the message of its step, and the exception says only where the
    loop is. With ``config.exception_verbosity="high"`` the exception tells the details, too.

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
    error = "\n".join([f"{type(problem).__name__}: {problem}", *notes])
    details = _details(program, position, values)
    inside: Sequence[str] = getattr(problem, INSIDE, ())
    if inside and step.node is not None:
        summary = f"It ran inside {_short(str(step.node.op), LONGEST_OP)}{_made(step.node)}"
    else:
        summary = _summary(step, values, notes)
    setattr(problem, INSIDE, (*inside, details))
    problem.add_note(summary)
    if config.exception_verbosity == "high":
        problem.add_note(f"\n{details}\n")
    else:
        without_machine(problem)
    return Failure(error, summary, "\n\n".join([details, *inside[::-1]]))


def without_machine(problem: BaseException) -> None:
    """Drop the machine's functions, which have no lines to show, from below the first frame."""
    at = problem.__traceback__
    while at is not None:
        below = at.tb_next
        while below is not None and below.tb_frame.f_code.co_filename.endswith(COMPILED):
            below = below.tb_next
        at.tb_next = below
        at = below


def _summary(step: Instruction, values: Sequence[Any], notes: Sequence[str]) -> str:
    node: Any = step.node
    if node is None:
        return "This was found before any shared variable was written: none has changed."
    op = _short(str(node.op), LONGEST_OP)
    lines = [f"This was raised by the op {op}, whose inputs were:"]
    inputs = list(zip(node.inputs, values, strict=False))
    for i, (x, value) in enumerate(inputs[:MOST_INPUTS]):
        name = _short(_expression(x), LONGEST_NAME)
        lines.append(f"  {i}: {name} ({x.type}) = {_short(_contents(value), LONGEST_VALUE)}")
    if len(inputs) > MOST_INPUTS:
        lines.append(f"  and {len(inputs) - MOST_INPUTS} more")
    if node.source is not None and not any(node.source.quoted() in note for note in notes):
        lines.append(f"It was made at {node.source.quoted()}")
    return "\n".join([*lines, "f.explain_last_error() tells more."])


def _made(node: Any) -> str:
    """Return where the user made a node, with the source line."""
    return "" if node.source is None else f", made at {node.source.quoted()}"


def _expression(x: Any) -> str:
    """Return a variable, or the node that computes it with the names of its operands, as text."""
    if x.name is not None or x.owner is None:
        return str(x)
    return str(x.owner) if len(x.owner.outputs) == 1 else f"{x.owner}.{x.index}"


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
        lines.append(f"  {i}: {_expression(x)} ({x.type}) = {_contents(value)}")
        lines += [f"     made at {x.source.quoted(' ' * 9)}"] if x.source is not None else []
    lines += [f"Its outputs: {', '.join(str(out.type) for out in node.outputs)}"]
    if node.source is not None:
        lines.append(f"It was made at {node.source.quoted()}")
    lines += _steps(node, values)
    tree = Tree(TreeOptions(DEPTH, print_type=True, print_source=True, print_inner_graphs=False))
    tree.add(node.outputs[:1])
    return "\n".join([*lines, "", "The graph above it:", *tree.lines])


def _steps(node: Any, values: Sequence[Any]) -> list[str]:
    """Return the steps of a fused op, each with its value, until one raises."""
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
