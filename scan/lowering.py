"""Lower loops to native calls: their feature. Graphs that are run for each row are loops, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from symcomp.autodiff.maprows import MapRows
from symcomp.core.node import Apply
from symcomp.core.tensor import TensorType
from symcomp.cvm import machine
from symcomp.cvm.executable import Executable
from symcomp.cvm.machine import Lowered
from symcomp.rewrite.phases import CANONICALIZE, FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.scan.lengths import values_of_lengths
from symcomp.scan.op import Scan
from symcomp.scan.rows import Continued, FirstRows, LastRows, LeadingRows
from symcomp.scan.rules import SCAN_RULES
from symcomp.scan.run import by_fast_run, in_turn
from symcomp.vm.bodies import Bodies, Run
from symcomp.vm.features import Feature
from symcomp.vm.inspection import Inspector, Selects
from symcomp.vm.program import Instruction


def lowered_scan(step: Instruction) -> Lowered | None:
    """Lower a loop whose results are tensors, as are its states and sequences; ``in_turn`` has what
    computes others. Captured values are of any type.
    """
    node: Any = step.node
    op, layout = node.op, node.op.layout
    if not _has_tensors(node):
        return None
    body = step.bodies[0].nested()
    if body is None:
        return None
    states = zip(layout.depths, layout.lags, strict=True)
    reads = [(i, depth - lag) for i, (depth, lags) in enumerate(states) for lag in lags]
    stacked = [v.type.numpy_dtype for v in layout.results(node.outputs).stacked]
    return machine.loop(
        step, body, layout.depths, reads, layout.n_carried, layout.n_sequences, stacked,
        layout.until, str(op), partial(_rows_without_steps, op),
    )  # fmt: skip


def _rows_without_steps(op: Scan, *values: Any) -> tuple[Any, ...] | None:
    """Return the shapes of rows that no step makes, and the inputs whose elements tell them, by
    position behind the number of steps; None if not only elements of tensors do.
    """
    reads = values_of_lengths(op)
    if not all(isinstance(values[i], np.ndarray) for i in reads):
        return None
    return tuple(op.lengths_without_steps(values)), tuple(reads)


def _lowered_last(step: Instruction) -> Lowered:
    node: Any = step.node
    return machine.rows(step, "last", node.op.more)


def _has_tensors(node: Any) -> bool:
    """Return whether the states, sequences and results of a loop are tensors."""
    captured = node.op.layout.arguments(node.inputs).captured
    moving = node.inputs[: len(node.inputs) - len(captured)]
    return all(isinstance(v.type, TensorType) for v in (*moving, *node.outputs))


def _bound_loop(node: Apply, runs: Sequence[Run]) -> Callable[..., Any]:
    op: Any = node.op
    (body,) = runs
    if isinstance(body, Executable) and not _has_tensors(node):
        policy = body.policy
        if policy.native and policy.inspector is None:
            return in_turn(op, body)
    return lambda n, *rest: op.run_steps(body, n, rest)


def _bound_rows(node: Apply, runs: Sequence[Run]) -> Callable[..., Any]:
    op: Any = node.op
    return lambda n, *rest: op.rows(runs[0], int(n), rest)


def chosen_rewrites(op: Scan) -> Selects | None:
    """Return what selects the rewrites that the user chose for the body, if any."""
    return None if op.selects is by_fast_run else op.selects


def chosen_inspector(op: Scan) -> Inspector | None:
    """Return the inspector of the mode that the user chose for the body."""
    return getattr(getattr(op.selects, "__self__", None), "inspector", None)


def carried_pairs(op: Scan) -> list[tuple[int, int]]:
    """Return the outputs of the body that may be written over inputs: the carried values."""
    return op.layout.carried_pairs()


_RULES = RuleSet(SCAN_RULES, ["scan", *FULL])
LOOPS = Feature(
    "loops",
    phases=(
        (
            "settle",
            Phase("scan", "loops do only what each step needs", _RULES + CANONICALIZE),
        ),
    ),
    lowerings={
        (Scan, "cpu"): lowered_scan,
        (FirstRows, "cpu"): lambda step: machine.rows(step, "first", 0),
        (Continued, "cpu"): lambda step: machine.joined(step, 0, False),
        (LastRows, "cpu"): _lowered_last,
        (LeadingRows, "cpu"): lambda step: machine.rows(step, "leading", 0),
    },
    bodies={
        Scan: Bodies(_bound_loop, True, chosen_rewrites, chosen_inspector, carried_pairs),
        MapRows: Bodies(_bound_rows, copies_results=True),
    },
)
