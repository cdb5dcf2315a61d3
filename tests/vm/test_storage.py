"""The storage plan: the arrays that are overwritten, and that no value is disturbed by it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.core.tensor import TensorType
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse
from symcomp.ops.elementwise.scalar_logic import switch
from symcomp.ops.shapes.join import Join
from symcomp.tensor.inplace import add_inplace, mul_inplace, tanh_inplace
from symcomp.vm.destinations import Reserve
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine

N = 3


def programs(inputs, outputs, **options):
    """Return the program as planned, and with a new array for every value."""
    graph = FunctionGraph(inputs, outputs)
    return lower(graph, **options), lower(graph, inplace=False, sharing=False, **options)


def written(program):
    """For every instruction that writes into something: what it computes, and into which slot."""
    return [(str(s.node.op), slot) for s in program.instructions for slot in s.into if slot >= 0]


def agree(inputs, outputs, values, **options):
    """Check that planning changes no value, no input and no constant; return the program."""
    planned, plain = programs(inputs, outputs, **options)
    before = [v.copy() for v in values]
    wanted = PythonMachine(plain).run(values)
    machine = PythonMachine(planned)
    first = machine.run(values)
    kept = [v.copy() for v in first]
    second = machine.run(values)
    for got, want in [*zip(first, wanted, strict=True), *zip(second, wanted, strict=True)]:
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    for a, b in zip([*values, *first], [*before, *kept], strict=True):
        np.testing.assert_array_equal(a, b, err_msg="an input or a result was overwritten")
    return planned


def test_elementwise_in_place():
    x = T.dvector("x")
    program = agree([x], [T.tanh(T.exp(x) * 2.0 + x)], [np.ones(3)])
    assert [name for name, _ in written(program)] == ["mul", "add", "tanh"]


def test_what_is_needed_later_is_not_overwritten():
    x = T.dvector("x")
    y = T.exp(x)
    program = agree([x], [T.sin(y) + y], [np.ones(3)])
    assert [name for name, _ in written(program)] == ["add"]
    assert not written(agree([x], [y, T.sin(y)], [np.ones(3)]))
    assert not written(agree([x], [T.sin(x)], [np.ones(3)]))


def test_what_has_a_living_view_is_not_overwritten():
    x = T.dvector("x")
    y = T.exp(x)
    view = y[::-1]
    assert not written(agree([x], [T.sin(y), view], [np.arange(3.0)]))
    late = T.sin(y) * view
    program = agree([x], [late], [np.arange(3.0)])
    assert [name for name, _ in written(program)] == ["mul"]
    both = agree([x], [y + view], [np.arange(3.0)])
    assert not written(both)


def test_dtype_and_shape_must_agree():
    x, row = T.dmatrix("x"), T.drow("row")
    assert not written(agree([x], [T.gt(T.exp(x), 1)], [np.ones((2, 2))]))
    program = agree([x, row], [T.exp(row) + x], [np.ones((2, 2)), np.ones((1, 2))])
    assert not written(program)
    program = agree([x, row], [row + T.exp(x)], [np.ones((2, 2)), np.ones((1, 2))])
    assert [name for name, _ in written(program)] == ["add"]


def test_an_array_that_died_earlier_is_taken_over():
    x = T.dmatrix("x")
    y = T.exp(x)
    program = agree([x], [y.sum() * T.sin(x)], [np.ones((2, 2))])
    assert written(program) == [("sin", 1), ("mul", 4)]
    assert 1 in program.instructions[-2].frees and 1 not in program.instructions[1].frees
    alone = lower(FunctionGraph([x], [y.sum() * T.sin(x)]), sharing=False)
    assert [name for name, _ in written(alone)] == ["mul"]


def test_products_of_matrices_are_written_into_dead_arrays():
    x, y = (TensorType("float64", (4, 4))(name) for name in "xy")
    a = T.dot(x, y)
    total = a.sum()
    values = [np.arange(16.0).reshape(4, 4), np.eye(4)]
    program = agree([x, y], [total * T.dot(y, x)], values)
    assert ("Dot", 2) in written(program)
    transposed = T.exp(x.T)
    program = agree([x, y], [transposed.sum() * T.dot(y, x)], values)
    assert [name for name, _ in written(program)][0] == "Dot"  # into an array in Fortran order
    for a, b in ((x[0], y[0]), (x, y[0]), (x[0], y)):
        dead = T.exp(T.dot(a, b)).sum()
        agree([x, y], [dead * T.dot(a * 2.0, b)], values)


def test_products_of_vectors_are_written_into_dead_numbers():
    x = T.dvector("x")
    square = product = T.dot(x, x)
    for _ in range(3):
        product = T.dot(x * product, x)
    program = agree([x], [product - square], [np.ones(3)])
    assert [name for name, _ in written(program)].count("Dot") == 2


def test_writing_into_a_part():
    x = T.dvector("x")
    i = T.lvector("i")
    for part in (slice(1, None), i):
        for write in (T.set_subtensor, T.inc_subtensor):
            y = write(T.exp(x)[part], 5.0)
            program = agree([x, i], [write(y[part], 2.0)], [np.arange(4.0), np.array([0, 2, 2])])
            slots = [slot for slot, v in enumerate(program.variables) if str(v) == "exp"]
            assert len(written(program)) == 2 and written(program)[0][1] in slots
    y = T.exp(x)
    assert not written(agree([x], [T.set_subtensor(y[:2], y[2:])], [np.arange(4.0)]))


def test_choices_overwrite_either_side():
    x, y = T.dvector("x"), T.dvector("y")
    c = T.bvector("c")
    values = [np.array([1, 0, 2], np.int8), np.arange(3.0), -np.arange(3.0)]
    for pair in ((T.exp(x), y), (x, T.exp(y)), (T.exp(x), T.exp(y))):
        assert written(agree([c, x, y], [switch(c, *pair)], values))
    flag = T.gt(x, 0)
    program = agree([x, y], [switch(flag, T.gt(y, 0), T.lt(y, -1))], values[1:])
    assert written(program)


def test_an_overwritten_argument_is_not_stretched_unseen():
    x, y = T.dvector("x"), T.dvector("y")
    planned, plain = programs([x, y], [T.exp(x) + T.exp(y)])
    assert written(planned)
    for shapes in ((1, 3), (3, 1)):
        values = [np.ones(n) for n in shapes]
        for program in (planned, plain):
            with pytest.raises(ShapeError, match="addbroadcast"):
                PythonMachine(program).run(values)
    for program in (planned, plain):
        with pytest.raises(ValueError, match="broadcast|shape"):
            PythonMachine(program).run([np.ones(2), np.ones(3)])


def test_sums_of_many_keep_what_they_still_need():
    x = T.dvector("x")
    a, b, c = T.exp(x), T.sin(x), T.cos(x)
    op = T.add.op
    for arguments in ((a, b, c), (a, a, b), (x, x, c), (x, b, b), (a,), (c, c, c)):
        agree([x], [op(*arguments)], [np.arange(3.0)])


def test_branches():
    c, x = T.lscalar("c"), T.dvector("x")
    y = T.exp(x)
    inside = ifelse(c, T.sin(T.cos(x)) + y, T.tanh(y) * y)
    for choice in (0, 1):
        values = [np.asarray(choice), np.arange(3.0)]
        assert written(agree([c, x], [inside], values))
        agree([c, x], [inside * 2.0, y], values)
        agree([c, x], [T.sin(ifelse(c, y, T.cos(x)))], values)
        agree([c, x], [ifelse(c, y, y.sum() + T.cos(x)) + T.sqr(y)], values)
        # The values of a branch do not exist if the other one ran.
        agree([c, x], [ifelse(c, T.exp(x), T.cos(x)).sum() * T.sin(x)], values)


def fused(inputs, outputs):
    """Return the Fused node that rewriting makes, planned; and how many of its outputs overwrite.
    """
    f = symcomp.function(inputs, outputs)
    steps = [s for s in f.program.instructions if "Fused" in str(s.node and s.node.op)]
    plain = symcomp.function(inputs, outputs, mode=symcomp.Mode().excluding("inplace"))
    return f, plain, sum(slot in step.inputs for step in steps for slot in step.into)


def test_fused_ops_overwrite_what_they_do_not_read_any_more():
    x = T.dmatrix("x")
    y = T.sort(x, axis=0)
    n = 200  # more elements than one block has
    cases = [
        ([T.tanh(y * 2.0) + y * x], 1),
        ([T.tanh(y) + 1.0, y * 3.0], 1),  # the last result only: the first comes before it
        ([T.tanh(y) * 2.0, T.tanh(y) * 3.0], 1),  # only one can
        ([T.exp(y.T * 2.0) + x], 0),  # read through a view
        ([T.exp(y * 2.0) + x, y], 0),
        ([T.gt(T.exp(y) * 2.0, 1.0)], 0),
    ]
    for outputs, count in cases:
        f, plain, overwritten = fused([x], outputs)
        assert overwritten == count, str(f.program)
        value = np.linspace(-1, 1, n * n).reshape(n, n)
        for argument in (value, value.T, value[::-1], value[:1, :1]):
            for a, b in zip(f(argument), plain(argument), strict=True):
                np.testing.assert_array_equal(a, b)


def test_fused_ops_write_into_arrays_that_died_earlier():
    x = TensorType("float64", (200, 200))("x")
    dead = T.dot(x, x)
    values = [np.linspace(-1, 1, 40000).reshape(200, 200)]
    for source in (dead, T.exp(dead.T), T.sort(dead)):
        total = T.dot(source, source).sum()
        f, plain, _ = fused([x], [T.tanh(x * total) + T.sin(x)])
        assert any(step.into for step in f.program.instructions)
        np.testing.assert_array_equal(f(*values), plain(*values))


@dataclass(frozen=True)
class Same(Op):
    """A user's op that gives back its input and does not say so."""

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        return x

    def infer_shape(self, node, shapes):
        return [shapes[0]]


