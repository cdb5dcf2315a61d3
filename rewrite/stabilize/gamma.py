"""Differences of log gamma and of psi, whose terms cancel where arguments are close or large."""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Apply
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.rewrite.views import Sum, argument, as_sum, call, sum_of


def difference(a: Sum, b: Sum, like: Any) -> Any:
    """Return the expression of a - b, with common terms removed."""
    rest = a.plus(b.times(-1))
    return sum_of(rest.constant, rest.pairs(), like)


def is_step(a: Sum, b: Sum) -> bool:
    """Tell whether the difference is simpler than the two."""
    return len(a.plus(b.times(-1)).terms) < len(a.terms) + len(b.terms)


def size(a: Sum) -> int:
    """Return the number of terms."""
    return len(a.terms) + bool(a.constant)


@rule(
    "add", "sub", needs_in_view=["gammaln"],
    why="log gamma is about x log(x), and its differences cancel",
)  # fmt: skip
def gammaln(node: Apply, graph: Any) -> Any:
    """gammaln(x) + gammaln(y) - gammaln(x + y) -> betaln(x, y);
    gammaln(x + h) - gammaln(x) -> log_poch(x, h)
    """
    s = as_sum(node.outputs[0])
    logs = _arguments(s, "gammaln")
    for t, z in logs:
        c = -s.terms[t]
        same = [(u, x) for u, x in logs if s.terms[u] == c]
        for i, (u, x) in enumerate(same):
            # A repeated term occurs once with a larger coefficient.
            for v, y in same[i + 1 :]:
                if _is_sum(z, x, y):
                    return _with(s, (t, u, v), call("betaln", x, y), c, node)
        for u, x in logs:
            if s.terms[u] == 2 * c and _is_sum(z, x, x):
                return _with(s, (t, u), call("betaln", x, x), c, node)
    return _steps(s, logs, "log_poch", node)


@rule("add", "sub", why="psi is about log(x), and its differences cancel", needs_in_view=["psi"])
def psi(node: Apply, graph: Any) -> Any:
    """psi(x + h) - psi(x) -> digamma_increment(x, h)"""
    s = as_sum(node.outputs[0])
    return _steps(s, _arguments(s, "psi"), "digamma_increment", node)


def _arguments(s: Sum, name: str) -> list[tuple[Any, Any]]:
    """Return the terms that apply this function, and its arguments."""
    found = [(t, argument(t, name)) for t in s.terms]
    return [(t, x) for t, x in found if x is not None]


def _steps(s: Sum, terms: list[tuple[Any, Any]], name: str, node: Apply) -> Any:
    """Replace f(x + h) - f(x) by a function of x and h that does not cancel."""
    for t, x in terms:
        for u, y in terms:
            a, b = as_sum(x), as_sum(y)
            if s.terms[t] == -s.terms[u] and is_step(a, b) and size(a) >= size(b):
                found = call(name, y, difference(a, b, x))
                return _with(s, (t, u), found, s.terms[t], node)
    return None


def _is_sum(z: Any, x: Any, y: Any) -> bool:
    rest = as_sum(x).plus(as_sum(y)).plus(as_sum(z).times(-1))
    return not rest.terms and rest.constant == 0


def _with(s: Sum, old: tuple[Any, ...], new: Any, c: float, node: Apply) -> Any:
    """Return the sum with the term c * new in place of old ones."""
    kept = [(t, k) for t, k in s.pairs() if not any(t is o for o in old)]
    return sum_of(s.constant, [*kept, (new, c)], node.outputs[0])


GAMMA_RULES = RuleSet([gammaln, psi])
