"""``scan``: make a loop from a Python function that builds one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Constant, Variable
from symcomp.core.record import replace
from symcomp.core.walk import graph_inputs, rebuild
from symcomp.errors import MissingInputError
from symcomp.ops.random.state import is_state
from symcomp.scan.arguments import (
    SequenceArgument,
    State,
    as_list,
    check_flag,
    fitted,
    read_name,
    read_non_sequence,
    read_selects,
    read_sequence,
    read_state,
    read_steps,
)
from symcomp.scan.budget import Budget
from symcomp.scan.calling import call_step, check_step, described
from symcomp.scan.checkpoint import checkpointed, read_every
from symcomp.scan.error_notes import with_location
from symcomp.scan.invariants import Invariants, invariants_of, is_shared, surroundings
from symcomp.scan.layout import Arguments, Layout, Results, flat_arguments, flat_results
from symcomp.scan.op import Scan
from symcomp.scan.run import by_fast_run
from symcomp.scan.updates import OrderedUpdates, read_step

# Hint for steps with too many parameters.
MORE = "pass more sequences, outputs_info or non_sequences"


@with_location
def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
    recompute: bool = False,
    checkpoint: Any = None,
) -> Any:
    """Repeat a step, each time with the next rows of sequences and with its earlier results.

    Parameters
    ----------
    fn : callable
        Builds one step. It is called once, with variables: for each sequence a row for each tap,
        then for each output a row for each tap, then the non_sequences. It returns the outputs
        (one or a list), and may return also a dict (or pairs) of updates of shared variables, and
        ``until(condition)``.
    sequences : tensor_like or dict, or list of them, optional
        Iterated over along the first axis. ``dict(input=x, taps=[-1, 0, 2])`` reads x[t-1],
        x[t] and x[t+2], where t starts from 1, so that there is an x[t-1].
    outputs_info : tensor_like, dict or None, or list of them, optional
        For each output its value before the first step, if the step reads it; else None.
        ``dict(initial=h, taps=[-3, -1])`` reads two earlier values; h has then one more axis in
        front, and as many rows as the longest tap, the oldest first.
    non_sequences : Variable or list of them, optional
        Passed to each step as they are, and computed once: a random draw among them is the same in
        all steps. Other variables that ``fn`` uses are found without being listed.
    n_steps : int or integer scalar, optional
        By default the length of the shortest sequence. With ``until``: the most steps.
    truncate_gradient : int
        Gradients go back this many steps from the last one; -1: all.
    go_backwards : bool
        Iterate over the sequences from the last row to the first.
    mode : Mode or str, optional
        Selects the rewrites of the step; by default all safe ones. A mode that inspects values, as
        MonitorMode, inspects those of the steps.
    name : str, optional
        A name for messages and printing.
    profile, allow_gc
        Accepted for compatibility with Theano. A profile of the function shows the scan and its
        steps, and values of a step are freed when the next one does not need them.
    strict : bool
        If true, ``fn`` may only use the shared variables among the ``non_sequences``, and the ones
        that the step updates.
    return_list : bool
        Return a list also for one output.
    return_updates : bool
        If true, return the updates, too.
    recompute : bool
        If true, gradients keep only the states of each step, and compute all other values again.
    checkpoint : int or str, optional
        Gradients keep only the states of every k-th step, and repeat the steps between. An int is
        k; "auto": the square root of the number of steps; "64 MB", "1.5 GiB": the largest k for
        which this memory suffices. With ``until``, the steps are counted first, by a loop that
        keeps nothing.

    Returns
    -------
    outputs : TensorVariable, list of TensorVariable, or None
        Each with one row per step, (n_steps, ...).
    updates : OrderedUpdates
        For ``function(..., updates=updates)``: new values of the shared variables that steps
        update.

    Raises
    ------
    ShapeError, DTypeError, TypeError, ValueError, MissingInputError
        If arguments do not fit, or a state changes its dtype or shape. The message names the
        sequence or output; a note tells the lines of the loop and of its step.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> k, a = T.iscalar("k"), T.dvector("a")
    >>> powers, updates = symcomp.scan(
    ...     lambda previous: previous * a, outputs_info=T.ones_like(a), n_steps=k
    ... )
    >>> symcomp.function([a, k], powers[-1], updates=updates)([1, 2, 3], 4)
    array([ 1., 16., 81.])
    """
    who = read_name(name, "scan")
    check_step(fn, who)
    check_flag("go_backwards", go_backwards, who)
    steps = [read_sequence(item, i, go_backwards, who) for i, item in enumerate(as_list(sequences))]
    states = [read_state(item, i, who) for i, item in enumerate(as_list(outputs_info))]
    fixed = [read_non_sequence(x, i, who) for i, x in enumerate(as_list(non_sequences))]
    n = read_steps(n_steps, steps, who)
    rows = [row for s in steps for row in s.rows]
    invariants = invariants_of([*(s.source for s in steps), *(s.initial for s in states), *fixed])
    past = [row for s in states for row in s.rows]
    parts = [("rows of sequences", rows), ("earlier outputs", past), ("non_sequences", fixed)]
    with invariants.around_step():
        result = call_step(fn, who, parts, MORE)
    outputs, new_values, condition = read_step(result, who)
    if not states:
        states = [State(f"output {i}") for i in range(len(outputs))]
    if len(outputs) != len(states):
        raise ValueError(
            f"{who}: the step returned {len(outputs)} outputs; outputs_info describes {len(states)}"
            ": give one entry for each, None for an output that the step does not read. Returned: "
            f"{', '.join(map(described, outputs)) or 'updates alone'}"
        )
    pairs = list(zip(states, outputs, strict=True))
    outputs = [fitted(y, s, who) if s.taps else y for s, y in pairs]
    draft = Draft(who, steps, states, outputs, new_values, condition, invariants)
    found, updates, _ = draft.build(
        n,
        fixed if strict else None,
        _truncation(truncate_gradient, who),
        read_selects(mode, who),
        recompute,
        read_every(checkpoint, who),
    )
    answer: Any = found
    if not return_list and len(found) <= 1:
        answer = found[0] if found else None
    return (answer, updates) if return_updates else answer


def _truncation(steps: Any, who: str) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < -1 or steps == 0:
        raise ValueError(
            f"{who}: truncate_gradient is {steps!r}; it must be a positive number of steps, or -1 "
            "for all"
        )
    return steps


class Draft:
    """A step that was built, with the variables that stand for rows in it.

    Parameters
    ----------
    who : str
        The name of the scan.
    steps : sequence of SequenceArgument
    states : sequence of State
    outputs : sequence of TensorVariable
        The step's outputs, one for each state.
    updates : dict
        New values of shared variables.
    condition : TensorVariable or None
    invariants : Invariants
        The loop-invariant variables.
    """

    def __init__(
        self,
        who: str,
        steps: Sequence[SequenceArgument],
        states: Sequence[State],
        outputs: Sequence[Any],
        updates: dict[Any, Any],
        condition: Any,
        invariants: Invariants,
    ) -> None:
        self._who, self._steps, self._states = who, steps, states
        self._outputs, self._condition = list(outputs), condition
        self._invariants = invariants
        self._updates = {s: self._checked_update(s, new) for s, new in updates.items()}
        self._add_default_updates()

    def _checked_update(self, shared: Any, new: Any) -> Any:
        if not is_shared(shared):
            raise TypeError(f"{self._who}: the step updates {shared!r}, no shared variable")
        new = new if isinstance(new, Variable) else shared.type.make_constant(new)
        try:
            return shared.type.filter_variable(new)
        except TypeError as problem:
            raise TypeError(
                f"{self._who}: the step's update of {shared} ({shared.type}) is {new.type}: "
                f"{problem}"
            ) from None

    def _results(self) -> list[Any]:
        last = [] if self._condition is None else [self._condition]
        return [*self._outputs, *self._updates.values(), *last]

    def _add_default_updates(self) -> None:
        """Add the default updates of shared variables, as the state of random streams, to each
        step. The states that invariants were drawn from are not updated.
        """
        found = True
        while found:
            found = False
            for x in graph_inputs(self._results(), self._invariants.variables):
                new = getattr(x, "default_update", None)
                if new is not None and x not in self._updates and not self._was_drawn_from(x):
                    self._updates[x] = new
                    found = True

    def _was_drawn_from(self, state: Variable) -> bool:
        return is_state(state.type) and state in self._invariants.drawn_from

    def build(
        self,
        n: Any,
        allowed: Sequence[Variable] | None,
        truncate: int,
        selects: Any,
        recompute: bool = False,
        every: int | str | Budget | None = None,
    ) -> tuple[list[Any], OrderedUpdates, list[Any]]:
        """Make the scan; return the outputs, the updates, and the final value of each state.

        Parameters
        ----------
        n : TensorVariable
            The number of steps.
        allowed : sequence of Variable or None
            Variables of the surrounding graph that the step may use; None: all.
        truncate, selects, recompute
            See Scan.
        every : int, "auto", Budget or None
            See ``checkpointed``.
        """
        shared = list(self._updates)
        inner = [x.type(x.name) for x in shared]
        kept: dict[Variable, Variable] = {x: x for x in self._invariants.variables}
        results = rebuild(self._results(), kept | dict(zip(shared, inner, strict=True)))
        outputs, rest = results[: len(self._outputs)], results[len(self._outputs) :]
        carried, last = rest[: len(shared)], rest[len(shared) :]
        traced = [i for i, s in enumerate(self._states) if s.taps]
        stacked = [i for i, s in enumerate(self._states) if not s.taps]
        lagged = [x for i in traced for x in self._states[i].rows]
        rows = [x for s in self._steps for x in s.rows]
        varying = [*lagged, *inner, *rows]
        results = [outputs[i] for i in traced] + carried + [outputs[i] for i in stacked] + last
        captured = surroundings(results, varying, self._invariants)
        if allowed is not None:
            self._check_allowed(captured, [*allowed, *shared])
        layout = Layout(
            tuple(self._states[i].lags for i in traced),
            len(shared),
            len(rows),
            len(stacked),
            bool(last),
        )
        body = ClosedGraph([*varying, *captured], results)
        op = Scan(body, layout, truncate, recompute, selects or by_fast_run, self._who)
        again = _independent_of_start(op)
        op = _stacked_too(op, again)
        starts = [self._states[i].start for i in traced]
        sequences = [x for s in self._steps for x in s.slices]
        found, ends = _applied(op, Arguments(n, starts, shared, sequences, captured), every)
        answers: dict[int, Any] = dict(zip(traced, found.traced, strict=True))
        copies = [traced[k] for k in again]
        answers.update(zip([*stacked, *copies], found.stacked, strict=True))
        if isinstance(n, Constant) and n.data > 0:
            ends = [answers[i][-1] if i in copies else end
                    for i, end in zip(traced, ends, strict=True)]  # fmt: skip
        updates = OrderedUpdates(zip(shared, found.carried, strict=True))
        return [answers[i] for i in range(len(outputs))], updates, ends

    def _check_allowed(self, captured: Sequence[Variable], allowed: Sequence[Variable]) -> None:
        """Raise if the step uses shared variables that were not passed."""
        passed = {*allowed, *self._invariants.variables}
        for x in graph_inputs(captured, passed):
            if x not in passed and is_shared(x) and not self._was_drawn_from(x):
                raise MissingInputError(
                    f"{self._who}: the step uses {x} of type {x.type}, a shared variable, which is "
                    "not among the non_sequences: add it to them, or pass strict=False"
                )


def _applied(
    op: Scan, given: Arguments, every: int | str | Budget | None
) -> tuple[Results, list[Any]]:
    """Return the rows that steps make, and the final value of each traced state."""
    if every is not None:
        return checkpointed(op, given, every)
    whole = op.layout.results(op(*flat_arguments(given)))
    cut = [b[k:] for b, k in zip(whole.traced, op.layout.depths, strict=True)]
    return whole._replace(traced=cut), [b[-1] for b in whole.traced]


def _independent_of_start(op: Scan) -> list[int]:
    """List the traced states that no step derives from the initial rows."""
    places = op.layout.step(range(len(op.body.inputs))).lagged
    return [i for i, rows in enumerate(places) if not any(op.reach[p][i] for p in rows)]


def _stacked_too(op: Scan, states: Sequence[int]) -> Scan:
    """Return ``op`` with further outputs, after the stacked ones: the rows that steps make of
    ``states``.

    The rows of a traced state begin with its initial rows, so all of them are connected to the
    initial value; the rows of a stacked output are not.
    """
    if not states:
        return op
    new = op.layout.results(op.body.outputs)
    outputs = new._replace(stacked=new.stacked + [new.traced[i] for i in states])
    layout = replace(op.layout, n_stacked=len(outputs.stacked))
    return replace(op, body=ClosedGraph(op.body.inputs, flat_results(outputs)), layout=layout)
