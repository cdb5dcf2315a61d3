"""Ops with wrong parameters: a valid application of each, with each parameter changed in many ways,
and the outcome. Run as a program, as a crash would end the process; it prints the faults.
"""

import resource
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import symcomp
from symcomp.compile.saving.values import RECORDS
from symcomp.core.node import Constant
from symcomp.core.sparse_values import is_sparse_value
from symcomp.core.walk import graph_inputs, toposort
from symcomp.ops.control.debugging import PdbBreakpoint, Print, Raise
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.tests.compile.test_saving_ops import GROUPS, VALUES, every_op, slopes

# Exceptions of constructors and functions for parameters and inputs that do not fit.
ERRORS = (TypeError, ValueError, LookupError, ArithmeticError, AssertionError, MemoryError)
# Ops whose purpose is to print, stop or raise.
NOT_RUN = {PdbBreakpoint, Print, Raise}
WRONG = (None, "x", 1.5, (), (1,), -1, [1], b"")
INTS = (0, 1, 2, 2**31, 2**62, 2**63 - 1, 2**70, -(2**40), True)
TEXTS = ("", "\ud800", "a\0b", "float32", "float96", "mul")
FLOATS = (float("nan"), float("inf"), -1.0, 2**70)
# Per class: more would show nothing more.
MOST_NODES = 2
MEMORY = 8 << 30


def variants(value: Any) -> Iterator[Any]:
    """Values in the place of one: of other types, out of range, with a part more or less."""
    yield from WRONG
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (*INTS, value + 1, value - 1, -value - 1, np.int64(value))
    elif isinstance(value, float):
        yield from (*FLOATS, -value)
    elif isinstance(value, str):
        yield from TEXTS
    elif isinstance(value, tuple):
        yield from of_tuple(value)
    elif type(value) in RECORDS.values():
        for name in value.__fields__.names:
            for part in variants(getattr(value, name)):
                changed = built(type(value), {**fields_of(value), name: part})
                if changed is not None:
                    yield changed


def of_tuple(value: tuple[Any, ...]) -> Iterator[Any]:
    """Yield changes of a tuple, and of each of its parts; a slice keeps its three parts."""
    made = type(value) if isinstance(value, Slice) else lambda *parts: parts
    if value and not isinstance(value, Slice):
        yield from ((), value[:-1], (*value, value[-1]), value * 20, value[::-1], list(value))
    for i in range(len(value)):
        for part in variants(value[i]):
            yield made(*value[:i], part, *value[i + 1 :])


def fields_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__fields__.names}


def built(cls: Any, fields: dict[str, Any]) -> Any:
    """Make a record or an op; None if the constructor refuses it, as it should."""
    try:
        return cls(**fields)
    except ERRORS:
        return None


def valid_nodes() -> dict[type, list[Any]]:
    """For each class of ops some nodes, as written and as rewritten, with values of inputs."""
    found: dict[type, dict[Any, Any]] = {}
    for group in GROUPS:
        for output in group():
            inputs = [v for v in VALUES if v in graph_inputs([output])]
            maker = symcomp.function(inputs, output, mode=symcomp.Mode(linker="vm")).maker
            given = [VALUES[v] for v in inputs]
            # Shared variables bring their values.
            rewritten = dict(zip(maker.fgraph.inputs, given, strict=False))
            written = dict(zip(inputs, given, strict=True))
            for outputs, values in (
                ([output, *slopes(inputs, output)], written), (maker.fgraph.outputs, rewritten)
            ):  # fmt: skip
                for node in toposort(outputs):
                    kinds = tuple(x.type for x in node.inputs)
                    known = found.setdefault(type(node.op), {})
                    if kinds not in known and len(known) < MOST_NODES:
                        known[kinds] = (node, values)
    return {cls: [with_values(*pair) for pair in known.values()] for cls, known in found.items()}


def with_values(node: Any, values: dict[Any, Any]) -> tuple[Any, list[Any]]:
    """Return a node and the values of its inputs."""
    roots = [x for x in graph_inputs(node.inputs) if x in values]
    mode = symcomp.Mode(linker="vm", optimizer="None")
    f = symcomp.function(roots, list(node.inputs), mode=mode, no_default_updates=True)
    return node, f(*[values[x] for x in roots])


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def outcome(op: Any, node: Any, values: list[Any]) -> str:
    """Apply ``op`` in the place of the node's, natively and in Python; describe what differs."""
    fresh = [x if isinstance(x, Constant) else x.type() for x in node.inputs]
    pairs = [p for p in zip(fresh, values, strict=True) if not isinstance(p[0], Constant)]
    changed = op.make_node(*fresh)
    f = symcomp.function(
        [x for x, _ in pairs], changed.outputs, mode=symcomp.Mode(optimizer="None"),
        on_unused_input="ignore", accept_inplace=True,
    )  # fmt: skip
    native = python = problem = refusal = None
    try:
        native = f(*[copied(value) for _, value in pairs])
    except ERRORS as error:
        refusal = error
    try:
        python = op.bind(changed)(*map(copied, values))
    except ERRORS as error:
        problem = error
    if (refusal is None) is not (problem is None):
        return f"the machine raises {refusal!r}, bind {problem!r}"
    if refusal is not None:
        return ""
    return difference(native, python if op.multiple_outputs else [python])


def difference(native: Any, python: Any) -> str:
    """Describe how the results of the machine differ from those of Python; empty if they are the
    same.
    """
    for found, expected in zip(native, python, strict=True):
        if isinstance(found, list):
            continue
        if is_sparse_value(found):
            found, expected = found.toarray(), expected.toarray()
        if found.dtype != expected.dtype or found.shape != expected.shape:
            return f"{found.dtype} {found.shape} are {expected.dtype} {expected.shape} in Python"
        if not np.allclose(found, expected, rtol=1e-6, equal_nan=True):
            return f"{found!r:.200} is {expected!r:.200} in Python"
    return ""


def wrong_outcomes() -> Iterator[str]:
    """Yield the faults for each change of each parameter of each op."""
    nodes = valid_nodes()
    for cls in sorted(every_op() & nodes.keys() - NOT_RUN, key=lambda cls: cls.__name__):
        for node, values in nodes[cls]:
            fields = fields_of(node.op)
            for name, value in fields.items():
                for changed in variants(value):
                    op = built(cls, {**fields, name: changed})
                    what = f"{cls.__name__}.{name} = {ascii(changed):.200}"
                    # the last line names the change that ended the process
                    print(what, file=sys.stderr)
                    try:
                        wrong = outcome(op, node, values) if op is not None else ""
                    except ERRORS:
                        continue
                    if wrong:
                        yield f"{what}: {wrong}"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    for line in wrong_outcomes():
        print(line)
