"""New values of shared variables written over the old ones: where, when not, and what a failed call
leaves.
"""

import os
import pickle
import signal
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.features import lowerings
from symcomp.core.op import Op
from symcomp.cvm.executable import Executable
from symcomp.cvm.machine import NativeMachine, python_call
from symcomp.cvm.prepare import lowered_instructions
from symcomp.ifelse import ifelse
from symcomp.vm.machine import PythonMachine

pytestmark = pytest.mark.overwrites

PLAIN = symcomp.Mode().excluding("inplace")


def address(shared):
    return shared.get_value(borrow=True).ctypes.data


def overwritten(f):
    """Return the names of the inputs that the program overwrites."""
    return sorted(str(f.maker.inputs[i].variable) for i in f.program.claimed)


def shared(value, name):
    return symcomp.shared(np.asarray(value), name=name)


def training(n=5, mode=None, extra=()):
    """Return a network with rows of a table as input: the function, and its shared variables."""
    rng = np.random.default_rng(0)
    w, table = shared(rng.normal(size=(n, n)), "w"), shared(rng.normal(size=(50, n)), "table")
    b = shared(np.zeros(n), "b")
    rows, target = T.lvector("rows"), T.dmatrix("target")
    hidden = T.tanh(T.dot(table[rows], w) + b)
    loss = T.sqr(hidden - target).mean()
    params = [w, table, b]
    updates = [(p, p - 0.1 * g) for p, g in zip(params, symcomp.grad(loss, params), strict=True)]
    return symcomp.function([rows, target], loss, updates=[*updates, *extra], mode=mode), params


@pytest.mark.parametrize("n", [3, 200])
@pytest.mark.parametrize("native", [False, True])
def test_a_step_of_training_is_written_in_place(n, native):
    f, params = training(n, symcomp.Mode("cvm" if native else "vm"))
    plain, others = training(n, PLAIN)
    assert overwritten(f) == ["b", "table", "w"]
    assert not plain.program.claimed
    before = [address(p) for p in params]
    for k in range(3):
        rows = [k, 2, 2]
        np.testing.assert_allclose(f(rows, np.ones((3, n))), plain(rows, np.ones((3, n))))
        assert [address(p) for p in params] == before
    for p, q in zip(params, others, strict=True):
        np.testing.assert_allclose(p.get_value(), q.get_value(), rtol=1e-12)


def one_step(value, step):
    """Return a function that updates one shared variable, and the variable."""
    w = shared(value, "w")
    return symcomp.function([], [], updates=[(w, step(w))]), w


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128", "int8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1, 3), (7,), (40, 500)])
def test_elementwise_steps(dtype, shape):
    value = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    function = T.invert if dtype == "bool" else lambda x: x + x * np.asarray(2, dtype)
    f, w = one_step(value, function)
    before = address(w)
    f()
    assert address(w) == before
    want = ~value if dtype == "bool" else value + value * np.asarray(2, dtype)
    np.testing.assert_array_equal(w.get_value(), want)
    assert w.get_value().dtype == dtype


def test_products_write_into_what_they_add_to():
    x, y = T.dmatrix("x"), T.dvector("y")
    for start, step in [
        (np.ones((3, 2)), lambda w: w - 0.5 * T.dot(x.T, x[:, :2])),
        (np.ones(3), lambda w: 0.9 * w + T.dot(x, y)),
        (np.ones((3, 3)), lambda w: w + 2.0 * T.outer(y, y)),
    ]:
        w, v = shared(start, "w"), shared(start, "v")
        f = symcomp.function([x, y], [], updates=[(w, step(w))], on_unused_input="ignore")
        plain = symcomp.function(
            [x, y], [], updates=[(v, step(v))], on_unused_input="ignore", mode=PLAIN
        )
        before = address(w)
        values = np.arange(9.0).reshape(3, 3), np.arange(3.0)
        f(*values)
        plain(*values)
        assert address(w) == before and overwritten(f) == ["w"]
        np.testing.assert_allclose(w.get_value(), v.get_value())


