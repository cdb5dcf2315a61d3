"""OpFromGraph: an op made of a graph, with derivatives that the user may override."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from symcomp.autodiff.lop import grad, zeros_for
from symcomp.autodiff.rop import Rop
from symcomp.autodiff.stable import Pin
from symcomp.compile.arguments import read_givens, refuse_inplace
from symcomp.compile.io import In
from symcomp.compile.shared import SharedVariable
from symcomp.core import dtype as dtypes
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import DisconnectedType, NullType
from symcomp.core.tensor import TensorType
from symcomp.core.walk import graph_inputs, rebuild
from symcomp.errors import GradientError, GraphError
from symcomp.ops.control.graph_op import GraphOp

DEFAULT = "default"


@record
class OpFromGraph(GraphOp):
    """y_1 .. y_m = graph(x_1 .. x_n): an expression made once and used like any op.

    Parameters
    ----------
    inputs, outputs : list of Variable
        The outputs may use shared variables (without a ``default_update``): these become further
        inputs, which calls do not pass. An input that no output needs is fine.
    inline : bool
        Put the graph in the place of the node before other rewrites, so that they see through it.
    lop_overrides, grad_overrides : override, or list of overrides, optional
        How it is differentiated in reverse mode, one of the two: ``"default"`` or None, by the
        graph; a callable ``(inputs, outputs, output_grads)`` (``grad_overrides``:
        ``(inputs, output_grads)``), each a list of variables, that returns the list of the
        gradients of the inputs; an OpFromGraph that takes the same, one after the other; a variable
        of DisconnectedType or NullType: all inputs are disconnected, or have no derivative. A list
        has an override for each input: one of the above, the callable or OpFromGraph returning one
        gradient, or None for zero. What a callable returns may be None, too, for zero. Outputs that
        the cost does not depend on have zeros for gradients.
    rop_overrides : override, or list of overrides, optional
        Likewise for forward mode: callables ``(inputs, eval_points)`` that return the tangents of
        the outputs; a list has an override for each output.
    connection_pattern : list of list of bool, optional
        ``[i][j]``: whether output j depends on input i, where the graph does not say it.
    name : str, optional
        The name of the op in prints.
    givens : mapping or pairs of (Variable, Variable), optional
        Replacements in ``outputs``, as for ``function``.

    Notes
    -----
    Its graph is compiled with the function that it is in, in the same mode. Equal ops on equal
    inputs are computed once: ops are equal if their graphs and overrides are.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, y = T.dscalars("x", "y")
    >>> product = symcomp.OpFromGraph([x, y], [x * y + x])
    >>> a = T.dscalar("a")
    >>> b = product(a, a)
    >>> [float(v) for v in symcomp.function([a], [b, symcomp.grad(b, a)])(3.0)]
    [12.0, 7.0]
    """

    shared: tuple[Any, ...] = field(compare=False)
    lop_overrides: Any
    grad_overrides: Any
    rop_overrides: Any
    connections: tuple[tuple[bool, ...], ...] | None
    name: str | None = field(compare=False)

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        inline: bool = False,
        lop_overrides: Any = None,
        grad_overrides: Any = None,
        rop_overrides: Any = None,
        connection_pattern: Sequence[Sequence[bool]] | None = None,
        name: str | None = None,
        *,
        givens: Any = None,
    ) -> None:
        inputs, outputs = _variables("inputs", inputs), _variables("outputs", outputs)
        if givens:
            pairs = read_givens(givens, [In(x) for x in inputs], strict=True)
            outputs = rebuild(outputs, pairs)
        refuse_inplace(outputs)
        shared = _shared_inputs(inputs, outputs)
        graph = ClosedGraph([*inputs, *shared], outputs)
        total = len(graph.inputs)
        by_input = _overrides("lop_overrides", lop_overrides, len(inputs), "inputs", total)
        by_gradient = _overrides("grad_overrides", grad_overrides, len(inputs), "inputs", total)
        if DEFAULT not in (by_input, by_gradient):
            raise ValueError("OpFromGraph: give lop_overrides or grad_overrides, not both")
        m = len(outputs)
        values = {
            "graph": graph,
            "inline": bool(inline),
            "shared": tuple(shared),
            "lop_overrides": by_input,
            "grad_overrides": by_gradient,
            "rop_overrides": _overrides("rop_overrides", rop_overrides, m, "outputs", m),
            "connections": _pattern(connection_pattern, len(inputs), graph),
            "name": name,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def as_inputs(self, *args: Any) -> list[Variable]:
        declared = len(self.graph.inputs) - len(self.shared)
        return super().as_inputs(*args, *(self.shared if len(args) == declared else ()))

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        if self.connections is not None:
            return [list(row) for row in self.connections]
        return [
            self._row(i, override, found)
            for i, (override, found) in enumerate(
                zip(self._reverse_overrides, self.graph.connection, strict=True)
            )
        ]

    def _row(self, i: int, override: Any, found: list[bool]) -> list[bool]:
        if isinstance(override, DisconnectedType):
            return [False] * len(found)
        return [True] * len(found) if _is_given(override) else found

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        """Return the reasons found in the graph; where the user overrides the derivative of an
        input or output, only a NullType makes it undefined.
        """
        n, m = len(self.graph.inputs), len(self.graph.outputs)
        rows = self.graph.undefined(forward) or [[""] * m for _ in range(n)]
        if forward:
            given = self.rop_overrides
            columns = given if isinstance(given, tuple) else (given,) * m
            overrides = [columns] * n
        else:
            overrides = [(override,) * m for override in self._reverse_overrides]
        found = [
            [_reason(why, override) for why, override in zip(row, given, strict=True)]
            for row, given in zip(rows, overrides, strict=True)
        ]
        return found if any(map(any, found)) else ()

    @property
    def _reverse_override(self) -> Any:
        return self.lop_overrides if self.grad_overrides == DEFAULT else self.grad_overrides

    @property
    def _reverse_overrides(self) -> tuple[Any, ...]:
        """The override of each input."""
        override = self._reverse_override
        n = len(self.graph.inputs)
        return override if isinstance(override, tuple) else (override,) * n

    # -- reverse mode

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        override = self._reverse_override
        if override == DEFAULT:
            return self._default_pullback(inputs, outputs, output_grads)
        filled = [
            zeros_for(y) if g is None else g for y, g in zip(outputs, output_grads, strict=True)
        ]
        groups = [list(inputs), list(outputs), filled]
        if self.grad_overrides != DEFAULT:
            del groups[1]
        who = f"the reverse override of {self}"
        if not isinstance(override, tuple):
            return _many(override, groups, inputs, f"{who} ({self._described_inputs()})")
        default: list[Any] = [None] * len(inputs)
        if DEFAULT in override:
            default = self._default_pullback(inputs, outputs, output_grads)
        return [
            given if item == DEFAULT else _one(item, groups, x, who)
            for x, item, given in zip(inputs, override, default, strict=True)
        ]

    def _described_inputs(self) -> str:
        names = [str(x) for x in self.graph.inputs]
        extra = f", the last {len(self.shared)} shared" if self.shared else ""
        return f"inputs {', '.join(names)}{extra}"

    def _default_pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        live = tuple(None if g is None else g.type for g in output_grads)
        return self._derived(("L", *live), self._lop_graph, inputs, outputs, output_grads)

    def _lop_graph(self, kinds: Sequence[Type | None]) -> tuple[list[Any], list[Any]]:
        """Build the gradients of the inputs, and the gradients of the outputs that they are
        expressions of.
        """
        seeds = [
            None if kind is None else kind(f"g{y.name or k}")
            for k, (kind, y) in enumerate(zip(kinds, self.graph.outputs, strict=True))
        ]
        # Known gradients must be complete; an output's is not if another output uses it. Those of
        # copies are.
        known = {
            Pin(k)(y): seed
            for k, (y, seed) in enumerate(zip(self.graph.outputs, seeds, strict=True))
            if seed is not None
        }
        wanted = [
            x
            for x, row in zip(self.graph.inputs, self.graph.connection, strict=True)
            if any(on and seed is not None for on, seed in zip(row, seeds, strict=True))
        ]
        slopes = grad(
            None,
            wanted,
            known_grads=known,
            disconnected_inputs="ignore",
            return_disconnected="None",
            null_gradients="return",
        )
        found = dict(zip(wanted, slopes, strict=True))
        return [found.get(x) for x in self.graph.inputs], seeds

    # -- forward mode

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        override = self.rop_overrides
        if override == DEFAULT:
            return self._default_pushforward(inputs, outputs, tangents)
        filled = [
            zeros_for(x) if dx is None else dx for x, dx in zip(inputs, tangents, strict=True)
        ]
        groups = [list(inputs), filled]
        who = f"the forward override of {self}"
        if not isinstance(override, tuple):
            return _many(override, groups, outputs, who)
        default: list[Any] = [None] * len(outputs)
        if DEFAULT in override:
            default = self._default_pushforward(inputs, outputs, tangents)
        return [
            given if item == DEFAULT else _one(item, groups, y, who)
            for y, item, given in zip(outputs, override, default, strict=True)
        ]

    def _default_pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        moving = tuple(None if dx is None else dx.type for dx in tangents)
        return self._derived(("R", *moving), self._rop_graph, inputs, outputs, tangents)

    def _rop_graph(self, kinds: Sequence[Type | None]) -> tuple[list[Any], list[Any]]:
        """Build the tangents of the outputs, and the tangents of the inputs that they are
        expressions of.
        """
        seeds = [
            None if kind is None else kind(f"d{x.name or i}")
            for i, (kind, x) in enumerate(zip(kinds, self.graph.inputs, strict=True))
        ]
        pairs = [(x, dx) for x, dx in zip(self.graph.inputs, seeds, strict=True) if dx is not None]
        wanted = [y for y in self.graph.outputs if not _is_discrete(y)]
        xs, dxs = [x for x, _ in pairs], [dx for _, dx in pairs]
        pushed = Rop(wanted, xs, dxs, "ignore", "None", null_gradients="return")
        found = dict(zip(wanted, pushed, strict=True))
        return [found.get(y) for y in self.graph.outputs], seeds

    # -- both modes

    @cached_property
    def _derivatives(self) -> dict[Any, tuple[OpFromGraph | None, list[int], list[Any]]]:
        """Cache of the ops that compute derivatives by default, by mode and types of the seeds."""
        return {}

    def _derived(
        self, key: tuple[Any, ...], build: Callable[..., Any], inputs: Any, outputs: Any, seeds: Any
    ) -> list[Any]:
        """Compute the derivatives that ``build`` expresses in the graph, for actual variables.

        They are one op again, of the inputs, outputs and seeds that they need.
        """
        given = [*inputs, *outputs, *seeds]
        if key not in self._derivatives:
            self._derivatives[key] = self._derived_op(key[0], *build(key[1:]))
        op, needed, results = self._derivatives[key]
        computed: Any = op(*(given[i] for i in needed)) if op is not None else []
        if op is not None and not op.multiple_outputs:
            computed = [computed]
        return [
            r() if isinstance(r, NullType) else None if r is None else computed[r] for r in results
        ]

    def _derived_op(
        self, mode: str, found: list[Any], seeds: list[Any]
    ) -> tuple[OpFromGraph | None, list[int], list[Any]]:
        """Return the op (or None), the positions of its arguments, and for each result its output,
        NullType or None.
        """
        stands = {
            y: y.clone()
            for y in self.graph.outputs
            if y.owner is not None and not isinstance(y, Constant)
        }
        leaves = [*self.graph.inputs, *(stands.get(y) for y in self.graph.outputs), *seeds]
        values: list[Any] = []
        results: list[Any] = []
        for r in found:
            null = r is not None and isinstance(r.type, NullType)
            results.append(r.type if null else None if r is None else len(values))
            if r is not None and not null:
                values.append(r)
        if not values:
            return None, [], results
        values = rebuild(values, stands)
        used = set(graph_inputs(values))
        first = {x: i for i, x in reversed(list(enumerate(leaves))) if x in used}
        needed = sorted(first.values())
        name = f"{mode}{{{self}}}"
        op = OpFromGraph([leaves[i] for i in needed], values, self.inline, name=name)
        return op, needed, results

    def with_graph(self, graph: ClosedGraph) -> OpFromGraph:
        """Return an op that computes another graph, differentiated by default."""
        return OpFromGraph(graph.inputs, graph.outputs, self.inline, name=self.name)

    def __str__(self) -> str:
        return self.name or super().__str__()


def _reason(why: str, override: Any) -> str:
    """Return why a derivative is missing where the graph says ``why``."""
    if override == DEFAULT:
        return why
    return override.reason if isinstance(override, NullType) else ""


def _is_discrete(x: Any) -> bool:
    return isinstance(x.type, TensorType) and dtypes.is_discrete(x.type.dtype)


# -- arguments


def _variables(what: str, given: Any) -> list[Variable]:
    if not isinstance(given, list | tuple):
        raise TypeError(f"OpFromGraph: {what} must be a list, got {given!r}")
    for position, x in enumerate(given):
        if not isinstance(x, Variable):
            raise TypeError(f"OpFromGraph: {what}[{position}] is {x!r}, not a variable")
    return list(given)


def _shared_inputs(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> list[Variable]:
    """Return the shared variables that the outputs need and that are not inputs."""
    known = set(inputs)
    found: list[Variable] = []
    for x in graph_inputs(outputs, known):
        if isinstance(x, SharedVariable) and x not in known:
            if x.default_update is not None:
                raise GraphError(
                    f"OpFromGraph: the shared variable {x} has a default_update, which an op "
                    "cannot do: pass it as an input, return the new value as an output, and "
                    "give that to the updates of function"
                )
            found.append(x)
    return found


def _pattern(
    given: Sequence[Sequence[bool]] | None, declared: int, graph: ClosedGraph
) -> tuple[tuple[bool, ...], ...] | None:
    """Return the connection pattern given by the user, with rows for the shared inputs."""
    if given is None:
        return None
    m = len(graph.outputs)
    if len(given) != declared or any(len(row) != m for row in given):
        raise ValueError(
            f"OpFromGraph: connection_pattern must have {declared} rows, one for each input, of "
            f"{m} booleans, one for each output; got {given!r}"
        )
    rows = [*given, *graph.connection[declared:]]
    return tuple(tuple(bool(on) for on in row) for row in rows)


def _overrides(who: str, given: Any, count: int, of: str, total: int) -> Any:
    """Return an override, or a tuple with one for each input (or output), with the default for
    shared ones.
    """
    if given is None:
        return DEFAULT
    if not isinstance(given, list | tuple):
        return _override(who, given)
    if len(given) not in (count, total):
        raise ValueError(f"OpFromGraph: {who} has {len(given)} elements for {count} {of}")
    items = [
        None if item is None else _override(f"{who}[{i}]", item) for i, item in enumerate(given)
    ]
    return (*items, *[DEFAULT] * (total - len(given)))


def _override(who: str, given: Any) -> Any:
    if isinstance(given, Variable) and isinstance(given.type, DisconnectedType | NullType):
        return given.type
    if given == DEFAULT or _is_given(given):
        return given
    raise TypeError(
        f"OpFromGraph: {who} is {given!r}; it must be 'default', a callable, an OpFromGraph, or a "
        "variable of DisconnectedType or NullType"
    )


def _is_given(override: Any) -> bool:
    """Tell whether an override is a function; types and variables are not."""
    return isinstance(override, Op) or (
        callable(override) and not isinstance(override, Type | Variable)
    )


def _called(override: Any, groups: Sequence[list[Any]]) -> Any:
    if isinstance(override, Op):
        return override(*(x for group in groups for x in group))
    return override(*groups)


def _many(override: Any, groups: Sequence[list[Any]], of: Sequence[Any], who: str) -> list[Any]:
    """Return the results of one override for all of ``of``."""
    if isinstance(override, Type):
        return [override() for _ in of]
    result = _called(override, groups)
    results = list(result) if isinstance(result, list | tuple) else [result]
    if len(results) != len(of):
        raise GradientError(f"{who} gave {len(results)} derivatives, {len(of)} are needed")
    for x, r in zip(of, results, strict=True):
        _checked(r, x, who)
    return results


def _one(override: Any, groups: Sequence[list[Any]], x: Any, who: str) -> Any:
    """Return the result of the override for ``x`` alone."""
    if override is None:
        return None
    if isinstance(override, Type):
        return override()
    result = _called(override, groups)
    alone = isinstance(result, list | tuple) and len(result) == 1
    return _checked(result[0] if alone else result, x, who)


def _checked(result: Any, x: Any, who: str) -> Any:
    if result is not None and not isinstance(result, Variable):
        raise GradientError(f"{who} gave {result!r} for {x}; it must be a variable, or None")
    return result
