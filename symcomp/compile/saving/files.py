"""``save`` and ``load``: write expressions and compiled functions to a file and read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from symcomp.compile.callable import Function
from symcomp.compile.container import Container
from symcomp.compile.maker import Input, Maker
from symcomp.compile.saving.archive import read_archive, write_archive
from symcomp.compile.saving.graphs import (
    MISUSE,
    GraphReader,
    GraphWriter,
    expect,
    member,
    pick,
)
from symcomp.compile.saving.values import mode_from, mode_to, name_of, text_of
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Variable
from symcomp.errors import LoadError, SaveError, SymcompError
from symcomp.lazy import lazy_module

placement = lazy_module("symcomp.gpu.placement")
device_errors = lazy_module("symcomp.gpu.errors")
FORMAT, VERSION = "symcomp", 1


def save(path: str | os.PathLike[str], outputs: Any) -> None:
    """Write expressions or compiled functions to a file.

    Parameters
    ----------
    path : path
        An existing file is replaced when all is written.
    outputs : Variable, Function, or list, tuple or dict (with str keys) of them
        Save the inputs of expressions with them, to have them when they are loaded. Shared
        variables are saved with their values; shared variables of several functions stay shared.

    Raises
    ------
    SaveError
        If something is not symcomp's own: an op of yours, a Python object as a constant.

    Notes
    -----
    The rewritten graph of a function is saved, so that the loaded function computes the same to the
    last bit. The format is described in the documentation, under "Saving and loading".

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> w = symcomp.shared(np.array([1.0, 2.0]), name="w")
    >>> path = os.path.join(tempfile.mkdtemp(), "model.zip")
    >>> symcomp.save(path, {"x": x, "y": T.dot(T.tanh(x), w)})
    >>> saved = symcomp.load(path)
    >>> slope = symcomp.grad(saved["y"], saved["x"])
    >>> symcomp.function([saved["x"]], slope)([0.0, 0.0])
    array([1., 2.])
    """
    writer = GraphWriter()
    variables: list[Variable] = []
    functions: list[Any] = []
    structure = _outline(outputs, writer, variables, functions)
    text = {
        "format": FORMAT,
        "version": VERSION,
        "outputs": structure,
        "graph": writer.graph([], list(dict.fromkeys(variables))),
        "functions": functions,
    }
    # Last, as writing the others adds shared variables.
    text["shared"] = writer.shared
    write_archive(path, text, writer.arrays)


def load(
    path: str | os.PathLike[str], device: str | Mapping[str, str] | None = None
) -> Any:
    """Read what ``save`` wrote.

    Parameters
    ----------
    path : path
    device : str or mapping of str to str, optional
        Where values and functions go that were on devices: "cpu", "cuda0", "emu" .. for all of
        them, or by the device that they were on; by default to that device. Those of the host
        stay there.

    Returns
    -------
    Variable, Function, or list, tuple or dict of them
        As it was saved. Gradients of loaded expressions can be taken; functions are ready to be
        called.

    Raises
    ------
    LoadError
        If the file was not written by ``save`` or is damaged, names an op that this version does
        not know, or claims sizes that it does not have. Nothing in a file is ever run.
    DeviceUnavailable
        If a device is needed that cannot be used here: load the file with another ``device``.
    OSError
        If there is no such file.

    Examples
    --------
    >>> import os, tempfile
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> path = os.path.join(tempfile.mkdtemp(), "square.zip")
    >>> symcomp.save(path, symcomp.function([x], x**2))
    >>> symcomp.load(path)(3.0)
    array(9.)
    """
    text, arrays = read_archive(path)
    placed = None if device is None else placement.Placement(device)
    try:
        return _read(path, expect(text, dict), arrays, placed)
    except (LoadError, device_errors.DeviceUnavailable):
        raise
    except (*MISUSE, SymcompError) as problem:
        # The JSON is valid, but describes an invalid graph or function.
        raise LoadError(
            f"{os.fspath(path)} describes what cannot be: {type(problem).__name__}: {problem}"
        ) from problem


def _read(
    path: str | os.PathLike[str], text: Any, arrays: list[np.ndarray], placed: Any
) -> Any:
    """Return the objects described by the text of a file."""
    if text.get("format") != FORMAT:
        raise LoadError(f"{os.fspath(path)} was not written by symcomp.save")
    if text.get("version") != VERSION:
        raise LoadError(
            f"{os.fspath(path)} is of version {text.get('version')!r} of the format; this symcomp "
            f"reads version {VERSION}: a newer symcomp may read it"
        )
    reader = GraphReader(text.get("shared"), arrays, placed)
    _, variables = reader.graph(text.get("graph"))
    functions = [_read_function(entry, reader) for entry in member(text, "functions", list)]
    return _restore(text.get("outputs"), variables, functions)


def _outline(
    value: Any, writer: GraphWriter, variables: list[Variable], functions: list[Any]
) -> Any:
    """Return the structure of the saved object, with numbers of variables and functions."""
    if isinstance(value, Function):
        functions.append(_write_function(value, writer))
        return {"function": len(functions) - 1}
    if isinstance(value, Variable):
        if value not in variables:
            variables.append(value)
        return {"variable": variables.index(value)}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_outline(v, writer, variables, functions) for v in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {k: _outline(v, writer, variables, functions) for k, v in value.items()}}
    raise SaveError(
        f"save: {value!r:.80} ({type(value).__name__}) is neither a variable nor a function, nor a "
        "list, tuple or dict (with str keys) of them"
    )


def _restore(text: Any, variables: list[Variable], functions: list[Function]) -> Any:
    ((kind, value),) = expect(text, dict).items() or [("nothing", None)]
    if kind == "function":
        return pick(functions, value)
    if kind == "variable":
        return pick(variables, value)
    if kind == "dict":
        entries = expect(value, dict).items()
        return {text_of(k): _restore(v, variables, functions) for k, v in entries}
    if kind in ("list", "tuple"):
        found = [_restore(v, variables, functions) for v in expect(value, list)]
        return found if kind == "list" else tuple(found)
    raise LoadError(f"{kind!r} is no kind of output")


def _write_function(function: Function, writer: GraphWriter) -> dict[str, Any]:
    maker = function.maker
    return {
        "graph": writer.graph(maker.fgraph.inputs, maker.fgraph.outputs),
        "inputs": [_write_input(spec, writer) for spec in maker.inputs],
        "structure": writer.value(maker.structure),
        "n_outputs": maker.n_outputs,
        "updated": list(maker.updated),
        "borrowed": list(maker.borrowed),
        "mode": mode_to(maker.mode),
        "name": maker.name,
        "nan_guard": maker.nan_guard,
        "trust_input": function.trust_input,
    }


def _write_input(spec: Input, writer: GraphWriter) -> dict[str, Any]:
    own = spec.shared is None and spec.container.value is not None
    return {
        "name": spec.name,
        "shared": None if spec.shared is None else writer.number(spec.shared),
        "value": writer.value(spec.container.value) if own else None,
        "implicit": spec.implicit,
        "has_default": spec.has_default,
        "mutable": spec.mutable,
        "strict": spec.strict,
        "allow_downcast": spec.allow_downcast,
    }


def _read_function(text: Any, reader: GraphReader) -> Function:
    text = expect(text, dict)
    inputs, outputs = reader.graph(text.get("graph"))
    entries = member(text, "inputs", list)
    updated = [expect(i, int) for i in member(text, "updated", list)]
    n_outputs = member(text, "n_outputs", int)
    if len(entries) != len(inputs) or n_outputs + len(updated) != len(outputs):
        raise LoadError("a function says more or fewer inputs and outputs than its graph has")
    specs = [_read_input(e, x, reader) for e, x in zip(entries, inputs, strict=True)]
    for i in updated:
        pick(specs, i)
    maker = Maker(
        FunctionGraph(inputs, outputs),
        specs,
        reader.value(text.get("structure")),
        n_outputs,
        updated,
        [expect(i, int) for i in member(text, "borrowed", list)],
        mode_from(text.get("mode")),
        text_of(member(text, "name", str)),
        member(text, "nan_guard", str),
    )
    return Function(maker, bool(text.get("trust_input")))


def _read_input(entry: Any, x: Variable, reader: GraphReader) -> Input:
    entry = expect(entry, dict)
    name = name_of(entry.get("name"))
    shared = None if entry.get("shared") is None else pick(reader.shared, entry["shared"])
    strict, downcast = bool(entry.get("strict")), entry.get("allow_downcast")
    if shared is not None:
        container = shared.container
        if not x.type.is_super(container.type):
            raise LoadError(f"input {name} is {x.type}, its shared variable {container.type}")
    else:
        value = reader.value(entry.get("value"))
        container = Container(x.type, value, name, strict, downcast)
    return Input(
        shared if shared is not None else x, name, x.type, container, shared,
        bool(entry.get("implicit")), bool(entry.get("has_default")), bool(entry.get("mutable")),
        strict, downcast,
    )  # fmt: skip
