"""Rules that may turn NaN into numbers: applied only on request, by ``optimizer="unsafe"`` or
``Mode.including("unsafe")``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply
from symcomp.rewrite.pattern import pattern_rule, variables
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.rewrite.views import as_product, as_sum, call, product_of, sum_of

TAGS = ("nan_unsafe", "unsafe")
(x,) = variables("x")


def _filled(node: Apply, value: float) -> Any:
    """Return the value, in the shape of all inputs together."""
    out = node.outputs[0]
    model = node.inputs[0]
    for x in node.inputs[1:]:
        model = call("second", model, x) if x.type.broadcastable != out.type.broadcastable else x
    return call("second", model, np.asarray(value, out.dtype))


zero_product = pattern_rule(
    "zero_product", x * 0, 0, tags=TAGS,
    why="0 times any number is 0, except for infinity and NaN",
)  # fmt: skip


zero_quotient = pattern_rule(
    "zero_quotient", 0 / x, 0, tags=TAGS,
    why="0 over any number is 0, except over 0 and NaN",
)  # fmt: skip


@rule("sub", "add", why="equal numbers cancel, except infinities and NaN", tags=TAGS)
def equal_terms(node: Apply, graph: Any) -> Any:
    """x - x -> 0;   x + y - x -> y"""
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    total = as_sum(node.outputs[0])
    separate = {term for x in node.inputs for term in as_sum(x).terms}
    if not separate - set(total.terms):
        return None
    return call("second", _filled(node, 0), sum_of(total.constant, total.pairs(), node.outputs[0]))


@rule(
    "true_div", "mul", "own_ratio", tags=TAGS,
    why="equal factors cancel, except 0, infinity and NaN",
)  # fmt: skip
def equal_factors(node: Apply, graph: Any) -> Any:
    """x / x -> 1;   x y / x -> y"""
    if not dtypes.is_float(node.outputs[0].dtype):
        return None
    if node.op.scalar.name == "own_ratio":
        return _filled(node, 1)
    parts = [as_product(x).factors for x in node.inputs]
    product = as_product(node.outputs[0])
    separate = {f for part in parts for f in part}
    if not separate - set(product.factors):
        return None
    found = product_of(product)
    found = np.asarray(found, node.outputs[0].dtype) if isinstance(found, float) else found
    return call("second", _filled(node, 0), found)


UNSAFE = RuleSet([zero_product, zero_quotient, equal_terms, equal_factors])
