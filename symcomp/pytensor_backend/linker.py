"""The linker: a whole graph of PyTensor is one function of symcomp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np
from pytensor.graph.traversal import ancestors
from pytensor.link.basic import JITLinker
from pytensor.scalar.basic import ScalarType

from symcomp.compile.c_function import CFunction
from symcomp.compile.callable import Function
from symcomp.compile.function import function
from symcomp.core.pause import without_garbage_collection
from symcomp.core.walk import toposort
from symcomp.ops.random.state import halved_words_of
from symcomp.pytensor_backend.dispatch import graph_of, streams, variable_of
from symcomp.pytensor_backend.fallback import Perform, title_of
from symcomp.pytensor_backend.types import (
    generator_of,
    is_generator,
    is_pcg64,
)


class SymcompLinker(JITLinker):
    """Compiles graphs of PyTensor by symcomp.

    Parameters
    ----------
    mode : symcomp.Mode or str, optional
        How symcomp compiles; by default ``symcomp.config.mode``.
    profile : bool, str or symcomp.ProfileStats, optional
        As for ``symcomp.function``.
    """

    required_rewrites = ("minimum_compile",)
    incompatible_rewrites = (
        "cxx_only",
        "BlasOpt",
        "inplace",
        "local_careduce_fusion",
        "scan_reduce_trace_prealloc",
    )

    def __init__(self, *args: Any, mode: Any = None, profile: Any = None, **kwargs: Any) -> None:
        self.mode, self.profile = mode, profile
        super().__init__(*args, **kwargs)

    def clone(self, allow_gc: bool | None = None) -> SymcompLinker:
        """Return a linker like this one."""
        return type(self)(allow_gc=allow_gc, mode=self.mode, profile=self.profile)

    def accept(self, fgraph: Any, no_recycling: Any = None, profile: Any = None) -> Any:
        """Return this linker, or one like it, with a graph to compile."""
        if self.fgraph is not None and self.fgraph is not fgraph:
            return self.clone(self.allow_gc).accept(fgraph, no_recycling, profile)
        return super().accept(fgraph, no_recycling, profile)

    def fgraph_convert(self, fgraph: Any, input_storage: Any, **kwargs: Any) -> Compiled:
        """Compile a graph."""
        pairs = zip(fgraph.inputs, input_storage, strict=True)
        given = [s[0] for v, s in pairs if is_generator(v.type)]
        known = all(is_pcg64(g) for g in given if g is not None)
        return Compiled(fgraph, self.mode, self.profile, known)

    def jit_compile(self, fn: Compiled) -> Compiled:
        """Return the graph, which is compiled already."""
        return fn

    def create_thunk_inputs(self, storage_map: Any) -> list[Any]:
        """Return the cells of the inputs."""
        return [storage_map[v] for v in self.fgraph.inputs]

    def create_jitable_thunk(
        self, compute_map: Any, order: Any, input_storage: Any, output_storage: Any,
        storage_map: Any,
    ) -> tuple[list[Any], list[Any], Compiled]:  # fmt: skip
        """Return the one thunk of the graph.

        Errors come as symcomp raises them, with the variable of PyTensor and the user's line.
        """
        compiled = self.fgraph_convert(self.fgraph, input_storage)
        inputs = self.create_thunk_inputs(storage_map)
        outputs = [storage_map[v] for v in self.fgraph.outputs]
        run = compiled.direct

        def thunk() -> None:
            # There are as many results as cells; a strict zip takes longer.
            for cell, value in zip(outputs, run(*[x[0] for x in inputs]), strict=False):
                cell[0] = value

        thunk.inputs, thunk.outputs, thunk.lazy = inputs, outputs, False  # type: ignore[attr-defined]
        return [thunk], [], compiled


class Compiled:
    """A graph of PyTensor as a function of symcomp, which takes and gives PyTensor's values.

    Generators that are PCG64 are arrays in it. When another one comes, the graph is compiled once
    more, with generators as Python objects and draws by ``perform``.

    Attributes
    ----------
    function : symcomp.Function
        What computes; ``function.profile`` and ``function.program`` tell of it.
    """

    def __init__(self, fgraph: Any, mode: Any, profile: Any, with_streams: bool = True) -> None:
        self._fgraph, self._mode, self._profile = fgraph, mode, profile
        self._readers = [_reader(v) for v in fgraph.inputs]
        self._sources = [_source_of(v, fgraph.inputs) for v in fgraph.outputs]
        self._has_generators = any(is_generator(v.type) for v in fgraph.inputs)
        self._plain = not any(
            is_generator(v.type) or isinstance(v.type, ScalarType)
            for v in (*fgraph.inputs, *fgraph.outputs)
        )
        self._with_objects: Function | None = None
        self._with_streams: Function | None = None
        if with_streams or not self._has_generators:
            self._with_streams = self._made(True)
        else:
            self._with_objects = self._made(False)

    @property
    def function(self) -> Function:
        found = self._with_streams or self._with_objects
        assert found is not None
        return found

    @property
    def direct(self) -> Callable[..., Sequence[Any]]:
        """The function itself if PyTensor's values are symcomp's, else this object."""
        return self.function if self._plain else self

    def __call__(self, *values: Any) -> Sequence[Any]:
        if self._plain:
            return self.function(*values)
        generators = [x for v, x in self._pairs(values) if is_generator(v.type)]
        if all(is_pcg64(g) for g in generators):
            return self._call_with_streams(values)
        if self._with_objects is None:
            self._with_objects = self._made(False)
        found = self._with_objects(*(_array(v, x) for v, x in self._pairs(values)))
        pairs = zip(self._fgraph.outputs, found, strict=True)
        return [_value(v, x) for v, x in pairs]

    def _pairs(self, values: Sequence[Any]) -> list[tuple[Any, Any]]:
        return list(zip(self._fgraph.inputs, values, strict=True))

    def _call_with_streams(self, values: Sequence[Any]) -> list[Any]:
        if self._with_streams is None:
            self._with_streams = self._made(True)
        pairs = zip(self._readers, values, strict=True)
        found = self._with_streams(*(read(x) for read, x in pairs))
        results = []
        for v, source, z in zip(self._fgraph.outputs, self._sources, found, strict=True):
            if is_generator(v.type):
                seeds = None if source is None else values[source].bit_generator.seed_seq
                results.append(generator_of(z, seeds))
            else:
                results.append(_value(v, z))
        return results

    def _made(self, with_streams: bool) -> Function:
        """Compile, in a context of its own: translations of inner graphs read it."""
        return copy_context().run(self._compile, with_streams)

    @without_garbage_collection
    def _compile(self, with_streams: bool) -> Function:
        streams.set(with_streams)
        given = [variable_of(v) for v in self._fgraph.inputs]
        outputs = graph_of(self._fgraph, given)
        return function(
            given,
            outputs,
            mode=self._mode,
            name=getattr(self._fgraph, "name", None) or "pytensor",
            profile=self._profile,
            accept_inplace=True,
            on_unused_input="ignore",
            trust_input=True,
        )

    def cfunc(self, values: Sequence[Any], fixed: Sequence[int]) -> CFunction:
        """Return the graph as a function of C, without the inputs that are ``fixed``."""
        if not self._plain:
            raise TypeError("cfunc: only arrays can be passed from C, no generators or numbers")
        return self.function.cfunc(*values, fixed=fixed)

    def fallbacks(self) -> dict[str, int]:
        """Count the nodes of each kind that PyTensor's ``perform`` computes."""
        found: dict[str, int] = {}
        for node in nodes_of(self.function.maker.fgraph):
            if isinstance(node.op, Perform):
                title = title_of(node.op.op)
                found[title] = found.get(title, 0) + 1
        return found


