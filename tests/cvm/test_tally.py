"""The counts that both machines take while they run."""

import threading

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm.machine import Calls
from symcomp.ifelse import ifelse
from symcomp.vm.tally import MOST_VARIANTS

LINKERS = ("cvm", "vm")
# The first calls, all of which are timed.
ALWAYS_TIMED = 16


def profiled(inputs, outputs, linker="cvm", **arguments):
    """Compile a function that is profiled, without rewriting."""
    mode = symcomp.Mode(linker, "merge")
    return symcomp.function(inputs, outputs, mode=mode, profile=True, **arguments)


def counts(f):
    return {c.position: c.runs for c in f.profiled.tally.counted()}


@pytest.mark.parametrize("linker", LINKERS)
def test_runs_and_calls_are_counted(linker):
    x = T.dvector("x")
    f = profiled([x], T.exp(x) + T.sin(x), linker)
    for _ in range(5 * ALWAYS_TIMED):
        f(np.ones(3))
    n = len(f.program.instructions)
    assert counts(f) == dict.fromkeys(range(n), 5 * ALWAYS_TIMED)
    assert f.profile.calls == 5 * ALWAYS_TIMED and f.profile.call_seconds > 0
    for counted in f.profiled.tally.counted():
        assert ALWAYS_TIMED <= counted.timed <= counted.runs
        assert counted.seconds >= 0


@pytest.mark.parametrize("linker", LINKERS)
def test_calls_without_arguments_are_counted(linker):
    total = symcomp.shared(0.0, "total")
    f = profiled([], [], linker, updates=[(total, total + 1)])
    f.fn(n_calls=40)
    assert f.profile.calls == 40 and total.get_value() == 40
    assert set(counts(f).values()) == {40}


def test_many_calls_are_counted_one_by_one_or_not():
    """Most runs of straight programs are counted as a whole."""
    x = T.dvector("x")
    f = profiled([x], T.exp(x) * 2)
    for _ in range(1000):
        f([1.0])
    assert set(counts(f).values()) == {1000}
    assert f.profiled.calls.timed <= 1000


@pytest.mark.parametrize("linker", LINKERS)
def test_branches_are_counted_as_they_were_taken(linker):
    c, x = T.lscalar("c"), T.dvector("x")
    f = profiled([c, x], ifelse(c, T.exp(x), T.log(x)), linker)
    for choice in (1, 0, 1, 1):
        f(choice, np.ones(2))
    by_op = {str(s.node.op): i for i, s in enumerate(f.program.instructions) if s.node}
    assert counts(f)[by_op["exp"]] == 3 and counts(f)[by_op["log"]] == 1


def test_native_branches_are_exact_when_runs_are_not_timed():
    c, x = T.lscalar("c"), T.dvector("x")
    f = profiled([c, x], ifelse(c, T.exp(x), T.log(x)))
    choices = np.random.default_rng(0).integers(0, 2, 2000)
    for choice in choices:
        f(choice, [1.0])
    by_op = {str(s.node.op): i for i, s in enumerate(f.program.instructions) if s.node}
    assert counts(f)[by_op["exp"]] == choices.sum()
    assert counts(f)[by_op["log"]] == len(choices) - choices.sum()


@pytest.mark.parametrize("linker", LINKERS)
def test_shapes_are_told_apart(linker):
    x, y = T.dmatrices("x", "y")
    f = profiled([x, y], T.dot(x, y), linker)
    for n in (2, 3, 2, 2):
        f(np.ones((4, n)), np.ones((n, 5)))
    (counted,) = f.profiled.tally.counted()
    found = {v.inputs: (v.outputs, v.timed) for v in counted.variants}
    assert found == {
        ((4, 2), (2, 5)): (((4, 5),), 3),
        ((4, 3), (3, 5)): (((4, 5),), 1),
    }