def test_users_ops_are_not_trusted():
    x = T.dvector("x")
    agree([x], [T.exp(Same()(x))], [np.arange(3.0)])
    y, y0 = T.exp(x), np.ones(3)
    agree([x], [T.sin(Same()(y)) * y], [np.arange(3.0)])
    for out in (Same()(x), add_inplace(Same()(x), x + x), tanh_inplace(Same()(T.constant(y0)))):
        agree([x], [out], [np.arange(3.0)])


def test_nothing_is_planned_where_values_are_kept():
    x = T.dvector("x")
    y = T.tanh(T.exp(x))
    mode = symcomp.Mode().excluding("fusion")
    assert written(symcomp.function([x], y, mode=mode).program)
    kept = symcomp.Mode("vm_nogc").excluding("fusion")
    assert not written(symcomp.function([x], y, mode=kept).program)
    assert not written(symcomp.function([x], y, mode=mode.excluding("inplace")).program)


def test_a_failed_call_leaves_shared_variables():
    s, x = symcomp.shared(np.arange(3.0)), T.dvector("x")
    f = symcomp.function([x], T.exp(s) + x, updates=[(s, T.exp(s * 2.0) + x)])
    with pytest.raises(ValueError):
        f(np.ones(2))
    assert s.get_value().tolist() == [0, 1, 2]
    f(np.zeros(3))
    np.testing.assert_allclose(s.get_value(), np.exp([0.0, 2, 4]))


