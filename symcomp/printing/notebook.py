"""What notebooks show of an expression: a formula, and the graph below it."""

from __future__ import annotations

from html import escape

from symcomp.core.node import Variable
from symcomp.core.walk import toposort
from symcomp.printing.debug import debugprint
from symcomp.printing.tex import latex

# A formula of more nodes is no help: the tree alone is shown.
MOST_NODES = 60


def repr_latex(self: Variable) -> str | None:
    """The formula between dollars; None if it would be too long."""
    return f"${latex(self)}$" if len(toposort([self])) <= MOST_NODES else None


def repr_html(self: Variable) -> str:
    """The formula, which the notebook typesets, and the tree of ``debugprint``, folded."""
    formula = repr_latex(self) or escape(str(self))
    n = len(toposort([self]))
    tree = escape(debugprint(self, file="str", print_type=True, print_source=True, depth=50))
    summary = f"{escape(str(self.type))}, {n} node{'s' * (n != 1)}"
    return (
        f"<div>{escape(formula)}</div>"
        f"<details><summary>{summary}</summary><pre>{tree}</pre></details>"
    )


def install() -> None:
    """Put both on variables; the facade does it once."""
    Variable._repr_latex_ = repr_latex  # type: ignore[attr-defined]
    Variable._repr_html_ = repr_html  # type: ignore[attr-defined]