@pytest.mark.parametrize("linker", LINKERS)
def test_outputs_of_one_shape_of_inputs(linker):
    n = T.lscalar("n")
    f = profiled([n], T.arange(n), linker)
    for value in (2, 3):
        f(value)
    counted = f.profiled.tally.counted()[-1]
    assert [v.outputs for v in counted.variants] == [((2,),), ((3,),)]
    assert counted.variants[0].inputs == counted.variants[1].inputs


@pytest.mark.parametrize("linker", LINKERS)
def test_very_many_shapes_end_in_one_row(linker):
    x = T.dvector("x")
    f = profiled([x], -x, linker)
    for n in range(3 * MOST_VARIANTS):
        f(np.ones(n))
    (counted,) = f.profiled.tally.counted()
    assert len(counted.variants) == MOST_VARIANTS
    assert counted.variants[-1].inputs is None and counted.variants[-1].outputs is None
    assert counted.timed == sum(v.timed for v in counted.variants)


def test_calls_that_fail_are_counted():
    """Also one that is recorded, to be replayed: about one of forty, as timed calls are drawn."""
    x = T.dmatrix("x")
    for _ in range(200):
        with symcomp.config.change_flags(kernels=True):
            f = symcomp.function([x], T.max(x, axis=1), profile=True)
        for _ in range(60):
            f(np.ones((3, 4)))
        with pytest.raises(ValueError, match="is empty"):
            f(np.ones((3, 0)))
        assert counts(f)[0] == 61


def test_work_of_python_is_seen():
    """A kernel that does not take its values, once; an op that has none, always."""
    x = T.dmatrix("x")
    with symcomp.config.change_flags(kernels=True):
        f = symcomp.function([x], T.max(x, axis=1), profile=True)
        g = profiled([x], T.unique(x, axis=0))
    for _ in range(60):
        f(np.ones((3, 4)))
    before = [c.in_python for c in f.profiled.tally.counted()]
    assert sum(before) == 0
    with pytest.raises(ValueError, match="is empty"):
        f(np.ones((3, 0)))
    f(np.ones((3, 4)))
    assert counts(f)[0] == 62
    g(np.ones((2, 2)))
    rows = {g.program.instructions[c.position].node.op: c for c in g.profiled.tally.counted()}
    unique = next(c for op, c in rows.items() if type(op).__name__ == "Unique")
    assert unique.in_python == unique.runs == 1


def test_python_counts_of_runs_that_are_not_watched():
    """Unaligned values are Python's work: a run that differs from those before is noticed."""
    x = T.dvector("x")
    with symcomp.config.change_flags(kernels=True):
        f = symcomp.function([x], T.exp(x), profile=True)
    usual = np.ones(1000)
    unaligned = np.frombuffer(bytearray(8001), np.uint8)[1:].view(np.float64)
    for _ in range(300):
        f(usual)
    for _ in range(100):
        f(unaligned)
    (counted,) = f.profiled.tally.counted()
    assert counted.runs == 400 and 98 <= counted.in_python <= 100


@pytest.mark.parametrize("linker", LINKERS)
def test_steps_of_loops(linker):
    x = T.dmatrix("x")
    states, _ = symcomp.scan(lambda row, s: s + row, [x], T.zeros(3))
    with symcomp.config.change_flags(linker=linker, kernels=True):
        f = symcomp.function([x], states, profile=True)
    for _ in range(3):
        f(np.ones((50, 3)))
    ((position, _), (_, inner)) = next(iter(f.profiled.tally.inner.items()))
    assert f.program.instructions[position].node.op.inner_graphs()
    assert inner.runs == 150
    assert {c.runs for c in inner.counted()} == {150}
    assert all(c.variants[0].inputs[0] == (3,) for c in inner.counted())
    assert 140 < inner.without_python < 151 if linker == "cvm" else inner.without_python == 0


