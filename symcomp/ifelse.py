"""``symcomp.ifelse``: lazy choice."""

from symcomp.ops.control.conditions import IfElse, ifelse

__all__ = ["IfElse", "ifelse"]
