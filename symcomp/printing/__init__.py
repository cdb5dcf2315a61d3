"""``symcomp.printing``: graphs, functions and values as text, formulas and pictures."""

from symcomp.ops.control.debugging import PdbBreakpoint, Print
from symcomp.printing.debug import debugprint
from symcomp.printing.dot import GraphvizError, pydotprint
from symcomp.printing.fusion import explain_fusion
from symcomp.printing.notebook import install
from symcomp.printing.page import html
from symcomp.printing.plain import pp, pprint
from symcomp.printing.rewrites import explain_rewrites
from symcomp.printing.tex import latex
from symcomp.printing.values import min_informative_str

install()

__all__ = [
    "debugprint", "explain_fusion", "explain_rewrites", "GraphvizError", "html", "latex",
    "min_informative_str", "PdbBreakpoint", "pp", "pprint", "Print", "pydotprint",
]  # fmt: skip
