"""Calls: arguments passed unchanged, updates set at the end, interrupts."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.cvm.machine import Cell, Transaction
from symcomp.errors import DTypeError, ShapeError

MODES = [symcomp.Mode("cvm"), symcomp.Mode("vm")]

TYPES = [
    T.tensor(dtype, shape=shape)
    for dtype in ("bool", "int8", "int64", "uint64", "float16", "float32", "float64", "complex128")
    for shape in ((), (None,), (3,), (None, 1), (2, None, 2))
]

VALUES = [
    True,
    3,
    -1,
    2**62,
    2**63,
    2**70,
    2.5,
    0.1,
    np.nan,
    1j,
    np.int8(3),
    np.int64(3),
    np.uint64(3),
    np.float16(0.5),
    np.float32(0.5),
    np.float64(0.1),
    np.complex128(1j),
    np.array(2),
    np.array(2.5),
    [1.0, 2.0, 3.0],
    [True, False],
    [[1], [2]],
    [],
    "text",
    None,
    np.ones(3),
    np.ones(4),
    np.ones(0),
    np.ones(6)[::-2],
    np.ones(3, ">f8"),
    np.ones(3, ">i8"),
    np.ones(3, "int64"),
    np.ones(3, "longlong"),
    np.ones((4, 1)),
    np.ones((4, 2)),
    np.ones((2, 3, 2), order="F"),
    np.ones((2, 0, 2), "float32"),
    np.ones((3, 2, 2)),
    np.ma.masked_array(np.ones(3), [True, False, False]),
    np.ones(3).view(np.recarray),
]


@pytest.mark.parametrize("x", TYPES, ids=lambda x: str(x.type))
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("options", [{}, {"strict": True}, {"allow_downcast": True}], ids=str)
def test_arguments_are_what_the_type_makes_of_them(x, options):
    f = symcomp.function([symcomp.In(x, borrow=True, **options)], symcomp.Out(x, borrow=True))
    strict, downcast = options.get("strict", False), options.get("allow_downcast")
    with np.errstate(all="ignore"):
        for value in VALUES:
            try:
                want = x.type.filter(value, strict, downcast)
            except (TypeError, ValueError) as problem:
                with pytest.raises(type(problem), match="argument 0"):
                    f(value)
                continue
            got = f(value)
            assert type(got) is type(want) and got.dtype == want.dtype and got.dtype.isnative
            np.testing.assert_array_equal(got, want)
            assert (got is value) == (want is value)


@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
def test_by_position_and_by_name(mode):
    x, y, z = T.dvector("x"), T.dscalar("y"), T.lscalar("z")
    f = symcomp.function([x, y, symcomp.In(z, value=5)], x * y + z, mode=mode)
    for args, names in [
        ([[1.0], 2], {}),
        ([[1.0]], {"y": 2}),
        ([], {"y": 2.0, "x": np.ones(1)}),
        ([np.ones(1), np.float64(2), 5], {}),
        ([[1.0], 2.0], {"z": np.int8(5)}),
    ]:
        np.testing.assert_array_equal(f(*args, **names), [7.0])
    for args, names, message in [
        ([[1.0]], {}, r"missing argument 1 \(y"),
        ([[1.0], 2.0, 3, 4], {}, "4 positional arguments"),
        ([[1.0], 2.0], {"x": [1.0]}, "'x' is given by position and by name"),
        ([[1.0], 2.0], {"w": 1}, "unknown argument 'w'"),
        ([[1.0], 2.0, 0.5], {}, r"argument 2 \(z"),
    ]:
        with pytest.raises(TypeError, match=message):
            f(*args, **names)
    assert f["z"] == 5


def test_errors_name_the_argument():
    x, y = T.tensor("float64", shape=(None, 3), name="x"), T.fvector("y")
    f = symcomp.function([x, y], x.sum() + y.sum())
    with pytest.raises(ShapeError, match=r"argument 0 \(x.*\(2, 4\)"):
        f(np.ones((2, 4)), np.ones(1, "float32"))
    with pytest.raises(DTypeError, match=r"argument 1 \(y.*float64"):
        f(np.ones((2, 3)), np.ones(1))


@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_structures_of_outputs(mode, trust, outputs):
    x, total = T.dscalar("x"), symcomp.shared(0.0)
    listed = [x + k for k in range(outputs)]
    named = {str(k): x + k for k in range(outputs)}
    updates = [(total, total + x)]
    options = {"updates": updates, "mode": mode, "trust_input": trust}
    f = symcomp.function([x], listed, **options)
    g = symcomp.function([x], named, **options)
    one = np.array(1.0)
    assert f(one) == [1.0 + k for k in range(outputs)]
    assert g(one) == {str(k): 1.0 + k for k in range(outputs)}
    assert symcomp.function([x], None, **options)(one) is None
    assert symcomp.function([x], x, **options)(one) == 1.0
    assert f(one, output_subset=[outputs - 1] if outputs else []) == [1.0 * outputs] * (outputs > 0)
    assert total.get_value() == 5.0


@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
@pytest.mark.parametrize("shape", [(), (7,), (300, 300)])
def test_many_calls_at_once(mode, shape):
    w, v = symcomp.shared(np.zeros(shape), name="w"), symcomp.shared(np.zeros(shape), name="v")
    updates = [(w, w + 1.0), (v, v + w)]
    f = symcomp.function([], [w.sum(), v], updates=updates, mode=mode)
    count = int(np.prod(shape))
    last = f.fn(n_calls=5)
    assert last[0] == 4 * count
    np.testing.assert_array_equal(last[1], np.full(shape, 0.0 + 1 + 2 + 3))
    np.testing.assert_array_equal(v.get_value(), np.full(shape, 10.0))
    before = last[1].copy()
    f()
    np.testing.assert_array_equal(last[1], before)


@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
def test_many_calls_write_in_place(mode):
    w = symcomp.shared(np.zeros(7), name="w")
    f = symcomp.function([], T.constant(3.0), updates=[(w, w + 1.0)], mode=mode)
    address = w.get_value(borrow=True).ctypes.data
    assert f.fn(n_calls=200) == [3.0]
    assert w.get_value(borrow=True).ctypes.data == address
    assert (w.get_value() == 200).all()


def test_a_failure_among_many_calls_keeps_what_was_done():
    n = symcomp.shared(3, name="n")
    f = symcomp.function([], T.arange(3)[n - 1], updates=[(n, n - 1)])
    with pytest.raises(IndexError):
        f.fn(n_calls=10)
    assert n.get_value() == -3


@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
def test_a_new_value_that_does_not_fit(mode):
    x = T.dvector("x")
    n, w = symcomp.shared(0), symcomp.shared(np.ones(1), shape=(1,), name="w")
    f = symcomp.function([x], [], updates=[(n, n + 1), (w, T.specify_shape(x, (1,)))], mode=mode)
    f([3.0])
    assert (n.get_value(), w.get_value()) == (1, 3.0)
    with pytest.raises(ShapeError):
        f([1.0, 2.0])
    assert (n.get_value(), w.get_value()) == (1, 3.0)


def test_other_threads_and_signals_have_their_turn_between_calls():
    n = symcomp.shared(np.array(0), name="n")
    f = symcomp.function([], [], updates=[(n, n + 1)])
    counts = []

    def press():
        counts.extend(int(n.get_value()) for _ in range(3))
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        f.fn(n_calls=10**9)
    thread.join()
    counts.append(int(n.get_value()))
    assert counts == sorted(counts)
    f()
    assert n.get_value() == counts[-1] + 1


@pytest.mark.skipif(os.name == "nt", reason="signals are sent by kill")
@pytest.mark.parametrize("mode", MODES, ids=["cvm", "vm"])
@pytest.mark.overwrites
def test_ctrl_c_while_values_are_written_over(mode):
    i, size = T.lscalar("i"), 3_000_000
    w, v = symcomp.shared(np.zeros(size), name="w"), symcomp.shared(np.zeros(5), name="v")
    step = T.exp(T.sin(w)) * 0 + w + 1.0
    updates = [(w, step), (v, T.inc_subtensor(v[i], 1.0))]
    f = symcomp.function([i], [], updates=updates, mode=mode)
    assert len(f.program.claimed) == 2
    handler = signal.getsignal(signal.SIGINT)
    for delay in (0.0, 0.005, 0.02):
        go = threading.Event()

        def press(go=go, delay=delay):
            go.wait()
            time.sleep(delay)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            go.set()
            f(2)
            thread.join()
            time.sleep(10)
        thread.join()
        values = set(w.get_value())
        assert values == {v.get_value()[2]}
        assert signal.getsignal(signal.SIGINT) is handler
    f(2)
    assert set(w.get_value()) == {v.get_value()[2]}


@pytest.mark.overwrites
def test_shared_values_are_copied_while_somebody_holds_them():
    w = symcomp.shared(np.zeros(3), name="w")
    f = symcomp.function([], [], updates=[(w, w + 1.0)])
    x = T.dvector("x")
    g = symcomp.function([x], [], updates=[(w, w + x)])
    held = w.get_value(borrow=True)
    part = held[1:]
    f()
    assert (held == 0).all() and (w.get_value() == 1).all()
    held = w.get_value(borrow=True)
    f()
    assert (held == 1).all() and (part == 0).all() and (w.get_value() == 2).all()
    del held
    g(w.get_value(borrow=True))
    assert (w.get_value() == 4).all()
    address = w.get_value(borrow=True).ctypes.data
    f()
    assert w.get_value(borrow=True).ctypes.data == address


def test_two_shared_variables_with_one_array():
    array = np.zeros(3)
    v, w = (symcomp.shared(array, borrow=True, name=name) for name in "vw")
    del array
    f = symcomp.function([], [], updates=[(v, v + 1.0), (w, w + 2.0)])
    f()
    f.fn(n_calls=2)
    assert (v.get_value() == 3).all() and (w.get_value() == 6).all()


def test_calls_with_many_values():
    inputs = [T.dscalar(f"x{k}") for k in range(100)]
    f = symcomp.function(inputs, [x + 1.0 for x in inputs], mode=symcomp.Mode().excluding("fusion"))
    assert f(*range(100)) == [k + 1.0 for k in range(100)]


def test_transactions_within_each_other():
    inside, outside = Cell(), Cell()
    inside.value, outside.value = 1, 2
    outer, inner = Transaction([outside]), Transaction([inside, outside])
    handler = signal.getsignal(signal.SIGINT)
    outer.begin()
    inner.begin()
    signal.raise_signal(signal.SIGINT)
    assert inside.read() + outside.read() == 3
    inner.end()
    found = []
    reader = threading.Thread(target=lambda: found.extend([inside.read(), outside.read()]))
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    with pytest.raises(KeyboardInterrupt):
        outer.end()
    reader.join()
    assert found == [1, 2] and signal.getsignal(signal.SIGINT) is handler
    outer.end()


@pytest.mark.overwrites
def test_the_gate_asks_kernels_whether_they_take_their_values():
    x = T.dmatrix("x")
    w, b = symcomp.shared(np.ones((2, 2))), symcomp.shared(np.zeros(3))
    updates = [(w, w * 2.0), (b, b - T.sqr(x).sum(axis=0))]
    with symcomp.config.change_flags(kernels=True):
        f = symcomp.function([x], x.sum(), updates=updates, profile=True)
    f(np.ones((2, 3)))
    steps = f.program.instructions
    counted = [c for c in f.profiled.tally.counted() if steps[c.position].claims]
    assert [(c.runs, c.in_python) for c in counted] == [(1, 0)]
    with pytest.raises(ValueError, match=r"\(3,\) \(2,\)"):
        f(np.ones((2, 2)))
    np.testing.assert_array_equal(w.get_value(), np.full((2, 2), 2.0))
    np.testing.assert_array_equal(b.get_value(), [-2.0, -2.0, -2.0])
    f(np.ones((2, 3)))
    np.testing.assert_array_equal(b.get_value(), [-4.0, -4.0, -4.0])
