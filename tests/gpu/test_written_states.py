"""States of loops of which a step writes parts: in place, where nothing needs the old values."""

from typing import Any

import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.gpu import chunks, loop_plans
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.plan import all_calls
from symcomp.gpu.planner import Operand
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.written_states import has_hidden_alias, step_in_place
from symcomp.tests.gpu.running import DEVICE, array, check_loops, compile_both

# Loops that are one launch have no calls in their steps.
pytestmark = pytest.mark.usefixtures("unmerged")
LENGTH = 12


def from_before(i: Any, s: Any) -> Any:
    return T.set_subtensor(s[i], s[i - 1] + 1)


def moved(i: Any, s: Any) -> Any:
    """Return the state moved by one place: elements that are read are written, too."""
    return T.set_subtensor(s[1:], s[:-1])


def read_before(i: Any, s: Any) -> Any:
    return T.set_subtensor(s[i], s.sum())


def twice(i: Any, s: Any) -> Any:
    t = T.set_subtensor(s[i], s[0] + 1)
    return T.inc_subtensor(t[:2], t[1:3])


def read_afterwards(i: Any, s: Any) -> Any:
    return T.set_subtensor(T.set_subtensor(s[i], 7)[0], s[i])


def scattered(i: Any, s: Any) -> Any:
    return T.inc_subtensor(s[T.stack([i, i - 1, i])], s[:3] * 2)


def scattered_from_itself(i: Any, s: Any) -> Any:
    return T.inc_subtensor(s[T.stack([i, i - 1, i])], s[:3])


# Whether each step writes in place.
STEPS = {
    from_before: True, moved: True, read_before: True, twice: True, read_afterwards: False,
    scattered: True, scattered_from_itself: False,
}  # fmt: skip


def copies_in_steps(f: Any, nbytes: int) -> bool:
    """Return whether steps of the loop in the latest plan copy arrays of this size."""
    (region,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    calls = region.program.plans[0].plan.calls
    inner = [c for call in calls if call.step is not None for c in all_calls(call.step.calls)]
    assert inner
    return any(call.kind == "copy" and call.nbytes == nbytes for call in inner)


@pytest.mark.parametrize("step", STEPS)
def test_steps(emu: Emulator, step: Any) -> None:
    start, n = T.fvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(step, T.arange(1, n), start)
    f = check_loops([start, n], rows[-1], [array(LENGTH), 6])
    assert copies_in_steps(f, 4 * LENGTH) != STEPS[step]


def test_chunks_of_long_loops(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_PIECES", 40)
    monkeypatch.setattr(chunks, "FEWEST_PIECES", 20)
    monkeypatch.setattr(chunks, "PIECES_OF_CHUNK", 20)
    start, n = T.fvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(from_before, T.arange(1, n), start)
    f = check_loops([start, n], rows[-1], [array(LENGTH * 2), 23])
    assert emu.counters.graphs >= 4 and not copies_in_steps(f, 8 * LENGTH)


def test_views_that_ops_do_not_tell_of(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a step could read values too late, it writes a copy."""
    i, s = T.lscalar("i"), T.fvector("s")
    step = step_in_place(ClosedGraph([i, s], [read_before(i, s)]), [(0, 1)])
    (total,) = [node.outputs[0] for node in step.order if str(node.op).startswith("sum")]
    assert step.over == {0} and total.owner is step.order[0]
    state = Operand(3, 0, "float32", (LENGTH,), (4,))
    known = {step.inputs[1]: state, total: Operand(4, 0, "float32", (), ())}
    assert not has_hidden_alias(step, known, {3})
    assert has_hidden_alias(step, {**known, total: state.view((), ())}, {3})
    start, n = T.fvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(read_before, T.arange(1, n), start)
    monkeypatch.setattr(loop_plans, "has_hidden_alias", lambda step, *rest: bool(step.over))
    f = check_loops([start, n], rows[-1], [array(LENGTH), 6])
    assert copies_in_steps(f, 4 * LENGTH)


def test_states_change_places(emu: Emulator) -> None:
    a, b, n = T.fvector("a"), T.fvector("b"), T.lscalar("n")
    (xs, ys), _ = symcomp.scan(
        lambda i, x, y: (T.set_subtensor(y[i], x[i] + 1), T.inc_subtensor(x[0], y[i])),
        T.arange(1, n), [a, b],
    )  # fmt: skip
    check_loops([a, b, n], [xs[-1], ys[-1]], [array(LENGTH), 2 * array(LENGTH), 6])


def test_arguments_are_not_written(emu: Emulator) -> None:
    start, n = T.fvector("start"), T.lscalar("n")
    rows, _ = symcomp.scan(from_before, T.arange(1, n), start)
    _, f = compile_both([start, n], [rows[-1], start * 1])
    value = symcomp.gpu.to_device(array(LENGTH), DEVICE)
    first, kept = f(value, 6)
    again, _ = f(value, 6)
    assert (first == again).all() and (kept == array(LENGTH)).all()
