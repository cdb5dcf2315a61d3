"""The order that lowers the peak."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.core.tensor import TensorType
from symcomp.tensor.inplace import exp_inplace
from symcomp.vm.frugal import frugal_order
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine


def peak(order, outputs, size):
    """Return the peak of allocated bytes, by a simulation independent of the one under test."""
    last = {x: i for i, node in enumerate(order) for x in node.inputs}
    now = most = 0
    for i, node in enumerate(order):
        now += sum(size(out) for out in node.outputs)
        most = max(most, now)
        for x in {x for x in node.inputs if x.owner is not None}:
            if last[x] == i and x not in outputs:
                now -= size(x)
    return most


def nbytes(variable):
    return int(np.prod(variable.type.shape, dtype=int)) * variable.type.numpy_dtype.itemsize


def is_topological(order, graph):
    seen = set()
    for node in order:
        assert all(x.owner is None or x.owner in seen for x in node.inputs)
        seen.add(node)
    assert seen == set(graph.nodes) and len(order) == len(seen)


def test_large_values_are_used_up_before_the_next_is_made():
    x = TensorType("float64", (1000,))("x")
    large = [T.exp(x * float(k)) for k in range(4)]
    # Needed in the order of the list, but only their sums are needed at the end.
    pair = [large[0] + large[1], large[2] + large[3]]
    outputs = [T.stack([y.sum() for y in large]), pair[0].sum() + pair[1].sum()]
    graph = FunctionGraph([x], outputs)
    before = graph.toposort()
    after = frugal_order(before, graph.outputs, {})
    is_topological(after, graph)
    kept = set(graph.outputs)
    assert peak(after, kept, nbytes) <= 3 * 8000 + 200 < peak(before, kept, nbytes)


def test_an_order_that_is_good_is_left_alone():
    x = TensorType("float64", (1000,))("x")
    graph = FunctionGraph([x], [T.exp(T.sin(x) * T.cos(x)).sum()])
    order = graph.toposort()
    assert frugal_order(order, graph.outputs, {}) is order


def test_what_must_come_after_comes_after():
    x = TensorType("float64", (1000,))("x")
    y = x * 2.0
    value = np.linspace(0, 1, 1000)
    wanted = [np.exp(2 * value), np.sin(2 * value).sum(), np.cos(2 * value).sum()]
    for places in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        outputs = [[exp_inplace(y), T.sin(y).sum(), T.cos(y).sum()][i] for i in places]
        for frugal in (True, False):
            program = lower(FunctionGraph([x], outputs), frugal=frugal)
            assert "copy" not in program.listing()
            for i, got in zip(places, PythonMachine(program).run([value]), strict=True):
                np.testing.assert_allclose(got, wanted[i])


@st.composite
def graphs(draw):
    kinds = [TensorType("float64", (n,)) for n in (1000, 10)]
    x, y = kinds[0]("x"), kinds[1]("y")
    pool = [x, y]
    for _ in range(draw(st.integers(1, 20))):
        a, b = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        same = a.type.shape == b.type.shape
        pool.append(a * b if same else (a.sum() if draw(st.booleans()) else a) * b.sum())
    outputs = [pool[draw(st.integers(0, len(pool) - 1))] for _ in range(draw(st.integers(1, 4)))]
    return FunctionGraph([x, y], outputs)


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_random_orders_are_valid_repeatable_and_never_worse(graph):
    order = graph.toposort()
    found = frugal_order(order, graph.outputs, {})
    is_topological(found, graph)
    assert list(frugal_order(order, graph.outputs, {})) == list(found)
    values = [np.linspace(0, 1, 1000), np.linspace(1, 2, 10)]
    pairs = zip(
        PythonMachine(lower(graph)).run(values),
        PythonMachine(lower(graph, frugal=False)).run(values),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


def test_the_order_can_be_left_as_written():
    x = T.dvector("x")
    outputs = [T.exp(x).sum(), T.sin(x).sum()]
    plain = symcomp.function([x], outputs, mode=symcomp.Mode().excluding("inplace"))
    graph = plain.maker.fgraph
    nodes = [step.node for step in plain.program.instructions if step.node is not None]
    assert nodes == graph.toposort()
