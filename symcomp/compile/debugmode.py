"""DebugMode: check everything that can be checked while a function runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symcomp.compile.mode import Mode, get_default_mode
from symcomp.compile.rewritecheck import (
    BadOptimization,
    DebugModeError,
    RewriteCheck,
    RewriteCheckWarning,
)
from symcomp.compile.rounding import Perturb, disagreement
from symcomp.core.closed import ClosedGraph
from symcomp.core.dtype import kind
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.sparse_values import numbers_of
from symcomp.core.storage import bound
from symcomp.core.tensor import TensorType
from symcomp.core.values import describe_contents
from symcomp.cvm.executable import compile_graph
from symcomp.vm.guard import InvalidValueError
from symcomp.vm.inspection import Inspector, Work
from symcomp.vm.program import Instruction
from symcomp.vm.replay import Replayed, as_before, first_bad, recompute, replay, step_text

# The checks of DebugMode, by the names of its constructor's arguments.
OPTIONS = (
    "stability_patience", "check_c_code", "check_py_code", "check_isfinite",
    "check_preallocated_output",
)  # fmt: skip


class BadThunkOutput(DebugModeError):
    """The machine's result for a node differs from that of its NumPy code."""


class BadDestroyMap(DebugModeError):
    """A node overwrote an input that its ``destroy_map`` does not name."""


class BadViewMap(DebugModeError):
    """An output shares memory that the ``view_map`` of the op does not name."""


class StochasticOrder(DebugModeError):
    """Computing a node, or rewriting a graph, twice gave two results."""


class Debugger(Inspector):
    """The inspector of DebugMode."""

    def __init__(
        self, patience: int, values: bool, types: bool, finite: bool, layouts: bool
    ) -> None:
        self._patience, self._values, self._types = patience, values, types
        self._finite, self._layouts = finite, layouts

    def rewrite(self, graph: FunctionGraph, apply: Callable[[FunctionGraph], Any]) -> Any:
        copies = [graph.clone() for _ in range(self._patience - 1)]
        graph.history = []
        report = apply(graph)
        wanted = ClosedGraph(graph.inputs, graph.outputs)
        for other in copies:
            apply(other)
            if ClosedGraph(other.inputs, other.outputs) != wanted:
                raise StochasticOrder(
                    f"rewriting the same graph twice gave two graphs: {graph} and {other}"
                )
        return report

    def begin(self, graph: FunctionGraph, values: Sequence[Any], inner: bool) -> None:
        if graph.history is None:
            return
        if "rewrite check" not in graph.facts:
            graph.facts["rewrite check"] = RewriteCheck(graph)
        graph.facts["rewrite check"](values)

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        node: Any = step.node
        if node.op.has_effects:
            before = as_before(node, values)
            results = work(values)
            self._check_types(node, before, results)
            return results
        kept = _twins(node, values)
        first = [_copy(out, z) for out, z in _pairs(node, work(_twins(node, kept)))]
        if self._layouts:
            self._check_layouts(node, kept, first, work)
        results = work(values)
        self._check_types(node, kept, results)
        _check_destroyed(node, kept, values)
        _check_views(node, values, results)
        for k, (out, z) in enumerate(_pairs(node, results)):
            if not out.type.values_eq(z, first[k]):
                raise StochasticOrder(
                    f"{_named(node)} computed output {k} twice from the same values: first "
                    f"{describe_contents(first[k])}, then {describe_contents(z)}"
                )
        if self._values:
            self._check_reference(node, kept, results)
        return results

    def _check_types(self, node: Apply, kept: Sequence[Any], results: Sequence[Any]) -> None:
        for k, (out, value) in enumerate(_pairs(node, results)):
            if not self._types:
                continue
            try:
                out.type.filter(value, strict=True)
            except (TypeError, ValueError) as problem:
                raise InvalidValueError(
                    f"{_named(node)} gave, as output {k}, {describe_contents(value)}, but its "
                    f"type is {out.type}: {problem}"
                ) from None
            if self._finite and _not_finite(value):
                first = first_bad(node, kept, _not_finite)
                step = "" if first is None else f"; {step_text(first)}"
                raise InvalidValueError(
                    f"{_named(node)} gave, as output {k}, {describe_contents(value)}{step}. If "
                    "that is meant, pass DebugMode(check_isfinite=False)"
                )

    def _check_reference(self, node: Apply, kept: Sequence[Any], results: Sequence[Any]) -> None:
        """Compare with NumPy."""
        with np.errstate(all="ignore"):
            result = bound(node)(*_twins(node, kept[: len(node.inputs)]))
        expected = result if node.op.multiple_outputs else [result]
        for k, (wanted, value) in enumerate(zip(expected, results, strict=True)):
            wrong = disagreement(wanted, value, _again(node, kept, k))
            if wrong:
                raise BadThunkOutput(
                    f"{_named(node)}: the machine's value of output {k} differs from that of "
                    f"perform: {wrong}{_guilty(node, kept)}"
                )

    @staticmethod
    def _check_layouts(node: Apply, kept: Sequence[Any], first: Sequence[Any], work: Work) -> None:
        """Compute from arrays of other strides."""
        for name, arrays in _layouts(node, kept):
            for k, value in enumerate(work(arrays)):
                wrong = disagreement(first[k], value, _again(node, kept, k))
                if wrong:
                    raise BadThunkOutput(
                        f"{_named(node)}: output {k} depends on the strides of the inputs: from "
                        f"{name}, {wrong}"
                    )


