"""Lower loops to native calls: their feature."""

from __future__ import annotations

from typing import Any

from symcomp.core.tensor import TensorType
from symcomp.cvm import machine
from symcomp.cvm.machine import Lowered
from symcomp.rewrite.phases import CANONICALIZE, FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.scan.op import Scan
from symcomp.scan.rules import SCAN_RULES
from symcomp.vm.features import Feature
from symcomp.vm.program import Instruction


def lowered_scan(step: Instruction) -> Lowered | None:
    """Lower a loop whose values are all tensors; Python runs the steps of others."""
    node: Any = step.node
    op, layout = node.op, node.op.layout
    if not all(isinstance(v.type, TensorType) for v in (*node.inputs, *node.outputs)):
        return None
    body = step.bodies[0].nested()
    if body is None:
        return None
    states = zip(layout.depths, layout.lags, strict=True)
    reads = [(i, depth - lag) for i, (depth, lags) in enumerate(states) for lag in lags]
    return machine.loop(
        step, body, layout.depths, reads, layout.n_carried,
        layout.n_sequences, layout.n_stacked, layout.until, str(op),
    )  # fmt: skip


_RULES = RuleSet(SCAN_RULES, ["scan", *FULL])
LOOPS = Feature(
    "loops",
    phases=(
        (
            "stabilize",
            Phase("scan", "loops do only what each step needs", _RULES + CANONICALIZE),
        ),
    ),
    lowerings={(Scan, "cpu"): lowered_scan},
)
