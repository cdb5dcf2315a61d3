"""Programs: listings, laziness, order with in-place ops, freeing, guards."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.errors import SymcompError
from symcomp.ifelse import ifelse
from symcomp.tensor.inplace import add_inplace, exp_inplace, mul_inplace, sin_inplace
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine

PLAIN = symcomp.Mode(optimizer="None")


def run(inputs, outputs, values, destroyable=(), **options):
    graph = FunctionGraph(inputs, outputs)
    mutable = [v for x, v in zip(inputs, graph.inputs, strict=True) if x in destroyable]
    program = lower(graph, destroyable=mutable, **options)
    return PythonMachine(program).run(values), program


@dataclass(frozen=True, eq=False)
class Spy(Op):
    """z = x; notes that it ran."""

    log: list

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        self.log.append(float(x))
        return x.copy()

    def infer_shape(self, node, shapes):
        return [shapes[0]]


def test_listing():
    x = T.dvector("x")
    program = lower(FunctionGraph([x], [T.exp(x) * 2.0, x]))
    assert program.listing() == (
        "inputs  s0 = x\n"
        "const   s2 = 2.0\n"
        "0  s1 := exp(s0)\n"
        "1  s3 := DimShuffle{x}(s2)\n"
        "2  s4 := mul(s1, s3) into s1    free s1, s3\n"
        "3  s5 := copy s0\n"
        "outputs s4, s5"
    )
    assert str(program) == program.listing()


def test_lazy_listing():
    c, x = T.lscalar("c"), T.dscalar("x")
    program = lower(FunctionGraph([c, x], [ifelse(c, T.exp(x), T.log(x))]))
    assert program.listing().splitlines()[1:-1] == [
        "0  if not s0 goto 4",
        "1  s2 := exp(s1)",
        "2  s4 := s2    free s2",
        "3  goto 6",
        "4  s3 := log(s1)",
        "5  s4 := s3    free s3",
        "6  join",
    ]


def branch_log(build, condition):
    log = []
    x = T.dscalar("x")
    c = T.lscalar("c")
    f = symcomp.function(
        [c, x], build(lambda v: Spy(log)(v), c, x), mode=PLAIN, on_unused_input="ignore"
    )
    result = f(condition, 1.0)
    return result, log


def test_only_the_branch_taken_is_computed():
    for c, wanted in ((1, [2.0]), (0, [3.0])):
        result, log = branch_log(lambda spy, c, x: ifelse(c, spy(x + 1), spy(x + 2)), c)
        assert log == wanted and result == wanted[0]


@pytest.mark.parametrize("linker", ["py", "vm", "cvm", "cvm_nogc"])
@pytest.mark.parametrize("optimizer", ["fast_compile", "fast_run"])
def test_of_several_choices_only_those_that_are_read_are_computed(linker, optimizer):
    log = []
    x, c = T.dscalar("x"), T.lscalar("c")
    spies = [Spy(log)(x + i) for i in range(4)]
    inner = ifelse(c, spies[:2], [x, x])
    first, _ = ifelse(c, [inner[0], inner[1] * 2.0], spies[2:])
    f = symcomp.function([c, x], first, mode=symcomp.Mode(linker, optimizer))
    assert [f(1, 1.0), f(0, 1.0)] == [1.0, 3.0]
    assert log == [1.0, 3.0]


def test_what_both_branches_need_is_computed_once():
    def build(spy, c, x):
        shared = spy(x + 1)
        return ifelse(c, shared * 2, shared * 3)

    assert branch_log(build, 1)[1] == [2.0] and branch_log(build, 0)[1] == [2.0]


def test_what_is_needed_outside_too_is_always_computed():
    def build(spy, c, x):
        shared = spy(x + 1)
        return [ifelse(c, shared * 2, x), shared]

    assert branch_log(build, 0)[1] == [2.0]


def test_nested_branches():
    def build(spy, c, x):
        inner = ifelse(c - 1, spy(x + 10), spy(x + 20))
        return ifelse(c, inner, spy(x + 30))

    assert [branch_log(build, c)[1] for c in (0, 1, 2)] == [[31.0], [21.0], [11.0]]


def test_values_shared_by_branches_of_different_choices():
    def build(spy, c, x):
        shared = spy(x + 1)
        chosen = spy(ifelse(c, shared, x) * 1.0)
        return [ifelse(c, shared * 2, x), ifelse(T.eq(c, 2), shared * 3, x), chosen]

    assert branch_log(build, 0)[1] == [1.0]
    assert branch_log(build, 1)[1].count(2.0) == 2
    assert branch_log(build, 2)[0][1] == 6.0


def test_a_choice_shared_by_branches():
    def build(spy, c, x):
        shared = ifelse(c > 1, spy(x + 1), spy(x + 2))
        return [ifelse(c, shared * 2, x), ifelse(T.eq(c, 3), shared * 3, x)]

    assert branch_log(build, 0)[1] == []
    assert branch_log(build, 1) == ([6.0, 1.0], [3.0])
    assert branch_log(build, 3) == ([4.0, 6.0], [2.0])


@dataclass(frozen=True, eq=False)
class Root(Spy):
    """z = sqrt(x); notes that it ran."""

    def perform(self, x):
        self.log.append(float(x))
        return np.sqrt(x)

    def pullback(self, inputs, outputs, output_grads):
        return [output_grads[0] * 0.5 / outputs[0]]

    def pushforward(self, inputs, outputs, tangents):
        return [tangents[0] * 0.5 / outputs[0]]


def test_gradients_compute_only_the_branch_taken():
    log = []
    x = T.dscalar("x")
    y = ifelse(x > 0, Root(log)(x) * 3.0, x**2)
    for derivative in (symcomp.grad(y, x), symcomp.Rop(y, x, T.constant(1.0))):
        log.clear()
        f = symcomp.function([x], [y, derivative])
        assert [float(v) for v in f(-2.0)] == [4.0, -4.0] and log == []
        assert [float(v) for v in f(4.0)] == [6.0, 0.75] and log == [4.0]
    second = symcomp.grad(symcomp.grad(y, x), x)
    assert float(second.eval({x: -2.0})) == 2.0
    np.testing.assert_allclose(float(second.eval({x: 4.0})), -3 / 32)


def test_gradients_of_nested_and_shared_branches():
    log = []
    x, c = T.dscalar("x"), T.lscalar("c")
    shared = Root(log)(x)
    inner = ifelse(T.gt(c, 1), shared * x, shared)
    outputs = [ifelse(c, inner, x), ifelse(T.gt(c, 2), shared * 5.0, x)]
    slope = symcomp.function([c, x], symcomp.grad(outputs[0] + outputs[1], x), mode=PLAIN)
    assert float(slope(0, -1.0)) == 2.0 and log == []
    assert float(slope(1, 4.0)) == 0.25 + 1
    assert float(slope(2, 4.0)) == 1.5 * 2.0 + 1
    assert float(slope(3, 4.0)) == 1.5 * 2.0 + 5 * 0.25


def test_several_values_at_once_and_failing_branch_not_taken():
    x = T.dvector("x")
    a, b = ifelse(T.gt(x.shape[0], 1), [x[1], x[0]], [x[0], x[0]])
    f = symcomp.function([x], [a, b])
    assert [float(v) for v in f([5.0])] == [5.0, 5.0] and [float(v) for v in f([1.0, 2.0])] == [
        2.0,
        1.0,
    ]


def test_deep_nesting_needs_no_recursion():
    c, x = T.lscalar("c"), T.dscalar("x")
    y = x
    for k in range(2000):
        y = ifelse(T.gt(c, k), y + 1.0, y * 1.0)
    f = symcomp.function([c, x], y, mode=PLAIN)
    assert f(2000, 0.0) == 2000 and f(0, 0.0) == 0


@st.composite
def lazy_graphs(draw):
    c, x = T.lscalar("c"), T.dscalar("x")
    pool = [x, x + 1.0]
    for _ in range(draw(st.integers(1, 12))):
        a, b = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        if draw(st.booleans()):
            pool.append(ifelse(T.gt(c, draw(st.integers(0, 3))), a, b))
        else:
            pool.append(a * 0.5 + b)
    outputs = [pool[draw(st.integers(0, len(pool) - 1))] for _ in range(draw(st.integers(1, 3)))]
    return c, x, outputs


@settings(deadline=None, max_examples=120)
@given(lazy_graphs(), st.integers(0, 4))
def test_random_lazy_programs_agree_with_plain_evaluation(graph, c):
    cond, x, outputs = graph
    values = {cond: np.asarray(c), x: np.asarray(1.5)}
    wanted = evaluate(outputs, values)
    for collect in (True, False):
        got, _ = run([cond, x], outputs, list(values.values()), collect=collect)
        assert [float(v) for v in got] == [float(v) for v in wanted]


def test_in_place_after_other_readers():
    x = T.dvector("x")
    y = x * 1.0
    z = exp_inplace(y)
    (a, b), program = run([x], [z, y + 1.0], [np.zeros(2)])
    assert a.tolist() == [1, 1] and b.tolist() == [1, 1]
    assert "copy" not in program.listing() and "in-place" in program.listing()


def test_in_place_copies_when_it_must():
    x = T.dvector("x")
    y = x * 1.0
    (a, b), program = run([x], [exp_inplace(y), y], [np.zeros(2)])
    assert a.tolist() == [1, 1] and b.tolist() == [0, 0] and "copy" in program.listing()
    z = exp_inplace(y)
    (c,), _ = run([x], [z + y], [np.zeros(2)])
    assert c.tolist() == [1, 1]
    (d, e), _ = run([x], [exp_inplace(y), mul_inplace(y, 3.0)], [np.ones(2)])
    np.testing.assert_allclose([d, e], [[np.e] * 2, [3] * 2])
    (f,), _ = run([x], [add_inplace(T.constant(np.ones(2)), x)], [np.ones(2)])
    assert f.tolist() == [2, 2] and T.constant(np.ones(2)).data.tolist() == [1, 1]


def test_in_place_again_and_read_in_between():
    x = T.dvector("x")
    y = sin_inplace(mul_inplace(x, 2.0)[::-1])
    given = np.array([1.0, 2.0])
    (a,), program = run([x], [y.sum()], [given], destroyable=[x])
    assert "copy" not in program.listing()
    np.testing.assert_array_equal(given, np.sin([2.0, 4.0]))
    assert a == given.sum()
    between = mul_inplace(x, 2.0)
    given = np.array([1.0, 2.0])
    (b, c, d), program = run(
        [x], [x + 1.0, between + 1.0, sin_inplace(between) + 1.0], [given], destroyable=[x]
    )
    assert "copy" not in program.listing()
    np.testing.assert_array_equal([b, c, d], [[2, 3], [3, 5], np.sin([2.0, 4.0]) + 1])


@pytest.mark.parametrize("seed", range(60))
def test_random_in_place_programs_agree_with_their_pure_twins(seed):
    rng = np.random.default_rng(seed)
    x, y = T.dvectors("x", "y")
    pairs = [(x, x), (y, y)]
    for _ in range(rng.integers(2, 9)):
        (a, pure_a), (b, pure_b) = (pairs[rng.integers(len(pairs))] for _ in range(2))
        made = [
            lambda a, b: (sin_inplace(a), T.sin(b)),
            lambda a, b: (a[::-1], b[::-1]),
            lambda a, b: (a * 0.5, b * 0.5),
        ]
        if rng.integers(2):
            pairs.append(made[rng.integers(3)](a, pure_a))
        elif rng.integers(3):
            pairs.append((add_inplace(a, b), pure_a + pure_b))
        else:
            pairs.append((T.switch(a > b, a, b), T.switch(pure_a > pure_b, pure_a, pure_b)))
    chosen = rng.permutation(len(pairs))[:3]
    outputs, pure = ([pairs[i][k] for i in chosen] for k in (0, 1))
    values = [np.array([0.25, 1.5, -0.75]), np.array([2.0, -1.0, 0.5])]
    wanted = evaluate(pure, dict(zip([x, y], values, strict=True)))
    for destroyable in ([], [x], [x, y]):
        got, _ = run([x, y], outputs, [v.copy() for v in values], destroyable=destroyable)
        np.testing.assert_array_equal(got, wanted)
        inputs = [symcomp.In(v, mutable=v in destroyable) for v in (x, y)]
        if seed % 10 == 0:
            f = symcomp.function(
                inputs, outputs, accept_inplace=True, on_unused_input="ignore", mode="FAST_COMPILE"
            )
            np.testing.assert_array_equal(f(*(v.copy() for v in values)), wanted)


def test_in_place_on_a_view_of_an_input():
    x = T.dmatrix("x")
    value = np.zeros((2, 2))
    (a,), _ = run([x], [exp_inplace(x.T)], [value])
    assert a.tolist() == [[1, 1], [1, 1]] and not value.any()
    (b,), _ = run([x], [exp_inplace(x.T)], [value], destroyable=[x])
    assert b.tolist() == value.tolist() == [[1, 1], [1, 1]]


def test_kept_values():
    x = T.dvector("x")
    program = lower(FunctionGraph([x], [T.exp(x) + 1.0]), collect=False)
    assert not any(step.frees for step in program.instructions)
    machine = PythonMachine(program, keep=True)
    machine.run([np.zeros(1)])
    assert machine.kept is not None
    machine.free()
    assert machine.kept is None


@dataclass(frozen=True)
class User(Op):
    """An op of a user, with a chosen mistake."""

    kind: str

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        if self.kind == "nan":
            return x * np.nan
        if self.kind == "dtype":
            return x.astype("float32")
        if self.kind == "rank":
            return x[None]
        if self.kind == "list":
            return [1.0, 2.0]
        if self.kind == "raise":
            raise RuntimeError("user's mistake")
        return x * 2

    def infer_shape(self, node, shapes):
        return [shapes[0]]


def test_users_ops_are_checked_and_change_nothing_when_wrong():
    x, s = T.dvector("x"), symcomp.shared(0.0)

    def call(kind, value=(1.0,)):
        return symcomp.function([x], User(kind)(x), updates=[(s, s + 1)])(np.array(value))

    assert call("right").tolist() == [2.0] and s.get_value() == 1.0
    with pytest.raises(
        FloatingPointError, match="User.* made 1 NaN in output 0 .*test_program.py.*nan_guard"
    ):
        call("nan")
    with pytest.raises(
        ValueError, match="returned, as output 0, a float32 array of shape .*float64 vector"
    ):
        call("dtype")
    with pytest.raises(ValueError, match="its type is float64 vector: expected 1 axes"):
        call("rank")
    with pytest.raises(SymcompError, match="returned, as output 0, list"):
        call("list")
    with pytest.raises(RuntimeError, match="user's mistake") as caught:
        call("raise")
    assert "User" in "".join(caught.value.__notes__)
    assert s.get_value() == 1.0
    assert np.isnan(call("nan", [np.nan])).all()
    with symcomp.config.change_flags(nan_guard="off"):
        assert np.isnan(call("nan")).all()
    with symcomp.config.change_flags(nan_guard="all"):
        f = symcomp.function([x], T.log(x))
        with pytest.raises(FloatingPointError, match="log made 1 NaN"):
            f([-1.0])
        assert f([1.0]).tolist() == [0.0]
    assert np.isnan(symcomp.function([x], T.log(x))([-1.0])).all()


def test_keyboard_interrupt_leaves_a_function_usable():
    calls = []

    @dataclass(frozen=True)
    class Stop(User):
        def perform(self, x):
            calls.append(1)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return x

    x = T.dvector("x")
    f = symcomp.function([x], Stop("")(x))
    with pytest.raises(KeyboardInterrupt):
        f([1.0])
    assert f([1.0]).tolist() == [1.0]
