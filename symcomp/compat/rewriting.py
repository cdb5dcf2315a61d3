"""Optimizers in Theano's form (``theano.gof.opt``): local ones become rules of the engine, global
ones change a whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from symcomp.compat.graph import as_string
from symcomp.compat.missing import StandIn
from symcomp.compat.op import Op as OldOp
from symcomp.core.graph import FunctionGraph as CoreGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.op import Op
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.rule import Kind, Rule, RuleSet

# The graph that an optimizer is working on: the value of ``node.fgraph``, and the source of
# ``variable.clients``.
_graph: ContextVar[CoreGraph | None] = ContextVar("graph", default=None)


class Feature:
    """A feature of Theano's graphs; symcomp's graphs always have these functions."""

    def __init__(self, *parameters: Any, **named: Any) -> None:
        self.parameters = parameters, named


FEATURES: dict[str, Any] = {
    name: type(name, (Feature,), {"__doc__": "Nothing is to be done: graphs do it always."})
    for name in (
        "DestroyHandler", "NoOutputFromInplace", "PreserveNames", "PreserveVariableAttributes",
        "ReplaceValidate", "ShapeFeature", "Validator",
    )
}  # fmt: skip


@contextmanager
def looking_at(graph: CoreGraph) -> Iterator[GraphView]:
    """Yield the graph with Theano's methods, while an optimizer works on it."""
    token = _graph.set(graph)
    try:
        yield graph if isinstance(graph, FunctionGraph) else Attached(graph)
    finally:
        _graph.reset(token)


def graph_of(part: Apply | Variable) -> GraphView:
    """Return the graph that a node or variable belongs to, while an optimizer works on it."""
    graph = _graph.get()
    if graph is None or not (part in graph.nodes or part in graph.clients):
        raise AttributeError(f"{part} is in no graph that is being rewritten")
    return graph if isinstance(graph, FunctionGraph) else Attached(graph)


def clients_of(variable: Variable) -> list[tuple[Any, int]]:
    """Return the (node, input position) pairs that use a variable, while an optimizer works on its
    graph.
    """
    return list(graph_of(variable).clients[variable])


class GraphView:
    """Methods of Theano's FunctionGraph that symcomp's lacks."""

    clients: Any
    inputs: list[Variable]
    outputs: list[Variable]

    def replace_validate(self, r: Variable, new_r: Variable, reason: Any = None) -> None:
        """Use ``new_r`` wherever ``r`` is used."""
        self.replace_all_validate([(r, new_r)], reason)

    def replace_all_validate(
        self, replacements: Iterable[tuple[Variable, Variable]], reason: Any = None
    ) -> None:
        """Do several replacements."""
        self.replace_all(replacements)  # type: ignore[attr-defined]

    def attach_feature(self, feature: Any) -> None:
        """Do nothing for Theano's own features, which are always active; refuse others."""
        if type(feature) not in FEATURES.values():
            name = type(feature).__name__
            raise NotImplementedError(f"theano.gof.FunctionGraph.attach_feature: {name}")

    def __str__(self) -> str:
        return f"[{', '.join(as_string(self.inputs, self.outputs))}]"

    __repr__ = __str__


class FunctionGraph(GraphView, CoreGraph):
    """``theano.gof.FunctionGraph``: symcomp's, with Theano's arguments and methods."""

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        features: Iterable[Any] | None = None,
        clone: bool = True,
    ) -> None:
        CoreGraph.__init__(self, inputs, outputs, clone)
        for feature in features or ():
            self.attach_feature(feature)

    def replace(
        self, r: Variable, new_r: Variable, reason: Any = None, verbose: Any = None
    ) -> None:
        """Use ``new_r`` wherever ``r`` is used."""
        CoreGraph.replace(self, r, new_r)

    def clone(self) -> FunctionGraph:
        """Return an independent copy."""
        return FunctionGraph(self.inputs, self.outputs)


class Attached(GraphView):
    """A graph of symcomp, with Theano's methods."""

    def __init__(self, graph: CoreGraph) -> None:
        self.graph = graph

    def replace(self, r: Variable, new_r: Variable, reason: Any = None) -> None:
        """Use ``new_r`` wherever ``r`` is used."""
        self.graph.replace(r, new_r)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attached) and self.graph is other.graph

    def __hash__(self) -> int:
        return hash(self.graph)


# -- global optimizers


