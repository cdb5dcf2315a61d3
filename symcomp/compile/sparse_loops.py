"""Sparse matrices in loops: steps compute on arrays, and take those of captured matrices.

So a matrix that is the same in all steps is taken apart, and its pattern checked, once before the
first; and the lengths of rows follow from those of arrays, also where there are no steps.
"""

from __future__ import annotations

from typing import Any

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.record import replace
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import QUICK, Phase
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.scan.op import Scan
from symcomp.scan.rules.scan_parts import ScanParts, SequenceRow
from symcomp.sparse.components import Assemble, Components
from symcomp.sparse.phases import LOWERING, has_sparse
from symcomp.sparse.type import SparseType
from symcomp.vm.features import Feature, offer_feature


@rule(Scan, why="matrices are taken apart once, before the first step")
def loop_on_arrays(node: Apply, graph: Any) -> Any:
    """scan(.., captured sparse x) -> scan(.., captured arrays of x)"""
    parts = ScanParts.of(node)
    captured: list[SequenceRow] = []
    pairs: dict[Any, Any] = {}
    for c in parts.captured:
        if not isinstance(c.x.type, SparseType):
            captured.append(c)
            continue
        arrays = Components()(c.x)
        rows = [SequenceRow(x.type(f"{c.inner}.{k}"), x) for k, x in enumerate(arrays)]
        pairs[c.inner] = Assemble(c.inner.type)(*(row.inner for row in rows))
        captured += rows
    if not pairs:
        return None
    parts.captured = captured
    parts.substitute(pairs)
    return parts.answer(node)


@rule(Scan, why="steps on arrays need no Python objects")
def lower_steps(node: Apply, graph: Any) -> Any:
    """scan of ops on sparse matrices -> scan of ops on their arrays"""
    body = node.op.body
    inside = FunctionGraph(body.inputs, body.outputs)
    if not has_sparse(inside):
        return None
    rules = _IN_STEPS.selected(node.op.selects)
    firings = Engine(inside, rules, "sparse loops", on_error=config.on_opt_error).run()
    if not firings:
        return None
    return replace(node.op, body=ClosedGraph(inside.inputs, inside.outputs))(*node.inputs)


_IN_LOOPS = RuleSet([loop_on_arrays, lower_steps], ["sparse", "scan", *QUICK])
_IN_STEPS = LOWERING + _IN_LOOPS
PHASE = Phase("sparse loops", "steps work on the arrays of sparse matrices", _IN_LOOPS)
FEATURE = Feature("sparse loops", (("canonicalize", PHASE),))


def offer() -> None:
    """Take matrices apart before loops from now on."""
    offer_feature(FEATURE)