def test_results_and_shared_values_are_not_disturbed_by_later_calls():
    s, x = symcomp.shared(np.zeros(3)), T.dvector("x")
    f = symcomp.function(
        [x], [symcomp.Out(s * 1.0, borrow=True), s + x], updates=[(s, T.exp(s) * x)]
    )
    first = f(np.ones(3))
    state = s.get_value(borrow=True)
    saved = [*(v.copy() for v in first), state.copy()]
    f(np.full(3, 7.0))
    for a, b in zip([*first, state], saved, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_of_several_outputs_is_overwritten_while_another_lives():
    x = T.dmatrix("x")
    y = T.sort(x, axis=0)
    a, b = T.tanh(y) * 2.0, T.exp(y) * 3.0  # two outputs of one fused op
    f, plain, _ = fused([x], [T.dot(a, x).sum() + b.sum(), T.sin(T.cumsum(a)), b])
    value = np.linspace(-1, 1, 40000).reshape(200, 200)
    for got, want in zip(f(value), plain(value), strict=True):
        np.testing.assert_array_equal(got, want)


def test_outputs_that_may_be_parts_of_one_array_die_together():
    x = TensorType("float64", (2, 2))("x")
    q, r = T.linalg.qr(x)
    total = q + r
    outputs = [total, *(T.sqr(total).sum() * f(x) for f in (T.sin, T.cos, T.tanh))]
    program = agree([x], outputs, [np.array([[2.0, 1.0], [0.5, 3.0]])], frugal=False)
    first, *later = [slot for step in program.instructions for slot in step.into if slot in (1, 2)]
    assert {first, *later} == {1, 2}  # each is taken over once, after both have died
    assert program.instructions[1].into == () and len(later) == 1


def test_parts_of_a_join_are_computed_in_their_places():
    x, y = T.dmatrix("x"), T.dmatrix("y")
    parts = [T.tanh(x), y, T.exp(y) * 2.0, T.dot(x, y)]
    values = [np.linspace(-1, 1, 12).reshape(3, 4), np.ones((4, 4))]
    for axis, change in ((0, lambda z: z), (1, lambda z: z.T)):
        joined = T.concatenate([change(z) for z in parts], axis)
        program = agree([x, y], [joined if axis == 0 else T.exp(joined)], values)
        if axis == 0:
            assert any(isinstance(s.node.op, Reserve) for s in program.instructions)
            joins = [s.node for s in program.instructions if type(s.node.op) is Join]
            in_place = [s for s in program.instructions if s.into and s.node not in joins]
            assert {s.node for s in in_place} >= {x.owner for x in joins[0].inputs if x.owner}


@pytest.mark.parametrize("linker", ["py", "cvm"])
@pytest.mark.parametrize("rows", [1, 3])
def test_fused_parts_of_a_join_are_computed_in_their_places(linker, rows):
    x = T.dtensor3("x")
    f = symcomp.function([x], T.join(0, x, T.exp(x) * 2 + 1), mode=symcomp.Mode(linker=linker))
    assert any("exp" in op for op, _ in written(f.program))
    value = np.random.default_rng(0).normal(size=(rows, 30, 12))
    assert np.allclose(f(value), np.concatenate([value, np.exp(value) * 2 + 1]))


def test_parts_stay_where_others_need_them():
    x = TensorType("float64", (40, 40))("x")
    shown, used, small = T.tanh(x), T.sin(x), TensorType("float64", (2,))("small")
    values = [np.linspace(-1, 1, 1600).reshape(40, 40), np.ones(2)]
    outputs = [T.concatenate([shown, used]), shown, used.sum(), T.concatenate([T.exp(small)] * 2)]
    program = agree([x, small], outputs, values)
    assert not any(isinstance(s.node.op, Reserve) for s in program.instructions)


def test_parts_of_a_join_that_do_not_fit():
    x, y = T.dmatrix("x"), T.dmatrix("y")
    program, _ = programs([x, y], [T.concatenate([T.tanh(x), T.exp(y)])])
    with pytest.raises(ShapeError, match=r"join along axis 0: shapes \(2, 3\), \(2, 4\) differ"):
        PythonMachine(program).run([np.ones((2, 3)), np.ones((2, 4))])


def test_calls_from_several_threads_do_not_meet():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.tanh(T.sort(x) * 2.0).sum(axis=0) + T.sort(-x)[0])
    values = [np.full((100, 100), float(k)) for k in range(8)]
    wanted = [f(v) for v in values]
    with ThreadPoolExecutor(4) as threads:
        for got, want in zip(threads.map(f, values * 5), wanted * 5, strict=True):
            np.testing.assert_array_equal(got, want)