class Optimizer:
    """Base of optimizers that change a whole graph: a subclass has ``apply(fgraph)``."""

    name: str | None = None

    def add_requirements(self, fgraph: Any) -> None:
        """Attach the features that ``apply`` needs."""

    def apply(self, fgraph: Any) -> Any:
        """Change the graph."""
        raise NotImplementedError(f"{type(self).__name__} has no apply(fgraph)")

    def optimize(self, fgraph: CoreGraph, *args: Any, **kwargs: Any) -> Any:
        """Change the graph: first ``add_requirements``, then ``apply``."""
        with looking_at(getattr(fgraph, "graph", fgraph)) as graph:
            self.add_requirements(graph)
            return self.apply(graph, *args, **kwargs)

    def __call__(self, fgraph: CoreGraph) -> Any:
        return self.optimize(fgraph)

    def __str__(self) -> str:
        return self.name or type(self).__name__


class FromFunctionOptimizer(Optimizer):
    """A global optimizer that calls a function of the graph."""

    def __init__(self, fn: Callable[[Any], Any], requirements: Sequence[Callable] = ()) -> None:
        self.apply = fn  # type: ignore[method-assign, assignment]
        self.requirements = requirements
        self.name = self.__name__ = getattr(fn, "__name__", "optimizer")

    def add_requirements(self, fgraph: Any) -> None:
        """Call the requirements."""
        for requirement in self.requirements:
            requirement(fgraph)


optimizer = inplace_optimizer = FromFunctionOptimizer


class SeqOptimizer(Optimizer):
    """Several optimizers in sequence."""

    def __init__(self, *opts: Any, **kw: Any) -> None:
        self.opts = list(opts[0]) if len(opts) == 1 and isinstance(opts[0], list | tuple) else opts
        self.name = kw.get("name")

    def apply(self, fgraph: Any) -> None:
        """Apply each of them."""
        for each in self.opts:
            each.optimize(fgraph)


class MergeOptimizer(Optimizer):
    """Merges equal computations."""

    def apply(self, fgraph: Any) -> None:
        """Merge."""
        Engine(getattr(fgraph, "graph", fgraph), RuleSet([]), "merge", folding=False).run()


# -- local optimizers


class LocalOptimizer:
    """Base of optimizers of a single node: a subclass has ``transform(node)``.

    ``transform`` returns False or None (no change), or a list of variables that replace the node's
    outputs, or a dict from outputs to replacements. ``tracks()`` returns the ops and classes of ops
    to visit; None: all.
    """

    name: str | None = None

    def tracks(self) -> Sequence[Any] | None:
        """Return the ops, and classes of ops, to visit."""
        return None

    def transform(self, node: Apply) -> Any:
        """Return the replacements of a node's outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no transform(node)")

    def add_requirements(self, fgraph: Any) -> None:
        """Attach the features that ``transform`` needs."""

    def __str__(self) -> str:
        return self.name or getattr(self, "__name__", None) or type(self).__name__


class FromFunctionLocalOptimizer(LocalOptimizer):
    """A local optimizer that calls a function of the node."""

    def __init__(
        self, fn: Callable[[Apply], Any], tracks: Any = None, requirements: Sequence[Callable] = ()
    ) -> None:
        self.transform = fn  # type: ignore[method-assign, assignment]
        self.requirements = requirements
        self._tracks = None if tracks is None else list(tracks)
        self.__name__ = getattr(fn, "__name__", "local_optimizer")
        self.__doc__ = fn.__doc__

    def tracks(self) -> Sequence[Any] | None:
        """Return the ops, and classes of ops, to visit."""
        return self._tracks

    def add_requirements(self, fgraph: Any) -> None:
        """Call the requirements."""
        for requirement in self.requirements:
            requirement(fgraph)


def local_optimizer(
    tracks: Sequence[Any] | None, inplace: bool = False, requirements: Sequence[Callable] = ()
) -> Callable[[Callable[[Apply], Any]], FromFunctionLocalOptimizer]:
    """Make a local optimizer of the function below, called with nodes of these ops.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.rewriting import FunctionGraph, TopoOptimizer, local_optimizer
    >>> @local_optimizer([T.Elemwise])
    ... def local_double_negation(node):
    ...     inner = node.inputs[0].owner
    ...     if node.op == T.neg.op and inner is not None and inner.op == T.neg.op:
    ...         return [inner.inputs[0]]
    >>> x = T.dvector("x")
    >>> graph = FunctionGraph([x], [-(-x) * 2])
    >>> TopoOptimizer(local_double_negation).optimize(graph)
    >>> [str(node.op) for node in graph.toposort()]
    ['DimShuffle{x}', 'mul']
    """
    if tracks is not None and len(tracks) == 0:
        raise ValueError("local_optimizer: tracks is empty: no node would be looked at")
    return lambda fn: FromFunctionLocalOptimizer(fn, tracks, requirements)


class LocalOptGroup(LocalOptimizer):
    """The first of several local optimizers that applies."""

    def __init__(self, *optimizers: Any, **kw: Any) -> None:
        only = optimizers[0] if len(optimizers) == 1 else optimizers
        self.opts = list(only) if isinstance(only, list | tuple) else [only]
        self.name = kw.get("name")

    def tracks(self) -> Sequence[Any] | None:
        """Return what any of them tracks."""
        every = [each.tracks() for each in self.opts]
        return None if None in every else [kind for tracks in every for kind in tracks]

    def transform(self, node: Apply) -> Any:
        """Return the result of the first that applies."""
        for each in self.opts:
            found = each.transform(node) if looks_at(each, node) else None
            if found:
                return found
        return False


class OpSub(LocalOptimizer):
    """Replaces one op by another, on the same inputs."""

    def __init__(self, op1: Any, op2: Any, transfer_tags: bool = True) -> None:
        self.op1, self.op2 = op1, op2

    def tracks(self) -> Sequence[Any]:
        """Return the op that is replaced."""
        return [self.op1]

    def transform(self, node: Apply) -> Any:
        """Return the outputs of the other op."""
        if node.op != self.op1:
            return False
        return _as_list(self.op2(*node.inputs))

    def __str__(self) -> str:
        return f"{self.op1} -> {self.op2}"


class OpRemove(LocalOptimizer):
    """Replaces the outputs of an op by its inputs."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def tracks(self) -> Sequence[Any]:
        """Return the op that is removed."""
        return [self.op]

    def transform(self, node: Apply) -> Any:
        """Return the inputs."""
        return list(node.inputs) if node.op == self.op else False

    def __str__(self) -> str:
        return f"{self.op}(x) -> x"


