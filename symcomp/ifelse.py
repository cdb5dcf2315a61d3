"""``symcomp.ifelse``: lazy choice."""

from symcomp.ops.control import IfElse, ifelse

__all__ = ["IfElse", "ifelse"]