class DebugMode(Mode):
    """A mode that checks whatever can be checked; very slow, with the machine of other modes.

    Rewriting is done twice and must give the same graph. In each call:

    - every replacement that rewriting did is computed before and after, and compared
      (``BadOptimization``; one that takes an error away, as where only the shape of a value is
      needed, is told by a ``RewriteCheckWarning``);
    - every node is computed twice, which must give the same bits (``StochasticOrder``), from arrays
      of other strides, and with NumPy, which must agree with the compiled kernel
      (``BadThunkOutput``; of a fused kernel the step that differs is named);
    - no node may overwrite an input, or give a view of one, without saying so (``BadDestroyMap``,
      ``BadViewMap``), and values must be of their types and finite (``InvalidValueError``).

    All of these errors are AssertionErrors, and loops are looked into. Values agree if they differ
    by no more than what rounding may do, which is measured where it is not obvious.

    Parameters
    ----------
    optimizer, linker
        As for ``Mode``.
    stability_patience : int, optional
        The number of times that rewriting is done; by default 2.
    check_c_code, check_py_code : bool, optional
        Whether what the machine computes is compared with NumPy; whether types are checked. By
        default true.
    check_isfinite : bool, optional
        If true, the default, NaN and infinity are errors.
    check_preallocated_output : bool, optional
        If true, the default, nodes are computed from arrays of other strides, too.
    require_matching_strides
        Accepted for Theano's sake, without effect.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compile.debugmode import DebugMode
    >>> x = T.dvector("x")
    >>> symcomp.function([x], T.log(1 + T.exp(x)), mode=DebugMode())([0.0])
    array([0.69314718])
    """

    def __init__(
        self,
        optimizer: Any = "default",
        stability_patience: int | None = None,
        check_c_code: bool | None = None,
        check_py_code: bool | None = None,
        check_isfinite: bool | None = None,
        check_preallocated_output: bool | None = None,
        require_matching_strides: bool | None = None,
        linker: Any = None,
    ) -> None:
        super().__init__(linker, optimizer)
        patience = 2 if stability_patience is None else stability_patience
        if patience < 1:
            raise ValueError(f"DebugMode: stability_patience={patience}: must be at least 1")
        flags = (check_c_code, check_py_code, check_isfinite, check_preallocated_output)
        checks = [flag is None or bool(flag) for flag in flags]
        self._checks = (patience, *checks)
        self.inspector = Debugger(patience, *checks)

    @property
    def options(self) -> dict[str, Any]:
        return dict(zip(OPTIONS, self._checks, strict=True))


def _named(node: Apply) -> str:
    return f"{node.op} (made at {node.source})" if node.source is not None else str(node.op)


