"""Check the arguments of ``function``, and bring them to one form."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symcomp.compile.io import In, Out
from symcomp.compile.shared import SharedVariable
from symcomp.core.mentions import mentioned
from symcomp.core.node import Constant, Variable
from symcomp.core.walk import ancestors, graph_inputs, rebuild, toposort
from symcomp.errors import CyclicGivensError, GraphError, MissingInputError, UnusedInputError
from symcomp.ops.convert import as_tensor_variable

Pairs = dict[Variable, Variable]


def read_inputs(inputs: Any, extras_given: bool) -> list[In]:
    """Return every element as an In; ``(variable, value)`` and ``[variable, update, value]`` are
    Theano's old form.
    """
    if not isinstance(inputs, list | tuple):
        raise TypeError(
            f"function: inputs must be a list, got {type(inputs).__name__} {inputs!r}; write [x] "
            "for one input"
        )
    result = []
    for position, item in enumerate(inputs):
        if isinstance(item, list | tuple):
            if extras_given:
                raise TypeError(
                    f"function: input {position} is a {type(item).__name__}; use In(variable, "
                    "value=...) "
                    "together with updates, givens or profile"
                )
            item = _old_form(item, position)
        if isinstance(item, Variable):
            item = In(item)
        if not isinstance(item, In):
            raise TypeError(f"function: input {position} is {item!r}, not a variable or In")
        result.append(item)
    seen: set[Variable] = set()
    for spec in result:
        if spec.variable in seen:
            raise UnusedInputError(f"function: the input {spec.variable} is given more than once")
        seen.add(spec.variable)
    return result


def _old_form(item: Sequence[Any], position: int) -> In:
    if len(item) == 2:
        variable, second = item
        if isinstance(second, Variable) and not isinstance(second, SharedVariable):
            return In(variable, update=second)
        return In(variable, value=second)
    if len(item) == 3:
        return In(item[0], update=item[1], value=item[2])
    raise TypeError(
        f"function: input {position} has {len(item)} elements; (variable, value) expected"
    )


def read_outputs(outputs: Any) -> tuple[list[Out], Any]:
    """Return the outputs as Outs, and their structure: None, "single", "list", or the keys of a
    dict.
    """
    if outputs is None:
        return [], None
    if isinstance(outputs, Mapping):
        for key in outputs:
            if not isinstance(key, str):
                raise TypeError(f"function: the keys of outputs must be strings, got {key!r}")
        keys = sorted(outputs)
        return [_out(outputs[key], key) for key in keys], tuple(keys)
    if isinstance(outputs, list | tuple):
        return [_out(item, i) for i, item in enumerate(outputs)], "list"
    return [_out(outputs, 0)], "single"


def _out(item: Any, position: Any) -> Out:
    if isinstance(item, Out):
        return item
    if isinstance(item, Variable):
        return Out(item)
    try:
        return Out(as_tensor_variable(item))
    except (TypeError, ValueError):
        raise TypeError(
            f"function: output {position!r} is {item!r}, not a variable, Out or number"
        ) from None


def read_pairs(argument: str, pairs: Any) -> list[tuple[Any, Any]]:
    """Return ``updates`` or ``givens`` as a list of pairs."""
    items: Iterable[Any] = pairs.items() if isinstance(pairs, Mapping) else pairs or ()
    result = []
    for item in items:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise TypeError(f"function: {argument} must be pairs, got {item!r}")
        result.append((item[0], item[1]))
    return result


def read_updates(updates: Any) -> dict[SharedVariable, Variable]:
    """Return the updates, each converted to the type of its shared variable."""
    result: dict[SharedVariable, Variable] = {}
    for target, expression in read_pairs("updates", updates):
        if not isinstance(target, SharedVariable):
            raise TypeError(
                f"function: updates: {target!r} is not a shared variable, so there is nothing to "
                "update"
            )
        if target in result:
            raise ValueError(
                f"function: updates: {target} is updated twice, by {result[target]} and "
                f"{expression}"
            )
        if not isinstance(expression, Variable):
            expression = target.type.make_constant(expression)
        try:
            result[target] = target.type.filter_variable(expression)
        except TypeError as problem:
            raise TypeError(
                f"function: the update of {target} ({target.type}) has type {expression.type}"
                f"{f', made at {expression.source}' if expression.source else ''}: {problem}. "
                "Cast it with "
                f"T.cast(..., {getattr(target, 'dtype', 'dtype')!r}), or change its shape"
            ) from None
    return result


def add_default_updates(
    roots: Sequence[Variable],
    updates: dict[SharedVariable, Variable],
    excluded: Any,
    replaced: Mapping[Variable, Variable],
    given: set[Variable],
) -> None:
    """Add ``default_update`` of each shared variable in use that has no update yet."""
    if excluded is True:
        return
    if isinstance(excluded, Variable) or not isinstance(excluded, bool | list | tuple | set):
        raise TypeError(f"function: no_default_updates must be a bool or a list, got {excluded!r}")
    skipped = set() if isinstance(excluded, bool) else set(excluded)
    stops = given | set(replaced)
    pending = list(roots)
    seen: set[Variable] = set()
    while pending:
        batch, pending = pending, []
        for variable in graph_inputs(batch, stops):
            if variable in seen:
                continue
            seen.add(variable)
            default = getattr(variable, "default_update", None)
            if variable in replaced:
                pending.append(replaced[variable])
                if default is not None and variable not in graph_inputs([replaced[variable]]):
                    continue  # not used by any output
            if default is not None and variable not in skipped and variable not in updates:
                assert isinstance(variable, SharedVariable)
                updates[variable] = default
                pending.append(default)


def read_givens(givens: Any, inputs: Sequence[In], strict: bool) -> Pairs:
    """Return the replacements, each with the earlier ones applied to it.

    A replacement may be made of what it replaces, as ``{a: a + 10}``: it is one substitution, and
    ``a`` in it is not replaced again.

    Raises
    ------
    CyclicGivensError
        If several depend on one another in a cycle.
    """
    given: dict[Variable, Any] = {}
    taken = {spec.variable for spec in inputs}
    for old, new in read_pairs("givens", givens):
        if not isinstance(old, Variable):
            raise TypeError(f"function: givens: {old!r} is not a variable")
        if old in given:
            raise ValueError(f"function: givens: {old} is replaced twice")
        if old in taken:
            raise RuntimeError(
                f"function: givens: {old} is an input of the function as well; it can be passed or "
                "replaced, not both"
            )
        given[old] = _replacement(old, new, strict)
    return _resolve(given, strict)


def _replacement(old: Variable, new: Any, strict: bool) -> Variable:
    if not isinstance(new, Variable):
        try:
            return old.type.make_constant(new)
        except (TypeError, ValueError) as problem:
            raise TypeError(
                f"function: givens: the value for {old} ({old.type}): {problem}"
            ) from None
    if not strict:
        return new
    try:
        return old.type.filter_variable(new)
    except TypeError as problem:
        raise TypeError(
            f"function: givens: {new} of type {new.type} cannot stand for {old} of type "
            f"{old.type}: {problem}; "
            "cast it, or pass rebuild_strict=False"
        ) from None


def _resolve(given: Pairs, strict: bool) -> Pairs:
    needs = {
        old: [v for v in ancestors([new]) if v in given and v is not old]
        for old, new in given.items()
    }
    done: Pairs = {}
    waiting = list(given)
    while waiting:
        ready = [old for old in waiting if all(v in done for v in needs[old])]
        if not ready:
            cycle = ", ".join(f"{old} -> {given[old]}" for old in waiting)
            raise CyclicGivensError(
                f"function: givens: these replacements need one another: {cycle}. Replacements may "
                "be made of what they replace themselves, but not in a circle"
            )
        for old in ready:
            (done[old],) = rebuild([given[old]], {v: done[v] for v in needs[old]}, strict)
        waiting = [old for old in waiting if old not in done]
    return done


def refuse_inplace(expressions: Sequence[Variable]) -> None:
    """Raise GraphError if an in-place op is in the expressions."""
    for node in toposort(expressions):
        if node.op.destroy_map:
            raise GraphError(
                f"function: the expressions contain the in-place op {node.op}"
                f"{f', made at {node.source}' if node.source else ''}; pass accept_inplace=True "
                "to allow it, or "
                "use the op that is not in-place"
            )


def check_inputs(
    inputs: Sequence[In], roots: Sequence[Variable], on_unused: str, always_used: set[Variable]
) -> list[SharedVariable]:
    """Return the shared variables that ``roots`` depend on; raise or warn for missing and for
    unused inputs.
    """
    given = {spec.variable for spec in inputs}
    used = set()
    shared: list[SharedVariable] = []
    for variable in graph_inputs(roots, given):
        used.add(variable)
        if isinstance(variable, SharedVariable):
            shared.append(variable)
        elif variable not in given and not isinstance(variable, Constant):
            raise MissingInputError(
                f"function: the outputs need {variable} of type {variable.type}"
                f"{f', made at {variable.source}' if variable.source else ''}, which is not among "
                "the "
                "inputs: add it to the inputs, or give it a value through givens"
            )
    unused = [s for s in inputs if s.variable not in used and s.variable not in always_used]
    known = mentioned(roots) if unused else set()
    for spec in unused:
        if spec.variable not in known:
            _complain_unused(spec, on_unused)
    return shared


def _complain_unused(spec: In, on_unused: str) -> None:
    if on_unused not in ("raise", "warn", "ignore"):
        raise ValueError(
            f"function: on_unused_input={on_unused!r}: must be 'raise', 'warn', 'ignore' or None"
        )
    message = (
        f"function: the input {spec.variable} of type {spec.variable.type} is not used to compute "
        "any "
        "output: remove it, or pass on_unused_input='ignore'"
    )
    if on_unused == "raise":
        raise UnusedInputError(message)
    if on_unused == "warn":
        warnings.warn(message, stacklevel=4)
