"""From a graph of PyTensor to one of symcomp, node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
from pytensor.graph.basic import Constant
from pytensor.scalar.basic import ScalarType

from symcomp.core.source import Source, made_for
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import cast_to, constant
from symcomp.ops.random.state import HALVED, halved_words_of
from symcomp.ops.shapes.reshaping import specify_shape, unbroadcast
from symcomp.pytensor_backend.fallback import Perform, note_fallback
from symcomp.pytensor_backend.types import (
    GENERIC,
    is_generator,
    is_pcg64,
    is_tensor,
    tensor_type,
    type_of,
)

#: Whether generators are arrays in the graph that is being translated; see ``types``.
streams: ContextVar[bool] = ContextVar("streams", default=True)

#: Functions, as ``translate`` has them, for ops of libraries that are not imported here: by module
#: and class.
OF_LIBRARIES: dict[tuple[str, str], Callable[..., Any]] = {}


@singledispatch
def translate(op: Any, node: Any, *args: Any) -> Any:
    """Return what stands for the outputs of a PyTensor node, of what stands for its inputs.

    Functions for more ops are added by ``translate.register(TheOp)``; an op without one, or whose
    function returns NotImplemented, is computed by its own ``perform``.

    Parameters
    ----------
    op : pytensor.graph.op.Op
    node : pytensor.graph.basic.Apply
    *args : TensorVariable or Variable
        One for each input: a tensor for an array, a number or a random generator (six words, see
        ``symcomp.ops.random.state``), a variable of any Python object for the rest.

    Returns
    -------
    TensorVariable or Variable, or a sequence of them
        One for each output; dtype and static shape are then brought to PyTensor's.
    """
    found = OF_LIBRARIES.get((type(op).__module__, type(op).__name__))
    return NotImplemented if found is None else found(op, node, *args)


def by_perform(op: Any, node: Any, args: Sequence[Any]) -> Any:
    """Compute a node by PyTensor's own ``perform``."""
    note_fallback(op)
    return Perform(op, node, streams.get())(*args)


def convert(inputs: Sequence[Any], outputs: Sequence[Any], order: Iterable[Any], given: Any) -> Any:
    """Translate the nodes of a graph, in order.

    Parameters
    ----------
    inputs, outputs : sequence of pytensor.graph.basic.Variable
    order : iterable of pytensor.graph.basic.Apply
        The nodes between, each after the nodes that it needs.
    given : sequence of TensorVariable or Variable
        What stands for ``inputs``.

    Returns
    -------
    list of TensorVariable or Variable
        What stands for ``outputs``.
    """
    found = dict(zip(inputs, given, strict=True))

    def value_of(v: Any) -> Any:
        if v not in found:
            if not isinstance(v, Constant):
                raise TypeError(f"{v} ({v.type}) is neither an input of the graph nor computed")
            found[v] = constant_of(v)
        return found[v]

    for node in order:
        args = [value_of(v) for v in node.inputs]
        with made_for(source_of(node)):
            made = translate(node.op, node, *args)
            if made is NotImplemented:
                made = by_perform(node.op, node, args)
            made = made if isinstance(made, list | tuple) else [made]
            for v, s in zip(node.outputs, made, strict=True):
                found[v] = named(fitted(s, v), v.name)
    return [value_of(v) for v in outputs]


def graph_of(fgraph: Any, given: Sequence[Any]) -> Any:
    """Translate a function graph of PyTensor for given inputs."""
    return convert(fgraph.inputs, fgraph.outputs, fgraph.toposort(), given)


def constant_of(v: Any) -> Any:
    """Return a constant that stands for one of PyTensor."""
    if is_tensor(v.type):
        return constant(np.asarray(v.data, v.type.dtype))
    if streams.get() and is_generator(v.type):
        if not is_pcg64(v.data):
            raise TypeError(f"the constant {v} is a generator that is no PCG64")
        return HALVED.make_constant(halved_words_of(v.data))
    return GENERIC.make_constant(v.data)


def fitted(s: Any, v: Any) -> Any:
    """``s`` with the dtype of a PyTensor variable and at least what its type says of the shape.

    An axis that symcomp alone knows to have length 1 is made one of unknown length: it does not
    broadcast in PyTensor, where lengths that differ when the function runs are an error.
    """
    if not is_tensor(v.type):
        return s
    kind = tensor_type(v.type)
    if s.dtype != kind.dtype:
        s = cast_to(s, kind.dtype)
    if isinstance(v.type, ScalarType):  # in a Composite it stands for elements of tensors
        return s
    if s.ndim != kind.ndim:
        raise TypeError(f"{v.owner.op}: made {s.type} for {v} of type {v.type}")
    lengths = list(zip(s.type.shape, kind.shape, strict=True))
    if any(k is not None and n is None for n, k in lengths):
        s = specify_shape(s, [k if n is None else None for n, k in lengths])
    hidden = [axis for axis, (n, k) in enumerate(lengths) if n == 1 and k is None]
    return unbroadcast(s, *hidden) if hidden else s


def named(s: Any, name: str | None) -> Any:
    """``s``, which messages call as PyTensor's variable if it has no name yet."""
    if name is not None and s.name is None and s.owner is not None:
        s.name = name
    return s


# -- where a variable was made

_LIBRARIES = tuple(
    str(Path(folder).resolve())
    for folder in (*pytensor.__path__, Path(pytensor.__file__).parent.parent / "pymc")
)


def source_of(node: Any) -> Source | None:
    """Find the user's line that made a node: the last outside of PyTensor and PyMC."""
    for out in node.outputs:
        for trace in getattr(out.tag, "trace", None) or ():
            frames = [f for f in trace if not f[0].startswith(_LIBRARIES)] or list(trace)
            if frames:
                file, line, function = frames[-1][:3]
                return Source(str(file), int(line), str(function))
    return None


def variable_of(v: Any) -> Any:
    """Return a new input that stands for a variable of PyTensor."""
    return type_of(v.type, streams.get()).make_variable(v.name)


def like(new: Any, old: Any) -> Any:
    """``new`` with dtype and static shape of ``old``."""
    kind = old.type
    if not isinstance(kind, TensorType):
        return new
    new = cast_to(new, kind.dtype)
    lengths = list(zip(new.type.shape, kind.shape, strict=True))
    if any(k is not None and n is None for n, k in lengths):
        new = specify_shape(new, [k if n is None else None for n, k in lengths])
    return new
