"""Rewrites of loops: less work in them, fewer of them, and larger products around them."""

from typing import Any

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.record import replace
from symcomp.core.walk import toposort
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE, FULL, QUICK
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.scan.op import Scan
from symcomp.scan.rules.cleaning import (
    scan_drop_unused,
    scan_hoist_invariant,
    scan_inline_constants,
    scan_merge_equal,
    scan_unroll_one_step,
)
from symcomp.scan.rules.mapping import scan_of_map_rows
from symcomp.scan.rules.merging import (
    scan_merge,
    scan_merge_products,
    scan_merge_sums_of_products,
)
from symcomp.scan.rules.pushing import (
    scan_push_out_outputs,
    scan_push_out_sequences,
    scan_push_out_sums,
)
from symcomp.scan.rules.shortening import (
    scan_last_of_continued,
    scan_read_last_rows,
    scan_read_leading_rows,
    scan_shorten_outputs,
    scan_shorten_traces,
    scan_skip_last_steps,
    scan_split_unread,
)

CLEANING = RuleSet(
    [
        scan_of_map_rows, scan_drop_unused, scan_inline_constants, scan_merge_equal,
        scan_hoist_invariant, scan_unroll_one_step, scan_skip_last_steps, scan_shorten_traces,
        scan_read_last_rows, scan_read_leading_rows, scan_last_of_continued,
    ],
    ["scan", *QUICK],
)  # fmt: skip
MOVING = RuleSet(
    [
        scan_merge, scan_split_unread, scan_push_out_sums, scan_push_out_sequences,
        scan_push_out_outputs, scan_merge_products, scan_merge_sums_of_products,
    ],
    ["scan", *FULL],
)  # fmt: skip


@rule(Scan, why="the rules apply to loops inside of loops as well")
def scan_rewrite_nested(node: Apply, graph: Any) -> Any:
    """scan of scans -> scan of scans to which these rules were applied"""
    body = node.op.body
    if not any(isinstance(inner.op, Scan) for inner in toposort(body.outputs)):
        return None
    inside = FunctionGraph(body.inputs, body.outputs)
    rules = _OF_NESTED.selected(node.op.selects)
    firings = Engine(inside, rules, "scan", on_error=config.on_opt_error).run()
    if not any(firing.rule.startswith("scan_") for firing in firings):
        return None
    return replace(node.op, body=ClosedGraph(inside.inputs, inside.outputs))(*node.inputs)


LAST = RuleSet([scan_shorten_outputs, scan_rewrite_nested], ["scan", *FULL])
#: All rules of loops, to be applied together with those of canonicalization.
SCAN_RULES = CLEANING + MOVING + LAST
_OF_NESTED = SCAN_RULES + CANONICALIZE
