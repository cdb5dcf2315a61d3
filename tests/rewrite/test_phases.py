"""Merging and constant folding: before, after, and that both compute the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.constant_folding import LARGEST
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import PHASES, rewrite
from symcomp.rewrite.rule import RuleSet
from symcomp.tensor.inplace import exp_inplace


def merge(graph):
    before = len(graph.nodes)
    Engine(graph, RuleSet([]), folding=False, on_error="raise").run()
    return before - len(graph.nodes)


def constant_folding(graph):
    Engine(graph, RuleSet([]), merging=False, on_error="raise").run()


def ops(graph):
    return [str(node.op) for node in graph.toposort()]


def values(graph, *inputs):
    return evaluate(graph.outputs, dict(zip(graph.inputs, inputs, strict=True)))


def test_merge_equal_computations():
    x, y = T.dvectors("x", "y")
    graph = FunctionGraph([x, y], [T.exp(x + y) * T.exp(x + y), T.exp(x + y)])
    assert merge(graph) == 4 and ops(graph) == ["add", "exp", "mul"]
    a, b = values(graph, np.ones(2), np.zeros(2))
    np.testing.assert_allclose([a, b], [[np.e**2] * 2, [np.e] * 2])


def test_merge_constants_by_type_and_value():
    x = T.dvector("x")
    graph = FunctionGraph([x], [(x + 1.0) * (x + 1.0) + np.ones((), np.float32)])
    merge(graph)
    assert len({c for c in graph.variables if isinstance(c, symcomp.Constant)}) == 2
    nan = FunctionGraph([x], [(x + np.nan) * (x + np.nan)])
    assert merge(nan) == 2 and np.isnan(values(nan, np.ones(1))[0]).all()


def test_merge_keeps_names_and_lines():
    x = T.dvector("x")
    first, second = T.exp(x), T.exp(x)
    second.name = "named"
    graph = FunctionGraph([x], [first, second])
    merge(graph)
    assert graph.outputs[0] is graph.outputs[1] and graph.outputs[0].name == "named"
    assert graph.outputs[0].source.file.endswith("test_phases.py")


def test_merge_leaves_in_place_nodes_and_other_parameters():
    x = T.dvector("x")
    y = x * 1.0
    graph = FunctionGraph([x], [exp_inplace(y) + exp_inplace(y)])
    assert merge(graph) == 0
    m = T.dmatrix("m")
    assert merge(FunctionGraph([m], [m.sum(axis=0), m.sum(axis=1)])) == 0


def test_folding_known_values():
    x = T.dvector("x")
    graph = FunctionGraph([x], [x * (T.constant(2.0) + 3.0), T.arange(3).sum()])
    constant_folding(graph)
    assert ops(graph) == ["mul"] and float(values(graph, np.ones(1))[1]) == 3.0
    assert graph.outputs[1].type == T.constant(3).type


@pytest.mark.parametrize("n", [3, 1], ids=["3", "1"])
def test_folding_lengths_that_become_known_later(n):
    length = T.lscalar("n")
    rows = T.arange(length)
    graph = FunctionGraph([length], [T.ge(rows[:, None], rows[None, :])])
    want = values(graph, n)[0]
    graph.replace(graph.inputs[0], T.constant(n))
    constant_folding(graph)
    assert ops(graph) == [] and graph.outputs[0].type.shape == (None, None)
    np.testing.assert_array_equal(values(graph, n)[0], want)


def test_folding_leaves_large_results_of_lengths_that_become_known_later():
    length = T.lscalar("n")
    graph = FunctionGraph([length], [T.arange(length)])
    graph.replace(graph.inputs[0], T.constant(LARGEST // 8 + 1))
    constant_folding(graph)
    assert len(graph.nodes) == 1


def test_folding_keeps_nan_and_infinity():
    graph = FunctionGraph([], [T.log(T.constant([-1.0, 0.0])), T.constant(1.0) / 0.0])
    constant_folding(graph)
    assert ops(graph) == []
    log, ratio = values(graph)
    assert np.isnan(log[0]) and log[1] == -np.inf and ratio == np.inf


def test_folding_leaves_what_fails_to_the_call():
    bad = T.Assert("never true")(T.constant(1.0), T.constant(False))
    f = symcomp.function([], bad)
    with pytest.raises(AssertionError, match="never true"):
        f()


def test_folding_leaves_large_results():
    n = LARGEST // 8
    graph = FunctionGraph([], [T.zeros((n + 1,)), T.zeros((n,))])
    constant_folding(graph)
    assert len(graph.nodes) == 1


def test_phases_are_chosen_by_tags():
    x = T.dscalar("x")
    graph = FunctionGraph([x], [x + 1.0])
    trace = rewrite(graph, lambda tags: "merge" in tags)
    assert [phase.name for phase in trace.phases] == ["merge"]
    assert len({phase.name for phase in PHASES}) == len(PHASES)
    assert all(phase.why for phase in PHASES)


OPERATIONS = [
    (T.add, np.add), (T.mul, np.multiply), (T.maximum, np.maximum), (T.true_div, np.true_divide),
    (T.sub, np.subtract),
]  # fmt: skip


@st.composite
def graphs(draw):
    """Draw two inputs, two outputs, the steps that compute these with NumPy, and their numbers
    among the values.
    """
    x, y = T.dvector("x"), T.dvector("y")
    pool = [x, y, *map(T.constant, CONSTANTS)]
    steps = []
    for _ in range(draw(st.integers(1, 15))):
        i, j = (draw(st.integers(0, len(pool) - 1)) for _ in range(2))
        op, ufunc = draw(st.sampled_from(OPERATIONS))
        pool.append(op(pool[i], pool[j]))
        steps.append((ufunc, i, j))
    chosen = [len(pool) - 1, draw(st.integers(0, len(pool) - 1))]
    return x, y, [pool[k] for k in chosen], steps, chosen


CONSTANTS = [np.array(2.0), np.array([1.0, -1.0])]


def values_of(steps, inputs, dtype):
    """Compute all values with NumPy."""
    found = [v.astype(dtype) for v in (*inputs, *CONSTANTS)]
    for ufunc, i, j in steps:
        found.append(ufunc(found[i], found[j]))
    return found


def errors_of(steps, exact):
    """Bound the rounding errors of the values to first order, in units of 2^-53: each operation
    adds that of its result.
    """
    found = [np.zeros_like(v) for v in exact[:4]]
    for (ufunc, i, j), z in zip(steps, exact[4:], strict=True):
        x, y, dx, dy = exact[i], exact[j], found[i], found[j]
        if ufunc is np.multiply:
            carried = abs(x) * dy + abs(y) * dx
        elif ufunc is np.true_divide:
            carried = (dx + abs(z) * dy) / abs(y)
        else:
            carried = dx + dy
        found.append(carried + abs(z))
    return found


DATA = st.lists(
    st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300, 5e-324, np.inf, np.nan]), min_size=2, max_size=2
)


@settings(deadline=None, max_examples=150)
@given(graphs(), DATA, DATA)
def test_random_graphs_compute_the_same(graph, a, b):
    """Compute the numbers of the graph, to within rounding errors, wherever no part of it leaves
    the range of float64.
    """
    x, y, outputs, steps, chosen = graph
    inputs = [np.array(a), np.array(b)]
    with np.errstate(all="ignore"):
        plain = values_of(steps, inputs, "float64")
        exact = values_of(steps, inputs, np.longdouble)
        errors = errors_of(steps, exact)
        inside = np.ones(2, bool)
        for value, true in zip(plain, exact, strict=True):
            inside &= np.isinf(value) == np.isinf(true)
            inside &= ~(abs(true) < np.finfo("float64").tiny) | (value == true)
    f = symcomp.function([x, y], outputs, on_unused_input="ignore")
    for k, after, out in zip(chosen, f(*inputs), outputs, strict=True):
        assert after.dtype == out.dtype and after.shape == plain[k].shape
        before, true, bound = (np.broadcast_to(v[k], 2)[inside] for v in (plain, exact, errors))
        after = np.broadcast_to(after, 2)[inside]
        rounded = np.isfinite(before) & np.isfinite(bound)
        np.testing.assert_array_equal(after[~rounded], before[~rounded])
        error = abs(after[rounded] - true[rounded])
        assert (error <= 4 * 2.0**-53 * bound[rounded]).all()


def test_parts_that_leave_the_range_cancel():
    x = T.dvector("x")
    f = symcomp.function([x], x * x / x)
    np.testing.assert_array_equal(f([1e300, 5e-324, np.inf, 0.0]), [1e300, 5e-324, np.nan, np.nan])
