"""The native machine gives what the Python machine gives, for every program."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse
from symcomp.ops.control.python_op import as_op
from symcomp.ops.linalg.blas import Gemm, Gemv, Ger, ScaledDot
from symcomp.tests.cvm.looking import native
from symcomp.vm.machine import UNSET, PythonMachine

RNG = np.random.default_rng(3)


def both(inputs, outputs, values, rtol=0.0, **options):
    """Run a program on both machines, compare, and return the results."""
    machine = native(inputs, outputs, **options).machine
    wanted = PythonMachine(machine.program).run(values)
    for _ in range(2):
        found = machine.run(values)
        for got, want in zip(found, wanted, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    return found


def layouts(array):
    """Yield the same numbers in several memory layouts."""
    yield array
    yield np.asfortranarray(array)
    yield np.repeat(array, 2, axis=-1)[..., ::2]
    yield np.ascontiguousarray(array[::-1])[::-1]
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    yield wide[..., : array.shape[-1]]


SIZES = [(1, 1, 1), (1, 3, 4), (3, 1, 4), (3, 4, 1), (2, 3, 4), (0, 2, 3), (2, 0, 3), (5, 7, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("ranks", [(2, 2), (1, 2), (2, 1), (1, 1)], ids=str)
def test_dot(dtype, ranks):
    x, y = (T.tensor(dtype, shape=(None,) * r) for r in ranks)
    for n, k, m in SIZES:
        a = (10 * RNG.normal(size=(n, k)[2 - ranks[0] :])).astype(dtype)
        b = (10 * RNG.normal(size=(k, m)[: ranks[1]])).astype(dtype)
        for left in layouts(a):
            for right in layouts(b):
                both(
                    [x, y], [T.dot(x, y)], [left, right], rtol=1e-5 if dtype == "float32" else 1e-12
                )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("beta", [0.0, 1.0, -2.5])
def test_gemm(dtype, trans_a, trans_b, beta):
    c, a, b = (T.tensor(dtype, shape=(None, None)) for _ in range(3))
    alpha, scale = T.tensor(dtype, shape=()), T.tensor(dtype, shape=())
    out = Gemm(trans_a=trans_a, trans_b=trans_b)(c, alpha, a, b, scale)
    plain = ScaledDot(trans_a, trans_b)(alpha, a, b)
    for n, k, m in SIZES:
        values = [
            RNG.normal(size=(n, m)).astype(dtype),
            np.array(1.5, dtype),
            RNG.normal(size=(k, n) if trans_a else (n, k)).astype(dtype),
            RNG.normal(size=(m, k) if trans_b else (k, m)).astype(dtype),
            np.array(beta, dtype),
        ]
        if beta == 0 and n and m:
            values[0][0, 0] = np.nan
        for lay in range(5):
            laid = [list(layouts(v))[lay] if v.ndim else v for v in values]
            both(
                [c, alpha, a, b, scale],
                [out, plain],
                laid,
                rtol=1e-5 if dtype == "float32" else 1e-12,
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors(dtype):
    a, x, y = T.tensor(dtype, shape=(None, None)), *(T.tensor(dtype, shape=(None,)) for _ in "xy")
    alpha, beta = T.tensor(dtype, shape=()), T.tensor(dtype, shape=())
    matrix = RNG.normal(size=(4, 3)).astype(dtype)
    for trans in (False, True):
        n, k = (3, 4) if trans else (4, 3)
        z = Gemv(trans_a=trans)(y, alpha, a, x, beta)
        for lay in layouts(matrix):
            values = [
                lay,
                RNG.normal(size=k).astype(dtype),
                RNG.normal(size=2 * n).astype(dtype)[::2],
            ]
            values += [np.array(0.5, dtype), np.array(-1, dtype)]
            both([a, x, y, alpha, beta], [z], values, rtol=1e-5)
    for lay in layouts(matrix):
        values = [lay, RNG.normal(size=3).astype(dtype)[::-1], RNG.normal(size=4).astype(dtype)]
        both([a, x, y, alpha], [Ger()(a, alpha, y, x)], [*values, np.array(2, dtype)], rtol=1e-5)


def test_nan_and_infinity_in_products():
    x, y = T.dmatrices("x", "y")
    a = np.array([[np.nan, 0.0], [np.inf, 1.0]])
    both([x, y], [T.dot(x, y), T.dot(y, x)], [a, np.ones((2, 2))])


def test_what_does_not_fit():
    x, y = T.dmatrices("x", "y")
    machine = native([x, y], [T.exp(x), T.dot(x, y)]).machine
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(2, 3\)") as caught:
        machine.run([np.ones((2, 3)), np.ones((2, 3))])
    assert "test_machine.py" in "".join(caught.value.__notes__)
    assert machine.run([np.ones((2, 2)), np.ones((2, 2))])[1].sum() == 8


def test_transposes_are_views():
    x = T.tensor("float64", shape=(None, 1, None))
    z = x.dimshuffle(2, "x", 0)
    value = RNG.normal(size=(2, 1, 3))
    (found,) = both([x], [z], [value], borrowed=[0])
    assert np.shares_memory(found, value)
    value.flags.writeable = False
    (found,) = native([x], [z], borrowed=[0]).run([value])
    assert not found.flags.writeable and found.shape == (3, 1, 2)


def test_kinds_of_calls():
    x, y = T.dmatrices("x", "y")
    machine = native([x, y], [T.dot(x.T, y)]).machine
    assert [how.name for how in machine.lowered] == ["transpose", "product"]


def test_lazy():
    c, x = T.bscalar("c"), T.dvector("x")
    ran = []

    def seen(value):
        ran.append(1)
        return value

    z = ifelse(c, T.exp(x).sum(), ifelse(c + 1, (x * 2).sum(), x.prod()))
    for value in (0, 1, -1):
        both([c, x], [z, T.exp(x)], [np.array(value, "int8"), np.arange(3.0)])
    assert not ran


def test_several_outputs_and_none():
    x = T.dvector("x")
    outs = T.nlinalg.eigh(T.outer(x, x))
    both([x], list(outs), [np.arange(1.0, 4.0)], rtol=1e-9)
    assert native([x], []).run([np.ones(2)]) == []


def test_kept_values():
    x = T.dvector("x")
    machine = native([x], [T.exp(x) + 1], keep=True, collect=False).machine
    for _ in range(3):
        machine.run([np.zeros(2)])
        assert len(machine.kept) == len(machine.program.variables)
        assert any(v is not UNSET and np.array_equal(v, [1.0, 1.0]) for v in machine.kept)
        machine.free()
        assert machine.kept is None


def test_long_programs():
    """More instructions than a stack is deep, in two threads at once."""
    x = T.dvector("x")
    y = x
    with config.change_flags(kernels=False):
        for _ in range(20_000):
            y = T.sort(y)
        machine = native([x], [y]).machine
    assert len(machine.program.instructions) == 20_000
    values = [np.array([2.0, 1.0]), np.array([4.0, 3.0])]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda value: machine.run([value])[0].tolist(), values))
    assert found == [[1, 2], [3, 4]]


def test_threads_do_not_meet():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.dot(x, x.T).sum(), mode=symcomp.Mode("cvm"))
    values = [i * np.ones((30, 30)) for i in range(8)]
    found = [0.0] * 8

    def work(i):
        for _ in range(50):
            found[i] = float(f(values[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [30.0**3 * i * i for i in range(8)]


def test_usable_after_an_interrupt():
    x = T.dvector("x")
    stops = [True]

    @as_op(itypes=[T.dvector], otypes=[T.dvector])
    def interrupted(value):
        if stops:
            raise KeyboardInterrupt
        return value + 1

    machine = native([x], [interrupted(T.exp(x)) * 2]).machine
    with pytest.raises(KeyboardInterrupt):
        machine.run([np.zeros(2)])
    stops.clear()
    assert machine.run([np.zeros(2)])[0].tolist() == [4, 4]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["dot", "add", "T", "exp", "row", "scale"]), max_size=12), st.data()
)
def test_random_programs(steps, data):
    x, y = T.dmatrices("x", "y")
    pool = [x, y]
    for step in steps:
        a, b = (pool[data.draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        pool.append(
            {
                "dot": lambda a, b: T.dot(a, b),
                "add": lambda a, b: a + b,
                "T": lambda a, b: a.T,
                "exp": lambda a, b: T.tanh(a),
                "row": lambda a, b: a.sum(axis=0, keepdims=True) + b,
                "scale": lambda a, b: a - 0.5 * T.dot(a, b),
            }[step](a, b)
        )
    f = [symcomp.function([x, y], pool, mode=symcomp.Mode(m)) for m in ("cvm", "vm")]
    values = [RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))]
    for got, want in zip(f[0](*values), f[1](*values), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 4), (0, 4), (1, 1), (3, 0)])
def test_parts_are_views(shape):
    x = T.dmatrix("x")
    picks = [
        x[1:], x[:-1], x[::-1], x[::-2, 1:], x[:, None], x[None, ..., 7:], x[-9:9:3], x[..., None],
        x[4:1:-1], x[:, ::2][1:],
    ]  # fmt: skip
    machine = native([x], picks, borrowed=range(len(picks))).machine
    assert {how.name for how in machine.lowered} == {"view"}
    for value in layouts(RNG.normal(size=shape)):
        wanted = PythonMachine(machine.program).run([value])
        for got, want in zip(machine.run([value]), wanted, strict=True):
            assert got.shape == want.shape and got.flags.writeable == want.flags.writeable
            np.testing.assert_array_equal(got, want)
            assert np.shares_memory(got, value) == np.shares_memory(want, value)


def test_a_part_that_is_not_there():
    x = T.dmatrix("x")
    machine = native([x], [x[2], x[-3]]).machine
    for got, want in zip(machine.run([np.eye(3)]), np.eye(3)[[2, 0]], strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError, match="out of bounds") as error:
        machine.run([np.eye(2)])
    assert "Subtensor" in error.value.__notes__[0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(5, 4), (0, 4), (1, 1), (3, 0)])
def test_joins(shape, dtype):
    x = T.TensorType(dtype, (None, None))("x")
    sums = [x + x, x * x, x, x[::-1]]
    for axis in (0, 1):
        joins = [T.concatenate(parts, axis) for parts in (sums, [x, x], sums[:1] * 3)]
        outputs = [*joins, T.stack([x + x, x], axis=axis), joins[0] + joins[0]]
        for value in layouts(RNG.normal(size=shape).astype(dtype)):
            both([x], outputs, [value])


def test_parts_of_a_join_that_do_not_fit():
    x, y = T.dmatrices("x", "y")
    for part in (y, y + y):
        machine = native([x, y], [T.concatenate([x + x, part])]).machine
        with pytest.raises(ShapeError, match="join along axis 0"):
            machine.run([np.eye(2), np.eye(3)])
