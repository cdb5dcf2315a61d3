"""``theano.OpFromGraph`` with Theano's arguments, and for graphs that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.compat.missing import Adapted
from symcomp.compile.builders import OpFromGraph as OpFromGraphOfSymcomp
from symcomp.compile.random_state import RandomSharedVariable
from symcomp.core.applications import note_application
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.special_types import NullType
from symcomp.core.walk import graph_inputs, rebuild
from symcomp.ops.random.state import RandomType, seeded

__all__ = ["OpFromGraph"]

_OF_FUNCTIONS = frozenset(
    ["accept_inplace", "allow_input_downcast", "mode", "on_unused_input", "profile", "strict"]
)


class DrawingOp:
    """An op made of a graph that draws random numbers.

    Each application has random states of its own, which calls update, as if the graph had been
    inlined. All else is delegated to ``op``, which takes the states as its last inputs and gives
    the states after the draws as its last outputs.

    Parameters
    ----------
    op : OpFromGraph
    states : sequence of RandomSharedVariable
        The states in the graph.
    """

    def __init__(self, op: OpFromGraphOfSymcomp, states: Sequence[RandomSharedVariable]) -> None:
        self.op = op
        self._states = list(states)
        self._count = 0

    def make_node(self, *inputs: Any) -> Apply:
        """Return a node with new random states, which is updated by default."""
        states = [self._new_state(s) for s in self._states]
        self._count += 1
        node = self.op.make_node(*inputs, *states)
        for state, after in zip(states, node.outputs[-len(states) :], strict=True):
            state.default_update = after
        return node

    def _new_state(self, state: RandomSharedVariable) -> RandomSharedVariable:
        words = [int(word) for word in state.get_value(return_internal_type=True)]
        return RandomSharedVariable(RandomType(), seeded(words, (self._count,)), state.name)

    def __call__(self, *inputs: Any, return_list: bool = False) -> Any:
        node = self.make_node(*inputs)
        note_application(node)
        outputs = list(node.outputs[: -len(self._states)])
        return outputs if return_list or len(outputs) > 1 else outputs[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.op, name)

    def __str__(self) -> str:
        return str(self.op)


@record
class _Strict:
    """A function of derivatives for which None means that one is not implemented."""

    function: Callable[..., Any]

    def __call__(self, *groups: Any) -> Any:
        found = self.function(*groups)
        several = isinstance(found, list | tuple)
        results = [self._null() if x is None else x for x in (found if several else [found])]
        return results if several else results[0]

    def _null(self) -> Any:
        return NullType(f"it is not implemented: {self.function} returned None")()


def _strict(override: Any) -> Any:
    """Return an override of derivatives whose functions follow Theano's conventions."""
    if isinstance(override, list | tuple):
        return [_strict(item) for item in override]
    return _Strict(override) if _is_called(override) and not isinstance(override, Op) else override


# The arguments of each kind of override: of the inputs (i) or of the outputs (o).
_FORMS = {"lop_overrides": "ioo", "grad_overrides": "io", "rop_overrides": "ii"}


class _Hiding:
    """Overrides of derivatives that get no random states, and return nothing for them.

    Parameters
    ----------
    form : str
        See ``_FORMS``.
    n_inputs, n_outputs, n_states : int
        The states come after this number of inputs, and after this number of outputs.
    """

    def __init__(self, form: str, n_inputs: int, n_outputs: int, n_states: int) -> None:
        self._form, self._n_states = form, n_states
        self._places = {"i": n_inputs, "o": n_outputs}
        self._place = n_outputs if form == "ii" else n_inputs

    def override(self, given: Any) -> Any:
        """Return an override for the op with states."""
        if isinstance(given, list | tuple):
            return self._filled([self._alone(item) for item in given])
        if not _is_called(given):
            return given
        return lambda *groups: self._filled(_as_list(self._alone(given)(*groups)))

    def _filled(self, found: list[Any]) -> list[Any]:
        return [*found[: self._place], *[None] * self._n_states, *found[self._place :]]

    def _alone(self, given: Any) -> Any:
        """Return a callable that passes the user's function only the arguments without states."""
        if not _is_called(given):
            return given

        def called(*groups: list[Any]) -> Any:
            shown = []
            for kind, group in zip(self._form, groups, strict=True):
                place = self._places[kind]
                shown.append([*group[:place], *group[place + self._n_states :]])
            if isinstance(given, Op):
                return given(*(x for group in shown for x in group))
            return given(*shown)

        return called


def _is_called(given: Any) -> bool:
    return callable(given) and not isinstance(given, Variable | Type)


def _as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def _states_in(outputs: Sequence[Variable]) -> list[RandomSharedVariable]:
    """Return the random states that graphs draw from, and those in the default updates of these."""
    found: dict[Any, None] = {}
    pending = list(outputs)
    while pending:
        new = [
            v
            for v in graph_inputs(pending)
            if isinstance(v, RandomSharedVariable) and v.default_update is not None
        ]
        new = [v for v in new if v not in found]
        found.update((v, None) for v in new)
        pending = [v.default_update for v in new if v.default_update is not None]
    return list(found)


def _op_from_graph(
    inputs: Any,
    outputs: Any,
    inline: bool = False,
    lop_overrides: Any = None,
    grad_overrides: Any = None,
    rop_overrides: Any = None,
    connection_pattern: Any = None,
    name: str | None = None,
    **named: Any,
) -> Any:
    """Return an OpFromGraph. Options of ``function`` are accepted: the mode of the enclosing
    function applies.
    """
    more = {key: value for key, value in named.items() if key not in _OF_FUNCTIONS}
    overrides = {
        "lop_overrides": _strict(lop_overrides),
        "grad_overrides": _strict(grad_overrides),
        "rop_overrides": _strict(rop_overrides),
    }
    states = [s for s in _states_in(outputs) if s not in inputs]
    k = len(states)
    if not k:
        return OpFromGraphOfSymcomp(
            inputs, outputs, inline, connection_pattern=connection_pattern, name=name,
            **overrides, **more,
        )  # fmt: skip
    given = [s.type(s.name) for s in states]
    every = [*outputs, *(s.default_update for s in states)]
    every = rebuild(every, dict(zip(states, given, strict=True)))
    for who, form in _FORMS.items():
        overrides[who] = _Hiding(form, len(inputs), len(outputs), k).override(overrides[who])
    if connection_pattern is not None:
        rows = [[*row, *[False] * k] for row in connection_pattern]
        connection_pattern = rows + [[True] * len(every)] * k
    op = OpFromGraphOfSymcomp(
        [*inputs, *given], every, inline, connection_pattern=connection_pattern, name=name,
        **overrides, **more,
    )  # fmt: skip
    return DrawingOp(op, states)


OpFromGraph = Adapted("theano.compile.OpFromGraph", OpFromGraphOfSymcomp, _op_from_graph)