def _steps(a, b, c):
    """Return the steps of random graphs: matrices from matrices."""
    index = np.array([0, 2, 2])
    return {
        "tanh": lambda: T.tanh(a), "add": lambda: a + b, "mul": lambda: a * b,
        "sum": lambda: T.add.op(a, b, a), "max": lambda: T.maximum(a, b),
        "switch": lambda: switch(T.gt(a, b), a, b), "second": lambda: T.second(a, b),
        "transpose": lambda: a.T, "reverse": lambda: a[::-1], "rows": lambda: a[index],
        "dot": lambda: T.tanh(T.dot(a, b)), "reshape": lambda: a.reshape((N, N)),
        "row": lambda: a + T.addbroadcast(b[:1], 0),
        "column": lambda: b.sum(axis=1, keepdims=True) * a,
        "set": lambda: T.set_subtensor(a[1:], b[:-1]), "inc": lambda: T.inc_subtensor(a[index], b),
        "join": lambda: T.concatenate([a[:1], b[1:]]),
        "parts": lambda: T.concatenate([T.tanh(a[:1]), b[1:2], a[2:] * b[2:]]),
        "integers": lambda: T.round(a) + b,
        "if": lambda: ifelse(T.gt(c, a.sum()), a, b), "if_less": lambda: ifelse(c, T.sin(a), b),
        "tanh_inplace": lambda: tanh_inplace(a), "mul_inplace": lambda: mul_inplace(a, b),
        "add_inplace": lambda: add_inplace(a, b), "same": lambda: Same()(a),
    }  # fmt: skip


@st.composite
def graphs(draw):
    static = draw(st.booleans())
    kind = TensorType("float64", (N, N) if static else (None, None))
    c, x, y = T.dscalar("c"), kind("x"), kind("y")
    pool = [x, y, T.constant(np.eye(N)), T.tanh(x), x * 0.5]
    pick = st.integers(0, 1000)
    for _ in range(draw(st.integers(1, 14))):
        # Prefer the latest values: they may die next.
        a, b = (pool[-1 - draw(pick) % min(len(pool), 6)] for _ in range(2))
        steps = _steps(a, b, c)
        pool.append(steps[draw(st.sampled_from(sorted(steps)))]())
    outputs = [pool[-1 - draw(pick) % len(pool)] for _ in range(draw(st.integers(1, 4)))]
    return [c, x, y], outputs, draw(st.sets(st.integers(0, 3)))


@settings(deadline=None, max_examples=150)
@given(graphs(), st.sampled_from([-3.0, 0.0, 1.0]))
def test_random_programs_compute_the_same_with_and_without_a_plan(graph, c):
    inputs, outputs, borrowed = graph
    values = [np.asarray(c), np.linspace(-1, 1, N * N).reshape(N, N), np.ones((N, N))]
    agree(inputs, outputs, values, borrowed=borrowed)