def nodes_of(graph: Any) -> Any:
    """Yield the nodes of a graph, and of the graphs in them."""
    pending = [graph.toposort()]
    while pending:
        for node in pending.pop():
            yield node
            for inputs, outputs in node.op.inner_graphs_of(node):
                pending.append(_between(inputs, outputs))


def _between(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    return toposort(list(outputs), set(inputs))


def _reader(v: Any) -> Callable[[Any], Any]:
    """From a value of a variable to that of the variable that stands for it."""
    if is_generator(v.type):
        return halved_words_of
    return lambda x: _array(v, x)


def _array(v: Any, x: Any) -> Any:
    return np.asarray(x, v.type.dtype) if isinstance(v.type, ScalarType) else x


def _value(v: Any, x: Any) -> Any:
    """Return a result as PyTensor expects it: a number where its type is one."""
    return x[()] if isinstance(v.type, ScalarType) else x


def _source_of(v: Any, inputs: Sequence[Any]) -> int | None:
    """Find the input whose generator an output goes on with."""
    if not is_generator(v.type):
        return None
    position = {x: i for i, x in enumerate(inputs)}
    found = (position[x] for x in ancestors([v]) if x in position and is_generator(x.type))
    return next(found, None)


__all__ = ["Compiled", "SymcompLinker"]