def test_steps_that_are_planned():
    x = T.dvector("x")
    ends = T.arange(1, x.shape[0] + 1)
    sums, _ = symcomp.scan(lambda i, x: T.sort(x[:i]).sum(), [ends], non_sequences=[x])
    with symcomp.config.change_flags(linker="cvm", kernels=True):
        f = symcomp.function([x], sums, profile=True)
    for _ in range(3):
        f(np.ones(200))
    ((_, inner),) = f.profiled.tally.inner.values()
    planning = inner.machine.planning
    # Every step has another length: most are planned, by native code alone.
    assert inner.runs == planning["runs"] == 600 and planning["kept"] < 300
    assert inner.without_python == 600
    assert f"{planning['kept']} of 600 steps repeated a kept plan" in f.profile.text()


def test_planned_steps_with_python():
    x = T.dvector("x")
    ends = T.arange(1, x.shape[0] + 1)
    sort = symcomp.as_op([T.dvector], [T.dvector])(np.sort)
    step = lambda i, x: sort(x[:i]).sum()  # noqa: E731
    sums, _ = symcomp.scan(step, [ends], non_sequences=[x])
    with symcomp.config.change_flags(linker="cvm", kernels=True):
        f = symcomp.function([x], sums, profile=True)
    f(np.ones(100))
    ((_, inner),) = f.profiled.tally.inner.values()
    assert inner.runs == 100 and inner.without_python == 0


def test_loops_within_loops():
    x = T.dtensor3("x")

    def outer(matrix, start):
        rows, _ = symcomp.scan(lambda row, s: T.tanh(T.sort(row + s)), [matrix], start)
        return rows[-1]

    f = symcomp.function([x], symcomp.scan(outer, [x], T.zeros(2))[0], profile=True)
    f(np.ones((4, 5, 2)))
    ((_, tally),) = f.profiled.tally.inner.values()
    ((_, inner),) = tally.inner.values()
    assert tally.runs == 4 and inner.runs == 20


def test_graphs_that_are_ops():
    x = T.dvector("x")
    twice = symcomp.OpFromGraph([x], [T.exp(x) * 2])
    f = symcomp.function([x], twice(x).sum(), profile=True)
    for _ in range(3):
        f(np.ones(4))
    ((_, inner),) = f.profiled.tally.inner.values()
    assert inner.runs == 3 and all(c.in_python == c.runs for c in inner.counted())


@pytest.mark.parametrize("linker", LINKERS)
def test_a_call_that_fails_leaves_counting_usable(linker):
    x, y = T.dvectors("x", "y")
    rows, _ = symcomp.scan(lambda a: a * y, [x], n_steps=3)
    f = symcomp.function([x, y], rows, mode=symcomp.Mode(linker), profile=True)
    with pytest.raises(ValueError, match="3 steps need 3"):
        f(np.ones(2), np.ones(2))
    f(np.ones(3), np.ones(2))
    assert f.profile.calls == 2
    assert f.profile.text()


def test_threads_share_a_profile():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.dot(x, x).sum(), profile=True)
    values = np.ones((40, 40))

    def work():
        for _ in range(200):
            f(values)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert f.profile.calls == 800 and set(counts(f).values()) == {800}
    assert {e.thread for e in f.profiled.calls.events()} <= {t.ident for t in threads}


def test_results_are_those_without_a_profile():
    x, w = T.dmatrix("x"), symcomp.shared(np.eye(3), "w")
    loss = T.tanh(T.dot(x, w)).sum()
    updates = [(w, w - 0.1 * T.grad(loss, w))]
    plain = symcomp.function([x], loss, updates=updates)
    value = np.arange(6.0).reshape(2, 3)
    expected = [float(plain(value)) for _ in range(40)]
    w.set_value(np.eye(3))
    counted = symcomp.function([x], loss, updates=updates, profile=True)
    assert [float(counted(value)) for _ in range(40)] == expected


def test_calls_start_at_nothing():
    calls = Calls()
    assert (calls.count, calls.timed, calls.seconds, calls.events()) == (0, 0, 0.0, [])