def _as_list(found: Any) -> list[Variable]:
    return list(found) if isinstance(found, list | tuple) else [found]


# -- local optimizers as rules


def looks_at(local: LocalOptimizer, node: Apply) -> bool:
    """Tell whether a local optimizer tracks a node."""
    tracks = local.tracks()
    return tracks is None or any(_is_tracked(kind, node.op) for kind in tracks)


def _is_tracked(kind: Any, op: Op) -> bool:
    if isinstance(kind, type | StandIn):
        return isinstance(op, kind)  # type: ignore[arg-type]
    return bool(op == kind)


def _kinds(tracks: Sequence[Any] | None) -> tuple[Kind, ...]:
    """Return the engine's keys of the tracked nodes; they may include others."""
    found: list[Kind] = []
    for kind in tracks if tracks is not None else [Op]:
        if isinstance(kind, type) and issubclass(kind, OldOp):
            found.append(kind)
        elif isinstance(kind, OldOp):
            found.append(type(kind))
        else:
            return (Elemwise, Op)
    return tuple(found)


def as_rule(local: LocalOptimizer, name: str, tags: Iterable[str] = ()) -> Rule:
    """Wrap a local optimizer as a rule of the engine."""

    def function(node: Apply, graph: CoreGraph) -> Any:
        if not looks_at(local, node):
            return None
        with looking_at(graph):
            return _in_order(local, node, local.transform(node))

    kinds = _kinds(local.tracks())
    why = "a local optimizer of the program"
    what = (getattr(local, "__doc__", None) or str(local)).strip().split("\n")[0]
    return Rule(name, kinds, function, why, frozenset([name, *tags]), what, subclasses=True)


def _in_order(local: LocalOptimizer, node: Apply, found: Any) -> list[Variable | None] | None:
    """Return the result of ``transform`` as a variable or None for each output."""
    if found is None or found is False:
        return None
    if isinstance(found, dict):
        others = [v for v in found if v not in node.outputs and v != "remove"]
        if others:
            raise NotImplementedError(f"{local} replaces {others}, which {node} does not compute")
        return [found.get(out) for out in node.outputs]
    if not isinstance(found, list | tuple) or len(found) != len(node.outputs):
        raise TypeError(
            f"{local} returned {found!r} for {node}: it must be False, or a list with one variable "
            f"for each of its {len(node.outputs)} outputs"
        )
    return list(found)


# -- global optimizers made of local ones


