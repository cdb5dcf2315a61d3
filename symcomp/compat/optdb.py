"""``theano.compile.optdb``: databases of optimizers, and queries that select by tags.

Optimizers registered in ``optdb``, or in one of its parts, take part in rewriting from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from symcomp.compat.rewriting import (
    EquilibriumOptimizer,
    LocalOptGroup,
    LocalOptimizer,
    Optimizer,
    SeqOptimizer,
    as_rule,
)
from symcomp.compile import features
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.phases import Phase, rewrite
from symcomp.rewrite.registry import extended, register_phase, register_rule
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.trace import Firing

# Positions of phases in Theano's order.
POSITIONS = {
    "merge": 0.0, "inline": 0.4, "canonicalize": 1.0, "stabilize": 1.5, "scan": 1.6,
    "specialize": 2.0, "blas": 2.5, "labels": 3.0, "lengths": 4.0, "fusion": 49.0,
}  # fmt: skip
# Parts of Theano's optdb, and the phase that applies their rules.
PARTS = {
    "canonicalize": "canonicalize", "stabilize": "stabilize", "specialize": "specialize",
    "specialize_device": "specialize", "uncanonicalize": "specialize", "useless": "canonicalize",
    "BlasOpt": "blas", "scan_eqopt1": "scan", "scan_eqopt2": "scan",
}  # fmt: skip


class Query:
    """Selects optimizers with a tag of ``include``, all of ``require``, and none of ``exclude``."""

    def __init__(
        self,
        include: Iterable[str] | None = None,
        require: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        subquery: dict[str, Any] | None = None,
        position_cutoff: float | None = None,
        extra_optimizations: Iterable[Any] = (),
    ) -> None:
        self.include, self.require = set(include or ()), set(require or ())
        self.exclude, self.subquery = set(exclude or ()), dict(subquery or {})
        self.position_cutoff = float("inf") if position_cutoff is None else position_cutoff
        self.extra_optimizations = list(extra_optimizations)

    def selects(self, tags: Iterable[str]) -> bool:
        """Tell whether an optimizer with these tags is selected."""
        tags = set(tags)
        chosen = self.include & tags if self.include else True
        return bool(chosen) and self.require <= tags and not self.exclude & tags

    def including(self, *tags: str) -> Query:
        """Return a copy that includes these tags, too."""
        return self._with(include=self.include | set(tags))

    def excluding(self, *tags: str) -> Query:
        """Return a copy that excludes these tags."""
        return self._with(exclude=self.exclude | set(tags))

    def requiring(self, *tags: str) -> Query:
        """Return a copy that requires these tags."""
        return self._with(require=self.require | set(tags))

    def register(self, *optimizations: tuple[Any, float]) -> Query:
        """Return a copy with more optimizers, each with its position."""
        return self._with(extra_optimizations=[*self.extra_optimizations, *optimizations])

    def _with(self, **changes: Any) -> Query:
        return Query(**{**vars(self), **changes})

    def __str__(self) -> str:
        return f"Query(inc={self.include}, ex={self.exclude}, require={self.require})"


class DB:
    """Optimizers by their names and tags."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Any, set[str]]] = {}

    def register(self, name: str, obj: Any, *tags: str, **kwargs: Any) -> Any:
        """Add an optimizer, or a database of some, under a name, with tags; return it."""
        words = {str(tag) for tag in tags if not isinstance(tag, bool | int | float)}
        if name in self._entries or any(name in taken for _, taken in self._entries.values()):
            raise ValueError(f"The name {name!r} is taken, or is a tag")
        collisions = words & self._entries.keys()
        if collisions:
            raise ValueError(f"The tag {collisions.pop()!r} is the name of an optimizer")
        self._entries[name] = obj, {name, *words}
        return obj

    def add_tags(self, name: str, *tags: str) -> None:
        """Add tags to an optimizer."""
        self._entries[name][1].update(tags)

    def remove_tags(self, name: str, *tags: str) -> None:
        """Remove tags from an optimizer."""
        self._entries[name][1].difference_update(tags)

    def chosen(self, query: Query) -> list[Any]:
        """Return the optimizers selected by a query, recursively."""
        found = []
        for name, (obj, tags) in self._entries.items():
            if isinstance(obj, DB):
                if query.selects(tags) or name in query.subquery:
                    found.append(obj.query(query.subquery.get(name, query)))
            elif query.selects(tags):
                found.append(obj)
        return found

    def query(self, *tags: Any, **subquery: Any) -> Any:
        """Return the optimizer made of those selected by a Query, or by tags such as
        ``"+fast_run"``, ``"-x"``.
        """
        return self.made_of(self.chosen(_as_query(tags, subquery)))

    def made_of(self, optimizers: list[Any]) -> Any:
        """Combine several optimizers into one."""
        return SeqOptimizer(optimizers)

    def __getitem__(self, name: str) -> Any:
        if name not in self._entries:
            raise KeyError(f"nothing is registered as {name!r}")
        return self._entries[name][0]

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def _as_query(tags: tuple[Any, ...], subquery: dict[str, Any]) -> Query:
    if len(tags) == 1 and isinstance(tags[0], Query):
        return tags[0]
    if any(tag[:1] not in ("+", "-", "&") for tag in tags):
        raise ValueError(f"query: {tags!r}: each tag must start with '+', '-' or '&'")
    by_sign = {sign: {tag[1:] for tag in tags if tag[0] == sign} for sign in "+&-"}
    return Query(by_sign["+"], by_sign["&"], by_sign["-"], subquery)