def test_parts():
    i = T.lscalar("i")
    for step in (
        lambda w: T.set_subtensor(w[i], 7.0),
        lambda w: T.inc_subtensor(w[::-2], 1.0),
        lambda w: T.inc_subtensor(w[[0, 0, -1]], 1.0),
    ):
        w, v = shared(np.arange(4.0), "w"), shared(np.arange(4.0), "v")
        f = symcomp.function([i], [], updates=[(w, step(w))], on_unused_input="ignore")
        plain = symcomp.function(
            [i], [], updates=[(v, step(v))], mode=PLAIN, on_unused_input="ignore"
        )
        before = address(w)
        f(2)
        plain(2)
        assert address(w) == before
        np.testing.assert_array_equal(w.get_value(), v.get_value())


def test_two_updates_of_one_op():
    g = T.dvector("g")
    for n in (3, 30000):
        v, w = shared(np.ones(n), "v"), shared(np.arange(float(n)), "w")
        velocity = 0.9 * v - g
        f = symcomp.function([g], [], updates=[(v, velocity), (w, w + velocity)])
        assert overwritten(f) == ["v", "w"]
        before = address(v), address(w)
        f(np.ones(n))
        assert (address(v), address(w)) == before
        np.testing.assert_allclose(v.get_value(), -0.1)
        np.testing.assert_allclose(w.get_value(), np.arange(n) - 0.1)


# -- where the old value is still needed


def test_who_reads_the_old_value_comes_first():
    v, w = shared(np.arange(3.0), "v"), shared(np.ones(3), "w")
    mode = symcomp.Mode().excluding("fusion")
    f = symcomp.function([], T.exp(w).sum(), updates=[(w, w * 2.0), (v, v + w)], mode=mode)
    before = address(v), address(w)
    assert f() == pytest.approx(3 * np.e)
    assert (address(v), address(w)) == before
    assert v.get_value().tolist() == [1, 2, 3] and w.get_value().tolist() == [2, 2, 2]


def test_exchanged_values_need_an_array():
    v, w = shared([[0.0, 1.0], [0.0, 0.0]], "v"), shared(np.ones((2, 2)), "w")
    f = symcomp.function([], [], updates=[(w, w + T.dot(v, v.T)), (v, v + T.dot(w, w))])
    assert len(f.program.claimed) == 1
    f()
    assert w.get_value().tolist() == [[2, 1], [1, 1]]
    assert v.get_value().tolist() == [[2, 3], [2, 2]]
    v, w = shared(np.arange(3.0), "v"), shared([1.0, 2.0, 3.0], "w")
    plain = symcomp.function([], [], updates=[(w, v), (v, w)])
    plain()
    assert w.get_value().tolist() == [0, 1, 2] and v.get_value().tolist() == [1, 2, 3]


