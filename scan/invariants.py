"""Loop invariants: variables that are computed once, before the first step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from symcomp.core.node import Constant, Variable
from symcomp.core.walk import graph_inputs, toposort
from symcomp.ops.control.regions import ALWAYS, place
from symcomp.ops.random.state import is_state


class Invariants:
    """The variables passed to a loop: computed once, also where the graph of its step contains
    them.

    A step is built from the variables themselves, not from placeholders, so that it may
    differentiate one passed variable with respect to another. Whatever in their graphs changes
    during the loop (a shared variable that the step updates, the state of a random stream) must
    therefore not reach the step through them.

    Parameters
    ----------
    passed : iterable
        Sequences, initial values and non_sequences of the loop. Constants and shared variables may
        be among them: these are no invariants, as a step may update a shared variable.
    outer : Invariants or None
        The invariants of the enclosing loop, whose step contains this one.

    Attributes
    ----------
    variables : frozenset of Variable
    """

    def __init__(self, passed: Iterable[Any], outer: Invariants | None = None) -> None:
        variables = [x for x in passed if isinstance(x, Variable)]
        own = {x for x in variables if not isinstance(x, Constant) and not is_shared(x)}
        self._shared = {x for x in variables if is_shared(x)}
        self._own, self._outer = own, outer
        around: frozenset[Variable] = frozenset() if outer is None else outer.variables
        self.variables: frozenset[Variable] = around | own

    @cached_property
    def drawn_from(self) -> frozenset[Variable]:
        """The random states that the variables were drawn from before the loop.

        A step that contains such a draw, without being passed it, uses the same numbers: a gradient
        of a passed variable contains the draws that it depends on.
        """
        leaves = graph_inputs(x for x in self._own if x.owner is not None)
        states = {x for x in leaves if is_state(x.type)} - self._shared
        return frozenset(states | (set() if self._outer is None else self._outer.drawn_from))

    @contextmanager
    def around_step(self) -> Iterator[None]:
        """Make these the invariants of the enclosing loop for loops built in the step."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Invariants | None] = ContextVar("invariants", default=None)


def invariants_of(passed: Iterable[Any]) -> Invariants:
    """Return the invariants of a loop that is passed these variables, inside the steps being built.
    """
    return Invariants(passed, _current.get())


def is_shared(x: Any) -> bool:
    """Tell whether a variable is shared, with a value in a container."""
    return isinstance(x, Variable) and hasattr(x, "container")


def surroundings(
    outputs: Sequence[Any], varying: Sequence[Variable], invariants: Invariants
) -> list[Variable]:
    """List the variables that a step takes from the graph around it, without constants.

    Loop-invariant nodes are computed once, outside; except inside a branch of ifelse, which may
    never run.
    """
    inside: set[Variable] = set(varying)
    nodes = toposort(outputs, inside | invariants.variables)
    regions = place(nodes, outputs)
    chosen = []
    for node in nodes:
        if regions[node] != ALWAYS or any(x in inside for x in node.inputs):
            inside.update(x for x in node.outputs if x not in invariants.variables)
            chosen.append(node)
    found: dict[Variable, None] = {}
    for node in chosen:
        found.update((x, None) for x in node.inputs if x not in inside)
    found.update((x, None) for x in outputs if x not in inside)
    return [x for x in found if not isinstance(x, Constant)]
