"""Representations in notebooks: the formula and the graph of an expression, the page of a function.
"""

from __future__ import annotations

from html import escape

from symcomp.compile.callable import Function
from symcomp.core.members import add_members
from symcomp.core.node import Variable
from symcomp.core.walk import toposort
from symcomp.printing.debug import debugprint
from symcomp.printing.page import html
from symcomp.printing.tex import latex

# Formulas of more nodes are unreadable: only the tree is shown.
MOST_NODES = 60


def repr_latex(self: Variable) -> str | None:
    """Return the formula between dollars; None if it would be too long."""
    return f"${latex(self)}$" if len(toposort([self])) <= MOST_NODES else None


def repr_html(self: Variable) -> str:
    """Return the formula, which the notebook typesets, and the tree of ``debugprint``, folded."""
    formula = repr_latex(self) or escape(str(self))
    n = len(toposort([self]))
    tree = escape(debugprint(self, file="str", print_type=True, print_source=True, depth=50))
    summary = f"{escape(str(self.type))}, {n} node{'s' * (n != 1)}"
    return (
        f"<div>{escape(formula)}</div>"
        f"<details><summary>{summary}</summary><pre>{tree}</pre></details>"
    )


def function_html(self: Function) -> str:
    """Return the page of ``html``, in a frame."""
    page = escape(html(self) or "")
    return f'<iframe srcdoc="{page}" style="width: 100%; height: 720px; border: 0"></iframe>'


def install() -> None:
    """Install the representations on variables and functions; the facade calls this once."""
    add_members(Function, {"_repr_html_": function_html})
    representations = {"_repr_latex_": repr_latex, "_repr_html_": repr_html}
    add_members(Variable, representations, replace=representations)
