"""``x.eval({y: value})``: compile, cache and call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symcomp.compile.function import function
from symcomp.core.node import Constant, Variable
from symcomp.core.walk import graph_inputs
from symcomp.errors import MissingInputError


def eval_variable(
    self: Variable, inputs_to_values: Mapping[Any, Any] | None = None, **options: Any
) -> Any:
    """Return the value of a variable, given those of the inputs that it depends on.

    Parameters
    ----------
    inputs_to_values : mapping of Variable or name to value, optional
        Python floats are accepted for any float dtype.
    **options
        For ``function``. Without any, the function is compiled once and kept.

    Raises
    ------
    UnusedInputError
        If a value is given for a variable that this one does not depend on;
        ``on_unused_input="ignore"`` allows it.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x, y = T.dscalars("x", "y")
    >>> (x + y).eval({x: 1.0, "y": 2.0})
    array(3.)
    """
    given = {_variable(self, key): value for key, value in (inputs_to_values or {}).items()}
    inputs = tuple(sorted(given, key=id))
    kept = self.__dict__.setdefault("_compiled", {})
    if options or inputs not in kept:
        compiled = function(
            list(inputs),
            self,
            **{"allow_input_downcast": True, **options},
        )
        if options:
            return compiled(*(given[x] for x in inputs))
        kept[inputs] = compiled
    return kept[inputs](*(given[x] for x in inputs))


def _variable(output: Variable, key: Any) -> Variable:
    if isinstance(key, Variable):
        return key
    named = [v for v in graph_inputs([output]) if v.name == key and not isinstance(v, Constant)]
    if len(named) != 1:
        raise MissingInputError(
            f"eval: {len(named)} inputs of {output} are named {key!r}; pass the variable"
        )
    return named[0]
