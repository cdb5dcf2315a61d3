"""function: compile expressions to a callable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.compile import arguments
from symcomp.compile.callable import Function
from symcomp.compile.maker import Input, make
from symcomp.compile.mode import get_mode
from symcomp.config import config
from symcomp.core.node import Variable
from symcomp.core.pause import without_garbage_collection
from symcomp.core.source import user_line
from symcomp.core.spans import recorded, span
from symcomp.core.walk import rebuild
from symcomp.profiling.stats import ProfileStats, printed_at_exit


@without_garbage_collection
def function(
    inputs: Sequence[Any],
    outputs: Any = None,
    mode: Any = None,
    updates: Any = None,
    givens: Any = None,
    no_default_updates: Any = False,
    accept_inplace: bool = False,
    name: str | None = None,
    rebuild_strict: bool = True,
    allow_input_downcast: bool | None = None,
    profile: Any = None,
    on_unused_input: str | None = None,
    trust_input: bool = False,
) -> Function:
    """Compile expressions into a function.

    Parameters
    ----------
    inputs : list of Variable or In
        The arguments of calls.
    outputs : Variable, Out, list or dict of them, optional
        The results of calls: a value, a list, or a dict; None if there are none.
    mode : Mode or str, optional
        The mode to compile in; by default ``config.mode``.
    updates : pairs or dict of (shared variable, expression), optional
        New values of shared variables, computed from the old ones and set after all outputs are
        computed. If a call fails, none is set.
    givens : pairs or dict of (Variable, Variable), optional
        Replacements made in all expressions first.
    no_default_updates : bool or list of shared variables
        Do not apply the ``default_update`` of any, or of these, shared variables.
    accept_inplace : bool
        Allow in-place ops in the expressions.
    name : str, optional
        For messages and profiles; by default the file and line of the caller.
    rebuild_strict : bool
        If true, a replacement must have the type of the variable it replaces; if false, the nodes
        that depend on it are rebuilt.
    allow_input_downcast : bool, optional
        True: convert arguments even if precision is lost. False: never. None: only a Python float
        to floatX.
    profile : bool, str or ProfileStats, optional
        Measure; by default ``config.profile``. A str is the title of the profile.
    on_unused_input : {"raise", "warn", "ignore"}, optional
        By default ``config.on_unused_input``.
    trust_input : bool
        Do not check arguments: they must be arrays of the right dtype and rank.

    Returns
    -------
    Function

    Raises
    ------
    MissingInputError
        If an expression needs a variable that is not passed, shared or constant.
    UnusedInputError
        If an input is not needed, or given twice.
    CyclicGivensError
        If givens depend on one another in a cycle.
    TypeError, ValueError
        If an argument is of the wrong kind; the message says which.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> total = symcomp.shared(0.0, name="total")
    >>> f = symcomp.function([x], x ** 2, updates=[(total, total + x)])
    >>> f(3.0)
    array(9.)
    >>> float(total.get_value())
    3.0
    """
    title = name or _caller()
    with recorded(title) as spans:
        with span("arguments"):
            ends = _read(
                inputs, outputs, updates, givens, no_default_updates, accept_inplace,
                rebuild_strict, allow_input_downcast, on_unused_input, bool(profile),
            )  # fmt: skip
        maker = make(*ends, get_mode(mode), title, _profile(profile, title))
        result = Function(maker, trust_input)
    if result.profiled is not None:
        result.profiled.spans = spans
    return result


def _read(
    inputs: Sequence[Any],
    outputs: Any,
    updates: Any,
    givens: Any,
    no_default_updates: Any,
    accept_inplace: bool,
    rebuild_strict: bool,
    allow_input_downcast: bool | None,
    on_unused_input: str | None,
    profiled: bool,
) -> tuple[list[Input], list[Variable], list[tuple[int, Variable]], Any, list[int]]:
    """Interpret the arguments of ``function``: the inputs, the outputs, the updates by the position
    of the input, the structure of the outputs, and which of them may be borrowed.
    """
    specs = arguments.read_inputs(inputs, bool(updates or givens or profiled))
    outs, structure = arguments.read_outputs(outputs)
    roots: list[Variable] = [out.variable for out in outs]
    new_values = arguments.read_updates(updates)
    replace = arguments.read_givens(givens, specs, rebuild_strict)
    own = [spec for spec in specs if spec.update is not None]
    own_updates = [spec.update for spec in own if spec.update is not None]
    arguments.add_default_updates(
        [*roots, *new_values.values(), *own_updates],
        new_values,
        no_default_updates,
        replace,
        {spec.variable for spec in specs},
    )
    expressions = rebuild([*roots, *new_values.values(), *own_updates], replace, rebuild_strict)
    for target, expression in zip(new_values, expressions[len(roots) :], strict=False):
        target.type.filter_variable(expression)
    if not accept_inplace:
        arguments.refuse_inplace(expressions)
    shared = arguments.check_inputs(
        specs,
        expressions,
        on_unused_input or config.on_unused_input,
        {spec.variable for spec in own} | {spec.variable for spec in specs if spec.implicit},
    )
    for target in new_values:
        if target not in shared:
            shared.append(target)
    records = [Input.from_in(spec, allow_input_downcast) for spec in specs]
    records += [Input.from_shared(variable) for variable in shared]
    position = {record.variable: i for i, record in enumerate(records)}
    targets = [position[v] for v in new_values] + [position[spec.variable] for spec in own]
    _check_distinct(records, targets)
    return (
        records,
        expressions[: len(roots)],
        list(zip(targets, expressions[len(roots) :], strict=True)),
        structure,
        [i for i, out in enumerate(outs) if out.borrow],
    )


def _caller() -> str:
    where = user_line()
    return "function" if where is None else f"{where.file}:{where.line}"


def _profile(profile: Any, title: str) -> ProfileStats | None:
    if isinstance(profile, ProfileStats):
        return profile
    if isinstance(profile, str):
        return ProfileStats(profile)
    if profile is None and config.profile:
        return printed_at_exit(ProfileStats(title))
    return ProfileStats(title) if profile else None


def _check_distinct(records: Sequence[Input], targets: Sequence[int]) -> None:
    """Check that no container has two updates: their order would matter."""
    seen: dict[int, Input] = {}
    for i in targets:
        record = records[i]
        other = seen.setdefault(id(record.container), record)
        if other is not record:
            raise ValueError(
                f"function: {other.variable} and {record.variable} share their storage, and both "
                "are updated"
            )
