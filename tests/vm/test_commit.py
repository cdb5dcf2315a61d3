"""The gate: its place, its checks, and the updates written after it."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.contraction import SumOfProducts
from symcomp.ops.linalg.products import Dot
from symcomp.vm.guard import UNCHECKED
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine


class Allowed:
    """Lets everything be overwritten, or nothing."""

    def __init__(self, allow):
        self.allow, self.counts = allow, None

    def begin(self):
        pass

    def taken(self, arrays, others):
        self.counts = others
        return tuple(a if self.allow else a.copy() for a in arrays)


def program_of(inputs, outputs, updated, **options):
    """Return the program of a graph whose outputs, by position, are new values of inputs."""
    graph = FunctionGraph(inputs, outputs)
    over = {j: graph.inputs[i] for j, i in updated.items()}
    return lower(graph, updated=over, **options)


def gate_of(program):
    (position,) = [i for i, step in enumerate(program.instructions) if step.claims]
    return position


def test_the_listing():
    w, x = T.dvector("w"), T.dvector("x")
    program = program_of([w, x], [T.exp(w).sum(), w - x], {1: 0})
    assert str(program).splitlines() == [
        "inputs  s0 = w, s1 = x, s2 = claims",
        "0  s3 := exp(s0)",
        "1  s4 := sum{axis=0}(s3)    free s3",
        "2  s6 := claim s0    check sub",
        "3  s5 := sub(s6, s1) into s6    free s6",
        "outputs s4, s5",
    ]


def test_what_is_allowed_is_overwritten():
    w, x = T.dvector("w"), T.dvector("x")
    program = program_of([w, x], [T.exp(w).sum(), w - x], {1: 0})
    assert program.claimed == (0,)
    for allow in (True, False):
        value = np.arange(3.0)
        claims = Allowed(allow)
        total, new = PythonMachine(program).run([value, np.ones(3), claims])
        assert total == pytest.approx(np.exp([0, 1, 2]).sum())
        assert new.tolist() == [-1, 0, 1]
        assert (new is value) == allow
        assert value.tolist() == ([-1, 0, 1] if allow else [0, 1, 2])


def test_who_holds_an_array_is_counted():
    w, x = T.dmatrix("w"), T.dmatrix("x")
    view = w.T
    late = T.dot(T.sort(view), x)
    program = program_of([w, x], [T.dot(late, view), w + late], {1: 0})
    run = PythonMachine(program).run

    def others(hold):
        values = [np.ones((2, 2)), np.eye(2)]
        held = hold(values[0])
        claims = Allowed(False)
        values.append(claims)
        run(values)
        return claims.counts[0] - (0 if held is None else 1)

    # The list of arguments holds the array; ``claims`` is held by a local name as well.
    alone = others(lambda v: None)
    assert alone == -1
    assert others(lambda v: v[:1]) == alone
    assert others(lambda v: v) == alone


@pytest.mark.overwrites
def test_the_gate_stands_before_what_is_proven():
    rng = np.random.default_rng(0)
    x, target = T.dmatrix("x"), T.dmatrix("target")
    weights = [symcomp.shared(rng.normal(size=(4, 4)), name=f"w{i}") for i in range(4)]
    h = x
    for w in weights:
        h = T.tanh(T.dot(h, w))
    loss = T.sqr(h - target).mean()
    updates = [(w, w - g) for w, g in zip(weights, symcomp.grad(loss, weights), strict=True)]
    f = symcomp.function([x, target], loss, updates=updates)
    program = f.program
    gate = gate_of(program)
    assert len(program.claimed) == 4 and not program.instructions[gate].compute.checks
    after = [type(step.node.op) for step in program.instructions[gate + 1 :]]
    assert after.count(Gemm) == 4 and after.count(Dot) == 3
    places = [w.get_value(borrow=True).ctypes.data for w in weights]
    f(np.ones((3, 4)), np.ones((3, 4)))
    assert [w.get_value(borrow=True).ctypes.data for w in weights] == places
    # An input that need not fit is checked when it is first read, and so before the gate.
    for shapes in (((3, 5), (3, 4)), ((3, 4), (2, 4)), ((3, 4), (3, 3))):
        saved = [w.get_value() for w in weights]
        with pytest.raises(ValueError):
            f(*map(np.ones, shapes))
        for w, want in zip(weights, saved, strict=True):
            np.testing.assert_array_equal(w.get_value(), want)


def test_no_gate_where_nothing_is_overwritten():
    w, x = T.dvector("w"), T.dvector("x")
    new = w - x
    for outputs, options in [
        ([w, w - x], {}),
        ([w[::-1], w - x], {}),
        ([T.sort(new), new], {}),
        ([x, w - w[::-1]], {}),
        ([x, T.sort(w)], {}),
        ([x, w - x], {"inplace": False}),
        ([x, w - x], {"collect": False}),
    ]:
        program = program_of([w, x], outputs, {1: 0}, **options)
        assert not program.claimed and len(program.inputs) == 2


def random(*shape):
    return np.random.default_rng(1).normal(size=shape)


CHECKED = {
    "add": (lambda x, y: x + y, [random(3), random(3)]),
    "dot": (T.dot, [random(2, 3), random(3, 4)]),
    "vectors": (T.dot, [random(3), random(3)]),
    "total": (SumOfProducts((0,)), [random(2, 3), random(2, 3)]),
    "scaled": (ScaledDot(True, True), [random(), random(3, 2), random(4, 3)]),
    "gemm": (
        Gemm(trans_b=True),
        [random(2, 4), random(), random(2, 3), random(4, 3), random()],
    ),
    "batched": (
        BatchedGemm(trans_a=True),
        [random(5, 2, 4), random(), random(5, 3, 2), random(5, 3, 4), random()],
    ),
    "gemv": (Gemv(trans_a=True), [random(2), random(), random(3, 2), random(3), random()]),
    "ger": (Ger(), [random(2, 3), random(), random(2), random(3)]),
    "set": (lambda x, y: T.set_subtensor(x[1:], y), [random(4, 2), random(3, 2)]),
    "inc": (lambda x, y: T.inc_subtensor(x[[0, 2]], y), [random(4, 2), random(2, 2)]),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_check_refuses_what_the_op_refuses(name):
    function, values = CHECKED[name]
    inputs = [T.TensorType("float64", (None,) * v.ndim)() for v in values]
    node = function(*inputs).owner
    values = [*values, *(x.data for x in node.inputs[len(values) :])]
    check, compute = UNCHECKED.planning_of(node).checking(node), node.op.bind(node)
    check(*values)
    refused = 0
    for i, value in enumerate(values):
        for axis in range(value.ndim if i < len(inputs) else 0):
            for n in (1, value.shape[axis] + 1):
                shape = [n if a == axis else m for a, m in enumerate(value.shape)]
                wrong = [*values[:i], random(*shape), *values[i + 1 :]]
                errors = []
                for call in (compute, check):
                    try:
                        call(*wrong)
                        errors.append(None)
                    except (ValueError, IndexError) as problem:
                        errors.append(type(problem))
                assert errors[0] == errors[1], (i, shape)
                refused += errors[0] is not None
    assert refused
