"""Functions that are instances of ops in Theano: ``node.op == T.exp``, ``T.exp.make_node(x)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from symcomp.ops.elementwise.elemwise import Elemwise

__all__ = ["as_ops", "elemwise_name", "OpFunction"]


class OpFunction:
    """A function of variables that equals the op that it applies, and has its attributes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def make_node(self, *inputs: Any) -> Any:
        """Return the node that applies the function."""
        return self._function(*inputs).owner

    @property
    def op(self) -> Elemwise:
        """The op."""
        return self._function.op  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._function.op, name)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return bool(self.op == (other.op if isinstance(other, OpFunction) else other))

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return str(self.op)

    def __reduce__(self) -> Any:
        return OpFunction, (self._function,)


def as_ops(functions: dict[str, Any]) -> dict[str, Any]:
    """Wrap the functions that apply a scalar function to each element as OpFunction."""
    return {
        name: OpFunction(function)
        if isinstance(getattr(function, "op", None), Elemwise)
        else function
        for name, function in functions.items()
    }


def elemwise_name(op: Elemwise) -> str:
    """Return Theano's name of an op that applies a scalar function."""
    return f"Elemwise{{{op.scalar.name},{'inplace' if op.inplace else 'no_inplace'}}}"