class EquilibriumDB(DB):
    """Optimizers applied until none changes the graph."""

    def __init__(self, ignore_newtrees: bool = True, tracks_on_change_inputs: bool = False) -> None:
        super().__init__()

    def made_of(self, optimizers: list[Any]) -> Any:
        """Combine several optimizers into one."""
        return EquilibriumOptimizer(optimizers)


class SequenceDB(DB):
    """Optimizers applied in the order of their positions."""

    def __init__(self, failure_callback: Any = None) -> None:
        super().__init__()
        self.__position__: dict[str, float] = {}

    def register(self, name: str, obj: Any, *tags: Any, **kwargs: Any) -> Any:
        """Add an optimizer: its position is the first of the tags."""
        position = kwargs.pop("position", None)
        if position is None:
            position, *tags = tags  # type: ignore[assignment]
        self.__position__[name] = float("inf") if position == "last" else float(position)
        return super().register(name, obj, *tags)

    def chosen(self, query: Query) -> list[Any]:
        """Return the optimizers selected by a query, in order."""
        names = sorted(self._entries, key=lambda name: self.__position__[name])
        self._entries = {name: self._entries[name] for name in names}
        return super().chosen(query)


class LocalGroupDB(DB):
    """Local optimizers of which the first applicable one is used."""

    def __init__(self, apply_all_opts: bool = False, local_opt: Any = LocalOptGroup) -> None:
        super().__init__()

    def made_of(self, optimizers: list[Any]) -> Any:
        """Combine several optimizers into one."""
        return LocalOptGroup(*optimizers)


class ProxyDB(DB):
    """A database under another name."""

    def __init__(self, db: DB) -> None:
        super().__init__()
        self.db = db

    def query(self, *tags: Any, **subquery: Any) -> Any:
        """Return the result of the other database."""
        return self.db.query(*tags, **subquery)


# -- the database of symcomp


class Chosen(Optimizer):
    """The rewriting of symcomp, restricted by a query."""

    def __init__(self, query: Query) -> None:
        self.chosen_by = query

    def apply(self, fgraph: Any) -> Any:
        """Rewrite the graph; return the trace."""
        graph = getattr(fgraph, "graph", fgraph)
        phases = extended(features.phases())
        return rewrite(graph, self.chosen_by.selects, config.on_opt_error, phases)


class _Part(EquilibriumDB):
    """A part of ``optdb``: the rules of a phase."""

    def __init__(self, phase: str) -> None:
        super().__init__()
        self._phase = phase

    def register(self, name: str, obj: Any, *tags: str, **kwargs: Any) -> Any:
        """Add a local optimizer, or a global one that comes before the phase."""
        super().register(name, obj, *tags)
        if isinstance(obj, LocalOptimizer):
            register_rule(as_rule(obj, name, tags), self._phase, _levels(tags))
        elif isinstance(obj, Optimizer):
            register_phase(_as_phase(name, obj, tags), self._phase)
        else:
            raise TypeError(f"register: {obj!r} is no optimizer")
        return obj

    def query(self, *tags: Any, **subquery: Any) -> Any:
        """Return the rules of the phase selected by a query."""
        query = _as_query(tags, subquery)
        return Chosen(query.requiring(self._phase))


class _Database(SequenceDB):
    """``optdb``: all rewriting."""

    def __init__(self) -> None:
        super().__init__()
        for part, phase in PARTS.items():
            super().register(part, _Part(phase), POSITIONS[phase], "fast_run", "fast_compile")

    def register(self, name: str, obj: Any, *tags: Any, **kwargs: Any) -> Any:
        """Add an optimizer at a position; see POSITIONS."""
        super().register(name, obj, *tags, **kwargs)
        position = self.__position__[name]
        later = [phase for phase, where in POSITIONS.items() if where > position]
        if isinstance(obj, LocalOptimizer):
            raise TypeError(f"register: {obj} is local: use theano.gof.TopoOptimizer(it)")
        if isinstance(obj, Optimizer):
            words = self._entries[name][1]
            register_phase(_as_phase(name, obj, words), later[0] if later else None)
        return obj

    def query(self, *tags: Any, **subquery: Any) -> Any:
        """Return the rewriting selected by a query."""
        return Chosen(_as_query(tags, subquery))


def _levels(tags: Iterable[str]) -> list[str]:
    """Return the optimizers of symcomp that correspond to tags of Theano."""
    return ["up_to_stabilize"] if "fast_run" in set(tags) else []


def _as_phase(name: str, optimizer: Optimizer, tags: Iterable[str]) -> Phase:
    """Return a global optimizer as a phase of rewriting."""

    def sweep(graph: FunctionGraph, firings: list[Firing]) -> None:
        optimizer.optimize(graph)

    return Phase(name, "an optimizer of the program", RuleSet([]), (*tags, *_levels(tags)), sweep)


optdb = _Database()


def _registrar(part: str) -> Callable[..., Any]:
    """Make ``register_canonicalize`` and others: a function, and a decorator with or without tags.
    """

    def register(lopt: Any, *tags: str, **kwargs: Any) -> Any:
        if isinstance(lopt, str):
            return lambda inner: register(inner, lopt, *tags, **kwargs)
        name = kwargs.pop("name", None) or getattr(lopt, "__name__", None) or str(lopt)
        optdb[part].register(name, lopt, "fast_run", *tags, **kwargs)
        return lopt

    register.__name__ = register.__qualname__ = f"register_{part}"
    register.__doc__ = f"Apply a local optimizer in the phase {PARTS[part]!r}; give it back."
    return register


REGISTRARS = {f"register_{part}": _registrar(part) for part in PARTS if part.islower()}
