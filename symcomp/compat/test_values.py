"""Test values: with ``config.compute_test_value``, graphs are evaluated while they are built, with
the values in ``variable.tag.test_value``.
"""

from __future__ import annotations

import functools
import pdb
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from symcomp.compat.config import config
from symcomp.compile.shared import SharedVariable
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.storage import bound
from symcomp.core.walk import toposort
from symcomp.ops.convert import as_tensor_variable

# False while a function is compiled, or a gradient or loop is built: new nodes are not the
# program's then.
_heard: ContextVar[bool] = ContextVar("heard", default=True)


class MissingTestValueError(AttributeError, ValueError):
    """A test value is needed and missing."""


@contextmanager
def _hearing(heard: bool) -> Iterator[None]:
    token = _heard.set(heard)
    try:
        yield
    finally:
        _heard.reset(token)


def unheard(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that test values are computed for its results alone."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _hearing(False):
            result = function(*args, **kwargs)
        if config.compute_test_value != "off" and _heard.get():
            _note_all(result)
        return result

    return wrapped


def _note_all(result: Any) -> None:
    """Compute the test values of the variables in a result."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, list | tuple):
        for part in result:
            _note_all(part)
    elif isinstance(result, Variable) and result.owner is not None:
        for node in _without_values([result]):
            note(node)


def _without_values(variables: Sequence[Variable]) -> list[Apply]:
    """Return the nodes between these variables and the nearest test values."""
    known = {v for v in _walk(variables) if _has_own(v)}
    return toposort(variables, known)


def _walk(variables: Sequence[Variable]) -> Iterator[Variable]:
    for node in toposort(variables):
        yield from node.outputs
    yield from variables


def _has_own(v: Variable) -> bool:
    return hasattr(v.tag, "test_value")


# -- the values


def get_test_value(v: Any) -> Any:
    """Return the value of ``v`` for the test values of the variables it depends on
    (``x.tag.test_value``).

    Raises
    ------
    MissingTestValueError
        If some of these have none; it is an AttributeError.
    """
    v = v if isinstance(v, Variable) else as_tensor_variable(v)
    values: dict[Variable, Any] = {}
    for node in _without_values([v]):
        _compute(node, values)
    return values[v] if v in values else _given(v)


def _given(v: Variable) -> Any:
    """Return the value of a variable for which no node must be computed."""
    if _has_own(v):
        return v.type.filter(v.tag.test_value)
    if isinstance(v, Constant):
        return v.data
    if isinstance(v, SharedVariable):
        return v.container.value
    where = f" It was made at {v.source}" if v.source else ""
    raise MissingTestValueError(
        f"{v} of type {v.type} has no test value: set its tag.test_value.{where}"
    )


def _compute(node: Apply, values: dict[Variable, Any]) -> None:
    """Add the values of the outputs of a node."""
    inputs = [values[x] if x in values else _given(x) for x in node.inputs]
    for overwritten in node.op.destroy_map.values():
        for i in overwritten:
            inputs[i] = node.inputs[i].type.copy_value(inputs[i])
    results = bound(node)(*inputs)
    if not node.op.multiple_outputs:
        results = (results,)
    values.update(zip(node.outputs, results, strict=True))


def note(node: Apply) -> None:
    """Compute the test values of the outputs of a node, as ``config.compute_test_value`` says."""
    action = config.compute_test_value
    if action == "off" or not _heard.get():
        return
    values: dict[Variable, Any] = {}
    try:
        with _hearing(False):
            _compute(node, values)
    except MissingTestValueError as problem:
        if action == "raise":
            raise
        if action == "warn":
            warnings.warn(f"the test value of {node} is not known: {problem}", stacklevel=3)
        return
    except Exception as problem:
        problem.add_note(f"This was raised for the test values of {node}, made at {node.source}")
        if action == "pdb":
            pdb.post_mortem(sys.exc_info()[2])
        raise
    for out, value in values.items():
        out.tag.test_value = value


def get_debug_values(*args: Any) -> list[tuple[Any, ...]]:
    """Return a list with the test values of all, or an empty one if ``compute_test_value`` is off
    or one is missing.
    """
    action = config.compute_test_value
    if action == "off":
        return []
    try:
        return [tuple(get_test_value(v) for v in args)]
    except MissingTestValueError:
        if action == "raise":
            raise
        return []


# -- loops


def with_first_rows(scan: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``scan`` to build its step with test values: the first rows of its sequences."""

    @functools.wraps(scan)
    def wrapped(
        fn: Any, sequences: Any = None, outputs_info: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if config.compute_test_value == "off" or not _heard.get():
            return scan(fn, sequences, outputs_info, *args, **kwargs)
        first = [*_rows(sequences, _of_sequence), *_rows(outputs_info, _of_state)]

        def step(*variables: Any) -> Any:
            for v, value in zip(variables, first, strict=False):
                if value is not None:
                    v.tag.test_value = value
            with _hearing(True):
                return fn(*variables)

        return unheard(scan)(step, sequences, outputs_info, *args, **kwargs)

    return wrapped


def _rows(items: Any, read: Callable[..., list[Any]]) -> list[Any]:
    if items is None:
        return []
    found: list[Any] = []
    for item in items if isinstance(items, list | tuple) else [items]:
        given = item if isinstance(item, Mapping) else {}
        x = given.get("input", given.get("initial")) if given or item == {} else item
        taps = given.get("taps")
        if x is not None:
            found += read(_known(x), taps if taps is None or isinstance(taps, list) else [taps])
    return found


def _known(x: Any) -> Any:
    try:
        return get_test_value(as_tensor_variable(x))
    except MissingTestValueError:
        return None


def _of_sequence(value: Any, taps: list[int] | None) -> list[Any]:
    taps = taps or [0]
    first = min(0, *taps, 0)
    return [None if value is None else value[tap - first] for tap in taps]


def _of_state(value: Any, taps: list[int] | None) -> list[Any]:
    if taps in (None, [-1]):
        return [value]
    return [None if value is None else value[tap - min(taps)] for tap in taps]
