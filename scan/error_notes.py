"""Add the name of the loop, and the location of its step, to errors raised while it is built."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from symcomp.core.source import user_line

P = ParamSpec("P")
R = TypeVar("R")


def with_location(build: Callable[P, R]) -> Callable[P, R]:
    """Decorate ``build``, whose first argument is a step, to add a note to exceptions."""

    @wraps(build)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return build(*args, **kwargs)
        except Exception as problem:
            given: list[Any] = [*args, kwargs.get("fn"), kwargs.get("step")]
            step = next((f for f in given if callable(f)), None)
            problem.add_note(f"The loop was made at {user_line()}{_of_step(step)}")
            raise

    return wrapped


def _of_step(step: Any) -> str:
    code = getattr(step, "__code__", None)
    if code is None:
        return ""
    return f", its step {code.co_name} at {code.co_filename}:{code.co_firstlineno}"
