"""Graphs as JSON: the roots, then a node for each op, all by number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symcomp.compile.container import Container
from symcomp.compile.features import features
from symcomp.compile.saving.values import (
    DEVICES,
    Decoder,
    Encoder,
    name_of,
    named_class,
    text_of,
)
from symcomp.compile.shared import SharedVariable, placed
from symcomp.core.closed import ClosedGraph
from symcomp.core.flat import flatten
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.tensor import TensorType
from symcomp.errors import LoadError, SaveError, SymcompError
from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.elemwise import Elemwise

devices = lazy_module("symcomp.gpu.placement")
# Exceptions that ops raise for arguments that do not fit.
MISUSE = (
    TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError,
    AssertionError,
)  # fmt: skip


class GraphWriter:
    """Writes graphs that share shared variables and arrays.

    Attributes
    ----------
    arrays : list of array
    shared : list of JSON
        The type, name and value of each shared variable.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.shared: list[Any] = []
        self._number_of: dict[Container, int] = {}
        self.value = Encoder(self._closed, self._variable, self._array)

    def graph(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> dict[str, Any]:
        """Return the graph between inputs and outputs as JSON."""
        roots, nodes, ins, outs = flatten(inputs, outputs)
        return {
            "roots": [self._root(x) for x in roots],
            "nodes": [self._node(*node) for node in nodes],
            "inputs": ins,
            "outputs": outs,
        }

    def _node(
        self, op: Any, inputs: Any, types: Any, names: Any, source: Any, sources: Any
    ) -> dict[str, Any]:
        return {
            "op": self.value(op),
            "inputs": inputs,
            "types": [self.value(kind) for kind in types],
            "names": names,
            "source": self.value(source),
            "sources": [self.value(s) for s in sources],
        }

    def _root(self, x: Variable) -> dict[str, Any]:
        if isinstance(x, SharedVariable):
            return self._variable(x)
        found = {"type": self.value(x.type), "name": x.name, "source": self.value(x.source)}
        if isinstance(x, Constant):
            found["data"] = self.value(x.data)
        return found

    def _closed(self, graph: ClosedGraph) -> dict[str, Any]:
        return self.graph(graph.inputs, graph.outputs)

    def _variable(self, x: Any) -> dict[str, Any]:
        if not isinstance(x, SharedVariable):
            raise SaveError(f"{x!r} ({type(x).__name__}) cannot be saved: it is no part of a graph")
        return {"variable": self.number(x)}

    def number(self, x: SharedVariable) -> int:
        """Return the number of a shared variable; variables with one container share it."""
        container = x.container
        if container not in self._number_of:
            self._number_of[container] = len(self.shared)
            value = container.read()
            device = getattr(container.type, "device", None)
            entry = {
                "class": f"{type(x).__module__}:{type(x).__name__}",
                "type": self.value(x.type),
                "name": x.name,
                "source": self.value(x.source),
                "strict": container.strict,
                "allow_downcast": container.allow_downcast,
                "value": self.value(value if device is None else value.get()),
                "default_update": None,
            }
            if device is not None:
                entry["device"] = device
            self.shared.append(entry)
            if x.default_update is not None:
                entry["default_update"] = self.graph([], [x.default_update])
        return self._number_of[container]

    def _array(self, array: np.ndarray) -> int:
        if array.dtype.kind not in "biufc":
            raise SaveError(f"an array of {array.dtype} cannot be saved: it does not hold numbers")
        self.arrays.append(array)
        return len(self.arrays) - 1


class GraphReader:
    """Reads what ``GraphWriter`` wrote.

    Parameters
    ----------
    shared : list of JSON
    arrays : list of array
    placement : symcomp.gpu.placement.Placement, optional
        Of values and work on devices; by default they go to the same device.
    """

    def __init__(self, shared: Any, arrays: Sequence[np.ndarray], placement: Any = None) -> None:
        self._placement = placement
        self.value = Decoder(self._closed, self._shared, arrays, lambda: self.placement)
        entries = [expect(entry, dict) for entry in expect(shared, list)]
        self.shared = [self._make_shared(entry) for entry in entries]
        for variable, entry in zip(self.shared, entries, strict=True):
            if entry.get("default_update") is not None:
                _, outputs = self.graph(entry["default_update"])
                variable.default_update = outputs[0]

    @cached_property
    def placement(self) -> Any:
        """Where values and work of devices go; made when a file has any."""
        return self._placement or devices.Placement()

    def graph(self, text: Any) -> tuple[list[Variable], list[Variable]]:
        """Return the inputs and outputs of a graph."""
        text = expect(text, dict)
        variables = [self._root(root) for root in member(text, "roots", list)]
        for node in member(text, "nodes", list):
            variables.extend(self._node(expect(node, dict), variables))
        ends = [
            [pick(variables, i) for i in member(text, side, list)] for side in ("inputs", "outputs")
        ]
        return ends[0], ends[1]

    def _root(self, root: Any) -> Variable:
        root = expect(root, dict)
        if "variable" in root:
            return self._shared(root["variable"])
        kind = self.value.type(root.get("type"))
        name, source = name_of(root.get("name")), self.value(root.get("source"))
        if "data" in root:
            data = kind.filter(self.value(root["data"]), strict=True)
            if isinstance(kind, TensorType):
                data.flags.writeable = False
            return kind.constant_class(kind, data, name, source)
        return kind.variable_class(kind, name=name, source=source)

    def _node(self, text: dict[str, Any], variables: Sequence[Variable]) -> Sequence[Variable]:
        op: Any = self.value.op(text.get("op"))
        inputs = [pick(variables, i) for i in member(text, "inputs", list)]
        types = [self.value.type(kind) for kind in member(text, "types", list)]
        if type(op).__module__.startswith(DEVICES):
            features()  # lowerings for devices of ops that were imported for this file
            placed = self.placement.node(op, inputs)
            if isinstance(placed, list):
                _require_types(op, inputs, [x.type for x in placed], types)
                return placed
            op = placed
        try:
            # Not Elemwise.as_inputs, which converts by the configuration: that may have changed
            # since.
            prepared = inputs if isinstance(op, Elemwise) else op.as_inputs(*inputs)
            wanted = op.output_types(*inputs)
        except (*MISUSE, SymcompError) as problem:
            raise LoadError(f"{op} does not take {_shown(inputs)}: {problem}") from None
        if prepared != inputs:
            raise LoadError(f"{op} does not take {_shown(inputs)} as they are")
        _require_types(op, inputs, wanted, types)
        node = Apply(op, inputs, types, self.value(text.get("source")))
        rows = (member(text, "names", list), member(text, "sources", list))
        for out, name, source in zip(node.outputs, *rows, strict=False):
            out.name = name_of(name)
            out.source = self.value(source)
        return node.outputs

    def _closed(self, text: Any) -> ClosedGraph:
        return ClosedGraph(*self.graph(text))

    def _make_shared(self, entry: dict[str, Any]) -> SharedVariable:
        kind: Any = self.value.type(entry.get("type"))
        value = self.value(entry.get("value"))
        cls = named_class(entry.get("class"), SharedVariable)
        name = name_of(entry.get("name"))
        options: Any = (entry.get("strict"), entry.get("allow_downcast"))
        place = "cpu"
        if entry.get("device") is not None:
            place = self.placement.of(text_of(member(entry, "device", str)))
        made: SharedVariable = placed(cls, place, kind, value, name, *options)
        made.source = self.value(entry.get("source"))
        return made

    def _shared(self, number: Any) -> SharedVariable:
        found: SharedVariable = pick(self.shared, number)
        return found


def expect(value: Any, kind: type) -> Any:
    """Return ``value`` if it is of ``kind``, else raise; a bool is no int."""
    if type(value) is not kind:
        raise LoadError(f"{value!r:.80} stands where a {kind.__name__} is expected")
    return value


def member(text: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of an object; raise if it is missing."""
    if name not in text:
        raise LoadError(f"{name!r} is missing in {text!r:.80}")
    return expect(text[name], kind)


def pick(values: Sequence[Any], number: Any) -> Any:
    """Return the value with this number."""
    if type(number) is not int or not 0 <= number < len(values):
        raise LoadError(f"there is no value number {number!r} at that place, only {len(values)}")
    return values[number]


def _require_types(op: Any, inputs: Sequence[Variable], found: Any, said: Any) -> None:
    """Raise unless the types of outputs equal the file's, but for lengths that are unknown."""
    fits = len(found) == len(said) and all(
        a.is_super(b) or b.is_super(a) for a, b in zip(found, said, strict=True)
    )
    if not fits:
        raise LoadError(f"{op} of {_shown(inputs)} is said to be {said}, but is {found}")


def _shown(inputs: Sequence[Variable]) -> str:
    return f"({', '.join(str(x.type) for x in inputs)})"
