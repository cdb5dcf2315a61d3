"""Call the user's step and convert the arguments of loops, with errors that name them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable, describe_value
from symcomp.errors import DTypeError
from symcomp.ops.convert import as_tensor_variable


def described(item: Any) -> str:
    """Describe an argument: a variable by name and type, a value by its kind, dtype and shape."""
    if item is None:
        return "None"
    return f"{item} ({item.type})" if isinstance(item, Variable) else describe_value(item)


def read_tensor(item: Any, what: str, wanted: str) -> TensorVariable:
    """Return ``item`` as a tensor variable.

    Parameters
    ----------
    item : object
    what : str
        The argument, for the message.
    wanted : str
        The values accepted instead.

    Raises
    ------
    DTypeError
        If it is no tensor.
    """
    try:
        return as_tensor_variable(item)
    except (TypeError, ValueError) as problem:
        raise DTypeError(
            f"{what} is {described(item)}, which is no tensor: {wanted} ({problem})"
        ) from None


def check_step(step: Any, who: str, argument: str = "fn") -> None:
    """Raise a TypeError if ``step`` cannot be called."""
    if not callable(step):
        raise TypeError(
            f"{who}: {argument} is {described(step)}; it must be a function that takes the "
            "variables of one step and returns its outputs"
        )


def call_step(
    step: Callable[..., Any], who: str, parts: Sequence[tuple[str, Sequence[Any]]], remedy: str
) -> Any:
    """Call ``step`` and return its result.

    Parameters
    ----------
    step : callable
    who : str
        The name of the loop.
    parts : sequence of (str, sequence)
        The arguments in order, in groups: where they come from, and they themselves.
    remedy : str
        The arguments of the loop to extend if the step needs more arguments.

    Raises
    ------
    TypeError
        If the parameters of ``step`` do not fit. Errors inside of it pass unchanged.
    """
    arguments = [x for _, group in parts for x in group]
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # the signature of a builtin may not be known
        return step(*arguments)
    try:
        signature.bind(*arguments)
    except TypeError as problem:
        name = getattr(step, "__name__", type(step).__name__)
        shown = [
            f"{source}: {', '.join(_shown(x) for x in group)}" for source, group in parts if group
        ]
        raise TypeError(
            f"{who}: the step {name}{signature} cannot take the {_counted(arguments)} of this "
            f"loop ({'; '.join(shown) or 'there are none'}): {problem}. Give the step one "
            f"parameter for each, in this order, or {remedy}"
        ) from None
    return step(*arguments)


def _counted(arguments: Sequence[Any]) -> str:
    return f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}"


def _shown(argument: Any) -> str:
    return described(argument) if isinstance(argument, Variable) else str(argument)