def _first_attempt(graph: CoreGraph, local: LocalOptimizer, node: Apply) -> bool:
    """Replace a node by the result of a local optimizer; return whether there was one."""
    if not looks_at(local, node):
        return False
    found = _in_order(local, node, local.transform(node))
    pairs = [
        (old, new)
        for old, new in zip(node.outputs, found or (), strict=bool(found))
        if new is not None and new is not old
    ]
    for old, new in pairs:
        graph.replace(old, new)
    return bool(pairs)


class NavigatorOptimizer(Optimizer):
    """Applies a local optimizer to the nodes of a graph."""

    def __init__(
        self,
        local_opt: Any,
        ignore_newtrees: Any = "auto",
        failure_callback: Any = None,
        order: str = "out_to_in",
    ) -> None:
        self.local_opt, self.order, self.failure_callback = local_opt, order, failure_callback
        self.ignore_newtrees = False if ignore_newtrees == "auto" else ignore_newtrees

    def apply(self, fgraph: Any, start_from: Any = None) -> None:
        """Visit all nodes once; new nodes too, unless ``ignore_newtrees``."""
        graph = getattr(fgraph, "graph", fgraph)
        pending = graph.toposort()
        if self.order == "out_to_in":
            pending.reverse()
        while pending:
            node = pending.pop(0)
            known = set(graph.nodes)
            if node in known and self._attempt(graph, node) and not self.ignore_newtrees:
                pending += [new for new in graph.toposort() if new not in known]

    def _attempt(self, graph: CoreGraph, node: Apply) -> bool:
        try:
            return _first_attempt(graph, self.local_opt, node)
        except Exception as problem:
            if self.failure_callback is None:
                raise
            self.failure_callback(problem, self, [], self.local_opt, node)
            return False

    @staticmethod
    def warn(exc: Any, nav: Any, repl_pairs: Any, local_opt: Any, node: Any) -> None:
        """Raise the exception again; a value of ``failure_callback``."""
        raise exc

    warn_inplace = warn_ignore = warn

    def add_requirements(self, fgraph: Any) -> None:
        """Attach the features of the local optimizer."""
        self.local_opt.add_requirements(fgraph)

    def __str__(self) -> str:
        return self.name or f"{type(self).__name__}({self.local_opt})"


class TopoOptimizer(NavigatorOptimizer):
    """Applies a local optimizer in topological order, from the inputs or from the outputs on."""

    def __init__(
        self,
        local_opt: Any,
        order: str = "in_to_out",
        ignore_newtrees: Any = False,
        failure_callback: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(local_opt, ignore_newtrees, failure_callback, order)
        self.name = name


class OpKeyOptimizer(TopoOptimizer):
    """Applies a local optimizer to the nodes of the ops that it tracks."""

    def __init__(
        self, local_opt: Any, ignore_newtrees: Any = False, failure_callback: Any = None
    ) -> None:
        super().__init__(local_opt, "in_to_out", ignore_newtrees, failure_callback)


def _topo(order: str) -> Callable[..., TopoOptimizer]:
    def make(*local_opts: Any, **kwargs: Any) -> TopoOptimizer:
        local = local_opts[0] if len(local_opts) == 1 else LocalOptGroup(*local_opts)
        name = kwargs.pop("name", None)
        return TopoOptimizer(local, order=order, name=name, **kwargs)

    return make


in2out, out2in = _topo("in_to_out"), _topo("out_to_in")


class EquilibriumOptimizer(Optimizer):
    """Applies optimizers until none changes the graph."""

    def __init__(self, optimizers: Iterable[Any], *args: Any, **kwargs: Any) -> None:
        self.optimizers = list(optimizers)
        self.name = kwargs.get("name")

    def apply(self, fgraph: Any, start_from: Any = None) -> None:
        """Apply the local ones by the engine; restart after each global one."""
        graph = getattr(fgraph, "graph", fgraph)
        local = [o for o in self.optimizers if isinstance(o, LocalOptimizer)]
        rules = RuleSet(as_rule(each, str(each)) for each in local)
        others = [o for o in self.optimizers if not isinstance(o, LocalOptimizer)]
        while True:
            Engine(graph, rules, str(self), merging=False, folding=False, on_error="raise").run()
            before = set(graph.nodes)
            for each in others:
                each.optimize(fgraph)
            if set(graph.nodes) == before:
                return


def copy_stack_trace(from_var: Any, to_var: Any) -> Any:
    """Return the variable itself: the engine keeps the user's line."""
    return to_var


def check_stack_trace(
    f_or_fgraph: Any, ops_to_check: Any = "last", bug_print: Any = "raise"
) -> bool:
    """Return True: every node of a rewritten graph has a line of the user."""
    return True