def _pairs(node: Apply, values: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(node.outputs, values, strict=True)


def _not_finite(value: Any) -> bool:
    """Tell whether a value contains NaN or infinity."""
    numbers = numbers_of(value)
    floating = numbers is not None and kind(numbers.dtype) in "fc"
    return floating and not np.isfinite(numbers).all()


def _copy(variable: Any, value: Any) -> Any:
    """Return a copy with the same strides: the choice of code may depend on them."""
    if not isinstance(value, np.ndarray) or not value.size:
        return variable.type.copy_value(value)
    low, high = np.lib.array_utils.byte_bounds(value)
    memory = np.empty(high - low, np.uint8)
    start = value.__array_interface__["data"][0] - low
    copy: Any = np.ndarray(value.shape, value.dtype, memory, start, value.strides)
    copy[...] = value
    return copy


def _twins(node: Apply, arguments: Sequence[Any]) -> list[Any]:
    """Copy all arguments of a node; equal objects are copied once."""
    copies: dict[int, Any] = {}
    variables = [*node.inputs, *node.outputs]
    for variable, value in zip(variables, arguments, strict=False):
        if id(value) not in copies:
            copies[id(value)] = None if value is None else _copy(variable, value)
    return [copies[id(value)] for value in arguments]


def _again(node: Apply, kept: Sequence[Any], k: int) -> Callable[[Perturb], Any]:
    """Return a function that computes an output by NumPy again, from copies of the inputs."""
    n = len(node.inputs)
    return lambda perturb: recompute(node, _twins(node, kept[:n]), perturb)[k]


def _written(node: Apply, arguments: Sequence[Any]) -> list[Any]:
    """Return the arrays that a node may write to."""
    spoiled = {i for places in node.op.destroy_map.values() for i in places}
    arrays = [arguments[i] for i in spoiled] + [*arguments[len(node.inputs) :]]
    return [x for x in arrays if isinstance(x, np.ndarray)]


def _overlaps(x: Any, others: Sequence[Any]) -> bool:
    return any(isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in others)


def _check_destroyed(node: Apply, kept: Sequence[Any], arguments: Sequence[Any]) -> None:
    written = _written(node, arguments)
    for i, x in enumerate(node.inputs):
        value = arguments[i]
        if isinstance(value, np.ndarray) and _overlaps(value, written):
            continue
        if isinstance(x.type, TensorType) and not x.type.values_eq(value, kept[i]):
            raise BadDestroyMap(
                f"{_named(node)} changed its input {i}, {x}, from {describe_contents(kept[i])} to "
                f"{describe_contents(value)}; its destroy_map is {dict(node.op.destroy_map)}"
            )


def _check_views(node: Apply, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    op, written = node.op, _written(node, arguments)
    for k, z in enumerate(results):
        if not isinstance(z, np.ndarray):
            continue
        declared = {*op.view_map.get(k, ()), *op.destroy_map.get(k, ())}
        for i, x in enumerate(arguments[: len(node.inputs)]):
            allowed = i in declared or not isinstance(x, np.ndarray) or _overlaps(x, written)
            if not allowed and _shares(z, x):
                raise BadViewMap(
                    f"{_named(node)}: output {k} shares memory with input {i}, "
                    f"{node.inputs[i]}; its view_map is {dict(op.view_map)}"
                )
        for j in range(k):
            if not declared and isinstance(results[j], np.ndarray) and _shares(z, results[j]):
                raise BadViewMap(f"{_named(node)}: outputs {j} and {k} share memory")


def _shares(x: Any, y: Any) -> bool:
    """Return whether two arrays have an element in common."""
    return bool(np.may_share_memory(x, y) and np.shares_memory(x, y))


def _layouts(node: Apply, kept: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the arguments of a node in arrays of other strides."""
    ways: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("arrays in Fortran order", lambda x: np.array(x, order="F")),
        ("every second element of arrays", _spaced),
        ("arrays read backwards", _reversed),
    )
    n = len(node.inputs)
    if not any(isinstance(x, np.ndarray) and x.ndim for x in kept[:n]):
        return
    for name, way in ways:
        arguments = _twins(node, kept)
        for i, x in enumerate(arguments[:n]):
            if isinstance(x, np.ndarray) and x.ndim and isinstance(node.inputs[i].type, TensorType):
                arguments[i] = way(x)
        yield name, arguments


def _spaced(x: Any) -> Any:
    wide = np.zeros([2 * n for n in x.shape], x.dtype)
    part = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    part[...] = x
    return part


def _reversed(x: Any) -> Any:
    back = tuple(slice(None, None, -1) for _ in x.shape)
    return np.array(x[back])[back]


def _guilty(node: Apply, kept: Sequence[Any]) -> str:
    """Describe the step of a fused op whose result differs from NumPy's."""
    for step in replay(node, kept[: len(node.inputs)]):
        wrong = _wrong_alone(step)
        if wrong:
            made = f", made at {step.node.source}," if step.node.source is not None else ""
            return f"; in it, the step {step.node.op}{made} differs when computed alone: {wrong}"
    return ""


def _wrong_alone(step: Replayed) -> str:
    """Describe how a step differs if a machine computes it alone."""
    inputs = [x.type() for x in step.node.inputs]
    node = step.node.op.make_node(*inputs)
    graph = FunctionGraph(inputs, node.outputs)
    found = compile_graph(graph, get_default_mode().policy("off", None)).run(list(step.inputs))
    for k, value in enumerate(found):
        wrong = disagreement(step.outputs[k], value, _again(node, step.inputs, k))
        if wrong:
            return wrong
    return ""


__all__ = [
    "BadDestroyMap",
    "BadOptimization",
    "BadThunkOutput",
    "BadViewMap",
    "DebugMode",
    "DebugModeError",
    "InvalidValueError",
    "RewriteCheckWarning",
    "StochasticOrder",
]