@pytest.mark.parametrize("borrow", [False, True])
def test_results_are_no_part_of_shared_memory(borrow):
    start = np.arange(6.0).reshape(2, 3)
    for result in (lambda w: w, lambda w: w.T, lambda w: w[0], lambda w: T.sort(w) + w):
        w = shared(start, "w")
        out = symcomp.Out(result(w), borrow=borrow)
        f = symcomp.function([], [out, w * 2.0], updates=[(w, w * 2.0)])
        first = f()
        saved = [v.copy() for v in first]
        np.testing.assert_array_equal(w.get_value(), 2 * start)
        f()
        f()
        for a, b in zip(first, saved, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(w.get_value(), 8 * start)


def test_what_an_op_reads_twice():
    for step in (lambda w: w - w.T, lambda w: w + w[::-1], lambda w: T.dot(w, w) + w):
        start = np.arange(9.0).reshape(3, 3)
        f, w = one_step(start, step)
        x = T.dmatrix()
        f()
        np.testing.assert_allclose(w.get_value(), step(x).eval({x: start}))


def test_a_new_value_that_others_read():
    w, x = shared(np.ones(3), "w"), T.dvector("x")
    new = w + x
    f = symcomp.function([x], [T.sort(new), new], updates=[(w, new)])
    for k in (1, 2, 3):
        ordered, value = f([3.0, 1.0, 2.0])
        np.testing.assert_array_equal(value, [1 + 3 * k, 1 + k, 1 + 2 * k])
        np.testing.assert_array_equal(ordered, np.sort(value))
        np.testing.assert_array_equal(w.get_value(), value)


def test_branches():
    c, w = T.lscalar("c"), shared(np.ones(3), "w")
    new = ifelse(c, w + 1.0, w * 3.0)
    f = symcomp.function([c], ifelse(c, w[::-1], T.exp(w)).sum(), updates=[(w, new)])
    assert f(1) == 3 and w.get_value().tolist() == [2, 2, 2]
    assert f(0) == pytest.approx(3 * np.exp(2)) and w.get_value().tolist() == [6, 6, 6]


# -- other holders of the array


def test_a_borrowed_value_does_not_change():
    f, w = one_step(np.ones((3, 3)), lambda w: w * 2.0)
    for hold in (lambda v: v, lambda v: v[0], lambda v: v.T[::-1], memoryview):
        held = hold(w.get_value(borrow=True))
        saved = np.array(held)
        f()
        np.testing.assert_array_equal(np.asarray(held), saved)
        held = None
        before = address(w)
        f()
        assert address(w) == before


@pytest.mark.parametrize("given_up", [False, True])
def test_memory_handed_over(given_up):
    f, w = one_step(np.ones(4), lambda w: w * 2.0)
    value = np.arange(4.0)
    w.set_value(value, borrow=True)
    at = value.ctypes.data
    if given_up:
        value = None
    f()
    assert (address(w) == at) == given_up
    assert value is None or value.tolist() == [0, 1, 2, 3]
    assert w.get_value().tolist() == [0, 2, 4, 6]


def test_values_that_cannot_be_written():
    for make in (
        lambda: np.broadcast_to(3.0, (4,)),
        lambda: np.arange(8.0)[::2],
        lambda: np.frombuffer(np.arange(4.0).tobytes()),
    ):
        f, w = one_step(np.ones(4), lambda w: w * 2.0)
        saved = make().copy()
        w.set_value(make(), borrow=True)
        f()
        np.testing.assert_array_equal(w.get_value(), 2 * saved)
        before = address(w)
        f()
        assert address(w) == before
    locked = np.arange(4.0)
    locked.flags.writeable = False
    f, w = one_step(np.ones(4), lambda w: w * 2.0)
    w.set_value(locked, borrow=True)
    f()
    assert locked.tolist() == [0, 1, 2, 3] and w.get_value().tolist() == [0, 2, 4, 6]


def test_two_variables_with_one_array():
    v, w = shared(np.ones(3), "v"), shared(np.ones(3), "w")
    f = symcomp.function([], [], updates=[(w, w + v)])
    v.set_value(w.get_value(borrow=True), borrow=True)
    f()
    assert v.get_value().tolist() == [1, 1, 1] and w.get_value().tolist() == [2, 2, 2]


def test_an_argument_that_is_the_value():
    w, x = shared(np.ones(3), "w"), T.dvector("x")
    f = symcomp.function([x], x * 1.0, updates=[(w, w + x)])
    f(w.get_value(borrow=True))
    assert w.get_value().tolist() == [2, 2, 2]
    total = T.dvector("total")
    g = symcomp.function([symcomp.In(total, value=np.zeros(2), update=total + 1.0)], [])
    mine = np.ones(2)
    g(mine)
    assert mine.tolist() == [1, 1] and g[total].tolist() == [2, 2]


@dataclass(frozen=True)
class Exchange(Op):
    """The identity; takes the value of ``EXCHANGED`` out of it, and stores another one."""

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        taken = EXCHANGED.get_value(borrow=True)
        EXCHANGED.set_value(np.zeros(3))
        TAKEN.append(taken)
        return x.copy()


EXCHANGED = symcomp.shared(np.ones(3), name="exchanged")
TAKEN = []


def test_a_value_that_was_exchanged_during_the_call():
    x = T.dvector("x")
    f = symcomp.function([x], [], updates=[(EXCHANGED, EXCHANGED + Exchange()(x))])
    assert overwritten(f) == ["exchanged"]
    f(np.ones(3))
    assert TAKEN[0].tolist() == [1, 1, 1]
    assert EXCHANGED.get_value().tolist() == [2, 2, 2]


def test_views_that_the_rest_of_the_call_needs():
    w, x = shared(np.ones((3, 3)), "w"), T.dmatrix("x")
    turned = w.T
    late = T.dot(T.sort(turned), x)
    f = symcomp.function([x], T.dot(late, turned), updates=[(w, w + late)])
    before = address(w)
    f(np.eye(3))
    assert address(w) == before
    np.testing.assert_array_equal(w.get_value(), np.full((3, 3), 2.0))


# -- failures


@dataclass(frozen=True)
class Refuse(Op):
    """The identity; an error for negative numbers."""

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        if (x < 0).any():
            raise ArithmeticError("negative")
        return x.copy()

    def infer_shape(self, node, shapes):
        return [shapes[0]]


def test_a_failed_call_changes_nothing():
    x, rows = T.dmatrix("x"), T.lvector("rows")
    params = [
        shared(np.ones((3, 2)), "a"),
        shared(np.ones((3, 4)), "b"),
        shared(np.ones((5, 2)), "c"),
        shared(np.zeros((2, 2)), "d"),
    ]
    a, b, c, d = params
    updates = [
        (a, a - T.dot(T.transpose(x), x[:, :2])),
        (c, T.inc_subtensor(c[rows], x[:, :2])),
        (d, d + Refuse()(x)[:2, :2]),
        (b, b - T.dot(T.transpose(x), x[:, 1:])),
    ]
    f = symcomp.function([x, rows], (x * 2.0).sum(), updates=updates)
    assert overwritten(f) == ["a", "b", "c", "d"]
    good = np.ones((4, 3))
    bad = [
        (good, [0, 1, 2, 5], IndexError),
        (good, [0, 1, 2], (ValueError, IndexError)),
        (-good, [0, 1, 2, 3], ArithmeticError),
        (np.ones((4, 5)), [0, 1, 2, 3], ValueError),
        (good, [0, 1, 2, 3], ValueError),  # the last update alone does not fit
    ]
    for value, index, error in bad:
        saved = [p.get_value() for p in params]
        with pytest.raises(error):
            f(value, index)
        for p, want in zip(params, saved, strict=True):
            np.testing.assert_array_equal(p.get_value(), want)
    b.set_value(np.ones((3, 2)))
    before = [address(p) for p in params]
    f(good, [0, 1, 2, 3])
    assert [address(p) for p in params] == before


def test_failures_at_the_gate_name_the_op_and_the_line():
    w, x = shared(np.ones(3), "w"), T.dvector("x")
    f = symcomp.function([x], [], updates=[(w, w - x)])
    with pytest.raises(ValueError) as problem:
        f(np.ones(4))
    assert any("test_in_place.py" in note for note in problem.value.__notes__)
    assert w.get_value().tolist() == [1, 1, 1]


def test_powers_of_integers_may_fail():
    w, x = shared(np.array([2, 3]), "w"), T.lvector("x")
    v = shared(np.ones(2), "v")
    f = symcomp.function([x], [], updates=[(v, v + x), (w, w**x)])
    with pytest.raises(ValueError):
        f([1, -1])
    assert v.get_value().tolist() == [1, 1] and w.get_value().tolist() == [2, 3]
    f([1, 2])
    assert v.get_value().tolist() == [2, 3] and w.get_value().tolist() == [2, 9]


def pressing(program, position):
    """Return a program in which Ctrl-C is pressed in an instruction."""
    step = program.instructions[position]

    def compute(*values):
        result = step.compute(*values)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    code = list(program.instructions)
    code[position] = replace(step, compute=compute)
    return replace(program, instructions=code)


def native_machine(program, position):
    """Return a native machine that computes the instruction at ``position`` in Python."""
    code = program.instructions
    lowered = lowered_instructions(code, lowerings("cpu"), {}, {})
    lowered[position] = python_call(code[position])
    return NativeMachine(program, lowered)


def python_machine(program, position):
    return PythonMachine(program)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent by kill")
@pytest.mark.parametrize("machine", [python_machine, native_machine])
def test_an_interrupt_waits_for_the_end(machine, monkeypatch):
    expected, others = training()
    expected([1, 2, 3], np.ones((3, 5)))
    handler = signal.getsignal(signal.SIGINT)
    code = expected.program.instructions
    computed = [i for i, step in enumerate(code) if step.compute is not None and not step.claims]
    assert len(computed) > 10
    for position in computed:
        with monkeypatch.context() as patched:
            patched.setattr(
                Executable,
                "_machine",
                lambda self, i=position: machine(pressing(self.program, i), i),
            )
            f, params = training()
        gates = [i for i, step in enumerate(f.program.instructions) if step.claims]
        saved = [p.get_value() for p in params]
        with pytest.raises(KeyboardInterrupt):
            f([1, 2, 3], np.ones((3, 5)))
        assert signal.getsignal(signal.SIGINT) is handler
        wanted = saved if position < gates[0] else [q.get_value() for q in others]
        for p, want in zip(params, wanted, strict=True):
            np.testing.assert_allclose(p.get_value(), want, rtol=1e-12)


# -- modes, copies, threads


def test_not_where_values_are_kept_or_watched():
    for mode in (symcomp.Mode("vm_nogc"), PLAIN):
        assert not training(mode=mode)[0].program.claimed
    with symcomp.config.change_flags(nan_guard="all"):
        f, params = training()
        assert not f.program.claimed
        saved = [p.get_value() for p in params]
        with pytest.raises(FloatingPointError):
            params[0].set_value(np.full((5, 5), np.inf))
            saved[0] = params[0].get_value()
            f([1, 2, 3], np.ones((3, 5)))
    for p, want in zip(params, saved, strict=True):
        np.testing.assert_array_equal(p.get_value(), want)


def test_profiles_copies_and_pickles():
    f, params = training()
    twin = f.copy(profile=True)
    before = [address(p) for p in params]
    twin([1], np.ones((1, 5)))
    f([1], np.ones((1, 5)))
    assert [address(p) for p in params] == before
    assert "claim" in twin.profile.text()
    assert not f.copy(delete_updates=True).program.claimed
    again = pickle.loads(pickle.dumps(f))
    for p, q in zip(f.get_shared(), again.get_shared(), strict=True):
        np.testing.assert_array_equal(p.get_value(), q.get_value())
    again([1], np.ones((1, 5)))  # the first call moves arrays read from the pickle
    there = [address(p) for p in again.get_shared()]
    again([1], np.ones((1, 5)))
    assert [address(p) for p in again.get_shared()] == there
    other = symcomp.shared(np.zeros((5, 5)), name="other")
    swapped = f.copy(swap={params[0]: other})
    swapped([1], np.ones((1, 5)))
    assert [address(p) for p in params] == before


def test_stored_calls_in_a_row():
    f, w = one_step(np.ones(3), lambda w: w + 1.0)
    before = address(w)
    f.fn(n_calls=5)
    assert address(w) == before and w.get_value().tolist() == [6, 6, 6]


def test_the_report_counts_no_array_for_it():
    f, _ = training(100)
    plain, _ = training(100, PLAIN)
    examples = (7,), (7, 100)
    assert f.memory_report(*examples).results == 8
    assert plain.memory_report(*examples).results == 8 * (1 + 100 * 100 + 50 * 100 + 100)
    assert "claim" in str(f.program)


def test_threads_never_see_half_of_an_update():
    n = 40000
    w = shared(np.zeros(n), "w")
    v = shared(np.zeros(n), "v")
    step = symcomp.function([], [], updates=[(w, w + 1.0), (v, v + 1.0)])
    look = symcomp.function([], [w.max() - w.min(), v.max() - v.min()])
    assert overwritten(step) == ["v", "w"]
    wrong = []

    def write():
        for _ in range(100):
            step()

    def read():
        for _ in range(100):
            spread = look()
            value = w.get_value()
            if any(spread) or value.min() != value.max():
                wrong.append((spread, value.min(), value.max()))

    threads = [threading.Thread(target=t) for t in (write, write, read, read)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert 100 <= w.get_value()[0] <= 200
