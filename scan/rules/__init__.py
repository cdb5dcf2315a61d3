"""The rewrites of loops: less in them, fewer of them, and larger products around them."""

from symcomp.rewrite.phases import FULL, QUICK
from symcomp.rewrite.rule import RuleSet
from symcomp.scan.rules.cleaning import (
    scan_drop_unused,
    scan_hoist_invariant,
    scan_inline_constants,
    scan_merge_equal,
    scan_shorten_traces,
    scan_unroll_one_step,
)
from symcomp.scan.rules.merging import scan_merge, scan_merge_products
from symcomp.scan.rules.pushing import (
    scan_push_out_outputs,
    scan_push_out_sequences,
    scan_push_out_sums,
)

CLEANING = RuleSet(
    [
        scan_drop_unused, scan_inline_constants, scan_merge_equal, scan_hoist_invariant,
        scan_unroll_one_step, scan_shorten_traces,
    ],
    ["scan", *QUICK],
)  # fmt: skip
MOVING = RuleSet(
    [
        scan_merge, scan_push_out_sums, scan_push_out_sequences, scan_push_out_outputs,
        scan_merge_products,
    ],
    ["scan", *FULL],
)  # fmt: skip
#: All rules of loops, to be applied together with those of canonicalization.
SCAN_RULES = CLEANING + MOVING
