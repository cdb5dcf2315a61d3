"""Fusion: graphs before and after, laziness, lengths of chains, and random graphs bit for bit."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.tensor import TensorType
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.fused import Fused
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.fusion import MOST_ARRAYS, MOST_STEPS, MOST_TERMS, fuse
from symcomp.rewrite.levels import assign_levels
from symcomp.rewrite.phases import rewrite
from symcomp.rewrite.recomputing import CHEAP
from symcomp.rewrite.rule import RuleSet
from symcomp.vm.lower import lower
from symcomp.vm.machine import PythonMachine


def fused(inputs, outputs, merge=True, canonical=False, by_bytes=False):
    """Return the fused graph and the report; check that it has no cycle and right clients."""
    graph = FunctionGraph(inputs, outputs)
    if canonical:
        rewrite(graph, lambda tags: "fast_run" in tags and "fusion" not in tags)
    elif merge:
        Engine(graph, RuleSet([])).run()
    firings = []
    fuse(graph, firings, by_bytes)
    order = graph.toposort()
    assert {*order} == {*graph.nodes}
    for variable, clients in graph.clients.items():
        for client, i in clients:
            assert (graph.outputs if client == "output" else client.inputs)[i] is variable
    return graph, firings


def ops(graph):
    return [str(node.op) for node in graph.toposort()]


def run(graph, *values):
    return PythonMachine(lower(graph)).run(values)


def check_same(inputs, outputs, values, **options):
    graph, _ = fused(inputs, outputs, **options)
    with np.errstate(all="ignore"):
        try:
            plain = evaluate(outputs, dict(zip(inputs, values, strict=True)))
        except ValueError as problem:  # shapes do not fit, or the extreme of nothing
            with pytest.raises(type(problem)):
                run(graph, *values)
            return graph
        found = run(graph, *values)
    for want, got, out in zip(plain, found, outputs, strict=True):
        assert got.dtype == want.dtype == out.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)
    return graph


def test_a_chain_becomes_one():
    x = T.dvector("x")
    graph, firings = fused([x], [T.exp(-(x * 2.0)) + x])
    assert ops(graph) == ["Fused{exp(-(x0 * 2.0)) + x0}"]
    (firing,) = firings
    assert firing.before == "mul, neg, exp, add" and firing.after == ops(graph)[0]
    assert firing.source.file.endswith("test_fusion.py")
    (got,) = run(graph, np.arange(3.0))
    np.testing.assert_array_equal(got, np.exp(-(np.arange(3.0) * 2)) + np.arange(3.0))


def test_names_and_lines_are_kept():
    x = T.dvector("x")
    y = T.exp(x)
    y.name = "y"
    z = y + 1.0
    graph, _ = fused([x], [y, z])
    assert [v.name for v in graph.outputs] == ["y", None]
    assert [v.source.line for v in graph.outputs] == [y.source.line, z.source.line]
    node = graph.outputs[0].owner
    assert node is graph.outputs[1].owner and node.source == z.source
    assert [source.line for source in node.op.sources] == [y.source.line, z.source.line]


def test_one_function_alone_stays():
    x, y = T.dvectors("x", "y")
    assert ops(fused([x, y], [T.exp(x), T.exp(y)])[0]) == ["exp", "exp"]


def test_several_outputs():
    x, y = T.dvectors("x", "y")
    s = T.sin(x * y)
    graph = check_same([x, y], [s, s * y, T.cos(x * y)], [np.arange(4.0), np.ones(4)])
    assert [len(node.outputs) for node in graph.nodes] == [3]


def test_users_of_one_input_share_a_pass():
    x = T.dmatrix("x")
    graph = check_same([x], [T.exp(x), T.sin(x)], [np.ones((2, 3))])
    assert [len(node.outputs) for node in graph.nodes] == [2]


def test_what_is_stretched_is_not_computed_for_each_element():
    x, b = T.dmatrix("x"), T.dvector("b")
    z = T.exp(T.sin(b)) * x + 1.0
    graph = check_same([x, b], [z], [np.ones((2, 3)), np.arange(3.0)])
    assert [text for text in ops(graph) if not text.startswith("DimShuffle")] == [
        "Fused{exp(sin(x0))}",
        "Fused{(x0 * x1) + 1.0}",
    ]


def test_no_cycle_through_other_ops():
    x = T.dvector("x")
    a = T.exp(x)
    total = a.cumsum()
    graph = check_same([x], [T.sin(a) * total, T.cos(total)], [np.arange(3.0)])
    assert sum(isinstance(node.op, Fused) for node in graph.nodes) == 1


def test_is_computed_where_it_is_needed():
    # 1 - h*h is ready with h, but belongs to the pass that uses it.
    x, w = T.dmatrices("x", "w")
    h = T.tanh(T.dot(x, w) + 1.0)
    back = T.dot(h, w.T) * (1.0 - h * h)
    graph = check_same([x, w], [back], [np.eye(3), np.ones((3, 3)) / 4])
    assert [len(node.outputs) for node in graph.nodes if isinstance(node.op, Fused)] == [1, 1]


def test_shapes_that_might_differ_are_not_joined():
    x, y = T.dvectors("x", "y")
    outputs = [T.exp(x) + 1.0, T.exp(y) + 1.0]
    graph = check_same([x, y], outputs, [np.ones(2), np.ones(3)])
    assert len(graph.nodes) == 2


def test_in_place_nodes_stay():
    x = T.dvector("x")
    y = x * 2.0
    z = T.inplace.exp_inplace(T.sin(y) + 1.0)
    check_same([x], [z * y, y], [np.ones(3)])
    graph, _ = fused([x], [z * y, y])
    assert "exp_inplace" in ops(graph)


def test_reading_before_overwriting():
    x = T.dvector("x")
    y = x * 2.0
    before = T.cos(y)
    after = T.inplace.exp_inplace(y)
    check_same([x], [before + after, T.sin(after) * before], [np.ones(3)], merge=False)


def test_errors_are_those_of_the_unfused_graph():
    x, y = T.dmatrices("x", "y")
    z = T.exp(T.exp(x) * 2.0 + y)
    bad = [np.ones((2, 3)), np.ones((1, 3))]
    graph, _ = fused([x, y], [z])
    with pytest.raises(ShapeError) as unfused:
        evaluate([z], dict(zip([x, y], bad, strict=True)))
    with pytest.raises(ShapeError) as found:
        run(graph, *bad)
    assert str(found.value) == str(unfused.value)
    assert any("test_fusion.py" in note for note in found.value.__notes__)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (2, 0, 1)])
def test_empty_and_without_axes(shape):
    x = TensorType("float64", [None] * len(shape))("x")
    outputs = [T.exp(x) * 2.0 + x, T.isnan(x + 1.0)]
    check_same([x], outputs, [np.full(shape, 0.5)])
    check_same([x], outputs, [np.full(shape, np.nan)])


# -- reductions


def test_a_reduction_ends_a_pass():
    x, y = T.dmatrices("x", "y")
    graph, _ = fused([x, y], [((x - y) ** 2).sum()])
    assert ops(graph) == ["Fused{sum{axis=0,1}(pow(x0 - x1, 2.0))}"]
    (got,) = run(graph, np.full((2, 3), 3.0), np.ones((2, 3)))
    assert got.shape == () and got == 24


def test_reductions_over_several_axes_share_a_pass():
    x = T.dmatrix("x")
    z = T.floor(x * 3.0)
    outputs = [z.sum(), z.sum(axis=0), z.max(axis=1), z]
    values = [np.random.default_rng(0).standard_normal((300, 200))]
    graph = check_same([x], outputs, values)
    assert [len(node.outputs) for node in graph.nodes] == [4]


def test_a_reduction_does_not_wait_for_what_comes_later():
    x = T.dmatrix("x")
    z = T.floor(x * 3.0)
    graph = check_same([x], [z * z.sum()], [np.arange(12.0).reshape(3, 4)])
    assert not any("cycle" in str(node) for node in graph.toposort())


# -- values computed again


def stored_between(*, value, reads=lambda x, y: x):
    """Return how many arrays the loop before a product stores: one is for the product; the loop
    after it takes the value, too.
    """
    x, y, b, w = T.dmatrix("x"), T.dmatrix("y"), T.drow("b"), T.dmatrix("w")
    u = value(x, y, b)
    z = T.dot(T.tanh(u), w) * u + T.log(reads(x, y))
    values = [np.random.default_rng(i).random(shape) + 1 for i, shape in enumerate([(4, 3)] * 2)]
    values += [np.ones((1, 3)), np.ones((3, 3))]
    graph = check_same([x, y, b, w], [z], values, by_bytes=True)
    first, last = (node for node in graph.toposort() if isinstance(node.op, Fused))
    assert last.outputs[0] is graph.outputs[0]
    return len(first.outputs)


def test_cheap_values_are_computed_again():
    assert stored_between(value=lambda x, y, b: x - b) == 1
    assert stored_between(value=lambda x, y, b: (x - b) * (x + b)) == 1
    assert stored_between(value=lambda x, y, b: (x - b) * y, reads=lambda x, y: y) == 1


def test_values_that_are_read_in_the_place_of_more_are_stored():
    assert stored_between(value=lambda x, y, b: x * y, reads=lambda x, y: 2.0) == 2
    assert stored_between(value=lambda x, y, b: T.exp(x - b)) == 2


def test_what_is_stored_anyway_is_not_computed_again():
    x, b, w = T.dmatrix("x"), T.drow("b"), T.dmatrix("w")
    u = x - b
    graph, firings = fused([x, b, w], [u, T.dot(T.tanh(u), w) * u], by_bytes=True)
    assert "compute_again" not in {firing.rule for firing in firings}
    assert [len(n.outputs) for n in graph.toposort() if isinstance(n.op, Fused)] == [2]


def test_wide_arrays_are_not_read_for_narrow_values():
    """Unless the later loop reads them anyway."""
    x, w = T.dmatrix("x"), T.dmatrix("w")
    mask = T.cast(x > 0, "float32")
    for more, count in ((0, 2), (x, 1)):
        graph, _ = fused([x, w], [T.dot(mask * x, w) * mask + more], by_bytes=True)
        first = next(node for node in graph.toposort() if isinstance(node.op, Fused))
        assert len(first.outputs) == count


# -- rows


def normalized(x, scale, axis=1):
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / T.sqrt(T.sqr(centred).mean(axis=axis, keepdims=True) + 1e-5) * scale


def kinds(graph):
    """Return the ops on matrices, without views."""
    nodes = [node for node in graph.toposort() if any(x.ndim == 2 for x in node.inputs)]
    names = [type(node.op).__name__ for node in nodes]
    return [name for name in names if name not in ("ShapeI", "DimShuffle", "Elemwise")]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_normalization_is_one_pass(axis):
    x, b = T.dmatrix("x"), T.drow("b")
    z = normalized(x, b, axis)
    graph, _ = fused([x, b], [z], canonical=True)
    assert kinds(graph) == ["Fused"]
    rng = np.random.default_rng(0)
    for shape in [(4, 3), (3000, 20), (20, 3000), (1, 5), (5, 1)]:
        values = [rng.standard_normal(shape), rng.standard_normal((1, shape[1]))]
        (want,) = evaluate([z], dict(zip([x, b], values, strict=True)))
        np.testing.assert_allclose(run(graph, *values)[0], want, rtol=1e-10)


def test_a_normalization_and_its_gradient():
    x, b = T.dmatrix("x"), T.drow("b")
    outputs = [T.sin(normalized(x, b)).sum()]
    outputs += symcomp.grad(outputs[0], [x, b])
    graph, _ = fused([x, b], outputs, canonical=True)
    assert kinds(graph) == ["Fused"]
    values = [np.random.default_rng(0).standard_normal(shape) for shape in ((700, 50), (1, 50))]
    plain = evaluate(outputs, dict(zip([x, b], values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_whose_lengths_are_compared_share_a_pass(axis):
    """The gradient of a normalization takes its argument and another array of its shape."""
    x, g, b = T.dmatrix("x"), T.dmatrix("g"), T.drow("b")
    outputs = symcomp.grad((normalized(x, b, axis) * g).sum(), [x])
    graph, _ = fused([x, g, b], outputs, canonical=True, by_bytes=True)
    assert kinds(graph) == ["Fused"]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in ((70, 50), (70, 50), (1, 50))]
    (want,) = evaluate(outputs, dict(zip([x, g, b], values, strict=True)))
    np.testing.assert_allclose(run(graph, *values)[0], want, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="could not be broadcast"):
        run(graph, values[0], values[1][:, :-1], values[2])


def test_a_comparison_in_a_branch_holds_in_it_alone():
    """Elsewhere rows may have other lengths."""
    x, y, c = T.dmatrix("x"), T.dmatrix("y"), T.bscalar("c")
    rows = [z / z.sum(axis=1, keepdims=True) for z in (x, y)]
    outputs = [*rows, ifelse(c, (rows[0] * rows[1]).sum(), 0.0)]
    graph, _ = fused([x, y, c], outputs, by_bytes=True)
    values = np.ones((2, 3)), np.ones((2, 4))
    found = run(graph, *values, np.int8(0))
    np.testing.assert_allclose(found[1], np.full((2, 4), 0.25))
    with pytest.raises(ValueError, match="could not be broadcast"):
        run(graph, *values, np.int8(1))


def test_softmax_with_a_bias_and_its_gradient():
    x, b, g = T.dmatrix("x"), T.drow("b"), T.dmatrix("g")
    z = T.nnet.softmax(x * 2.0 + b)
    outputs = [z, *symcomp.grad((z * g).sum(), [x, b])]
    graph, _ = fused([x, b, g], outputs)
    assert kinds(graph) == ["Fused"]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in ((700, 50), (1, 50), (700, 50))]
    plain = evaluate(outputs, dict(zip([x, b, g], values, strict=True)))
    for got, want in zip(run(graph, *values), plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


def test_reduced_values_that_others_need():
    x = T.dmatrix("x")
    top = x.max(axis=1, keepdims=True)
    flat = x.max(axis=1)
    rest = x - top
    values = [np.random.default_rng(0).standard_normal((300, 77))]
    graph = check_same([x], [T.exp(rest) * 2.0, top, flat, flat.cumsum()], values)
    assert kinds(graph) == ["Fused"]


def test_only_one_row_is_no_row():
    # All elements are needed before the first result: two passes, of which each is cut into blocks.
    x = T.dmatrix("x")
    z = T.exp(x * 2.0)
    graph = check_same([x], [z / z.max(keepdims=True) + 1.0], [np.ones((3, 4))])
    assert kinds(graph) == ["Fused", "Fused"]


def test_rows_along_another_axis_end_a_pass():
    x = T.dmatrix("x")
    z = T.floor(x * 3.0)
    z = z - z.max(axis=1, keepdims=True)
    outputs = [z - z.min(axis=1, keepdims=True), z.sum(axis=0)]
    graph = check_same([x], outputs, [np.random.default_rng(0).standard_normal((900, 77))])
    assert kinds(graph) == ["Fused"]


# -- laziness


def branches():
    """ifelse whose branches are chains of exponentials, one of them used outside too."""
    c, x = T.bscalar("c"), T.dvector("x")
    shared = T.exp(x) + 1.0
    left = T.sin(T.exp(x * 3.0) + shared)
    right = T.cos(T.log(x * 4.0) + shared)
    return c, x, [ifelse(c, left, right) * 2.0, shared * 3.0]


def test_branches_stay_lazy():
    c, x, outputs = branches()
    graph, _ = fused([c, x], outputs)
    program = lower(graph)
    for condition, skipped in ((1, "log"), (0, "sin")):
        machine = PythonMachine(program)
        tally = machine.new_tally()
        found = machine.run([np.int8(condition), np.ones(2)])
        steps = [program.instructions[counted.position] for counted in tally.counted()]
        seen = [str(step.node.op) for step in steps if step.node is not None]
        assert any("Fused" in text for text in seen)
        assert not any(skipped in text for text in seen)
        plain = evaluate(outputs, {c: np.int8(condition), x: np.ones(2)})
        for got, want in zip(found, plain, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_condition_computed_from_the_same_elements():
    x = T.dscalar("x")
    y = T.exp(x) + 1.0
    z = ifelse(y > 2.0, T.sin(y) + 1.0, T.cos(y) * 2.0)
    for value in (-1.0, 1.0):
        check_same([x], [z + y], [np.asarray(value)])


# -- size


@pytest.mark.slow
def test_a_long_chain():
    n = 10_000
    x, y = T.dvector("x"), T.dvector("y")
    z = x
    for _ in range(n):
        z = T.sin(z) + y
    graph, _ = fused([x, y], [z], merge=False)
    assert len(graph.nodes) == -(-2 * n // MOST_STEPS)
    assert all(len(node.op.formula.steps) <= MOST_STEPS for node in graph.nodes)


def test_many_inputs_are_cut():
    xs = [T.dvector(f"x{i}") for i in range(100)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    graph = check_same(xs, [total], [np.full(2, float(i)) for i in range(100)], merge=False)
    assert 1 < len(graph.nodes) < 8
    assert all(len(node.inputs) + len(node.outputs) <= MOST_ARRAYS for node in graph.nodes)


# -- random graphs

UNARY = [T.exp, T.sin, T.neg, T.abs_, T.sqr, T.tanh, T.isnan, T.floor, T.sigmoid, T.conj, T.real]
BINARY = [T.add, T.mul, T.sub, T.true_div, T.maximum, T.lt, T.eq, T.second, T.arctan2, T.int_div]
CASTS = ["float32", "int16", "complex128", "bool", "float64"]
INPUTS = [
    ("float64", (None, None)), ("float64", (1, None)), ("float64", (None, 1)), ("float32", (None,)),
    ("int8", (None, None)), ("bool", (None, None)), ("complex64", (None, None)), ("float64", ()),
    ("float16", (None, None)), ("int64", (1, 1)),
]  # fmt: skip


def grow(draw, pool):
    """Make one more variable from those in the pool, or none if the op refuses their dtypes."""
    kind = draw(st.sampled_from(["unary", "binary", "binary", "add", "switch", "cast", "reduce"]))
    a, b, c = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(3))
    try:
        if kind == "unary":
            return draw(st.sampled_from(UNARY))(a)
        if kind == "binary":
            return draw(st.sampled_from(BINARY))(a, b)
        if kind == "add":
            return T.add(a, b, c)
        if kind == "switch":
            return T.switch(a, b, c)
        if kind == "reduce" and a.ndim == 2:
            # Exact in any order: extremes, truth, and sums of integers.
            names = {"f": ["max", "min", "all"], "c": ["any", "all"]}
            name = draw(st.sampled_from(names.get(a.dtype[0], ["max", "any", "sum", "prod"])))
            axis = draw(st.sampled_from([0, 1, (0, 1)]))
            return getattr(T, name)(a, axis=axis, keepdims=axis != (0, 1))
        return T.cast(a, draw(st.sampled_from(CASTS)))
    except DTypeError:
        return None


@st.composite
def graphs(draw):
    inputs = [TensorType(dtype, shape)(f"x{i}") for i, (dtype, shape) in enumerate(INPUTS)]
    pool = [*inputs, T.constant(2.5), T.constant(np.float32(-1)), T.constant(np.inf)]
    for _ in range(draw(st.integers(2, 25))):
        new = grow(draw, pool)
        if new is not None:
            pool.append(new)
    picks = st.integers(0, len(pool) - 1)
    return inputs, [pool[-1], *(pool[draw(picks)] for _ in range(draw(st.integers(0, 3))))]


SPECIAL = [0.0, -0.0, 1.0, -2.5, 1e300, 5e-324, np.inf, -np.inf, np.nan]


def values_for(shape, seed):
    """Arrays for INPUTS, some of them not contiguous, with special values in them."""
    rng = np.random.default_rng(seed)
    n, m = shape
    made = []
    for dtype, known in INPUTS:
        full = (n, m)[2 - len(known) :]
        lengths = tuple(k or full[a] for a, k in enumerate(known))
        x = rng.standard_normal(tuple(2 * k for k in lengths)) * 3
        x = np.asarray(x)
        x[rng.random(x.shape) < 0.1] = rng.choice(SPECIAL)
        with np.errstate(all="ignore"):
            x = x.astype(dtype) if dtype[0] in "fc" else np.nan_to_num(x, posinf=9, neginf=-9)
            x = np.clip(x, -99, 99).astype(dtype) if dtype[0] not in "fc" else x
        corner = tuple(slice(0, k) for k in lengths)
        every = tuple(slice(None, None, -2 if k > 1 else 2) for k in lengths)
        made.append(np.asarray(x[corner].copy() if rng.random() < 0.5 else x[every]))
    return made


@settings(deadline=None, max_examples=200)
@given(
    graphs(),
    st.sampled_from([(3, 4), (0, 2), (1, 1), (300, 77)]),
    st.integers(0, 1000),
    st.booleans(),
)
def test_random_graphs_compute_the_same_bits(graph, shape, seed, by_bytes):
    inputs, outputs = graph
    check_same(inputs, outputs, values_for(shape, seed), merge=False, by_bytes=by_bytes)


@settings(deadline=None, max_examples=100)
@given(graphs(), st.integers(0, 1000), st.integers(2, 5))
def test_random_graphs_in_small_parts(graph, seed, steps):
    inputs, outputs = graph
    with mock.patch("symcomp.rewrite.fusion.MOST_STEPS", steps):
        check_same(inputs, outputs, values_for((4, 3), seed), merge=False)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.integers(0, 1000))
def test_random_graphs_after_rewriting(graph, seed):
    inputs, outputs = graph
    values = values_for((4, 3), seed)
    copy = FunctionGraph(inputs, outputs)
    rewrite(copy, lambda tags: "merge" in tags or "canonicalize" in tags)
    with np.errstate(all="ignore"):
        plain = evaluate(copy.outputs, dict(zip(copy.inputs, values, strict=True)))
        fuse(copy, [])
        again = run(copy, *values)
    for want, got in zip(plain, again, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@settings(deadline=None, max_examples=100)
@given(graphs())
def test_levels_never_fall(graph):
    _, outputs = graph
    order = toposort(outputs)
    kinds = {node: str(node.op) if len(node.inputs) > 1 else None for node in order}
    levels = assign_levels(order, kinds)
    for node in order:
        for x in node.inputs:
            if x.owner is not None:
                one = kinds[node] is not None and kinds[node] == kinds[x.owner]
                assert levels[x.owner] <= levels[node] - (not one)


def test_rows_of_other_lengths_are_another_loop():
    """A value reduced over rows is used for rows that may be longer: no one loop has both."""
    m, z = T.dmatrix("m"), T.dmatrix("z")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    row = T.exp(m).sum(axis=1, keepdims=True)
    f = symcomp.function([m, z], [z * row, T.exp(m) / row, T.sin(z) - T.sqrt(row)])
    wide = np.exp(a).sum(axis=1, keepdims=True)
    wanted = [b * wide, np.exp(a) / wide, np.sin(b) - np.sqrt(wide)]
    for found, value in zip(f(a, b), wanted, strict=True):
        np.testing.assert_allclose(found, value)


def test_sum_of_all_axes_with_one_axis_less_than_before():
    """Restore fewer axes than the sum goes over."""
    m = T.dmatrix("m")
    f = symcomp.function([m], T.exp(T.log(m).sum().dimshuffle("x")))
    np.testing.assert_allclose(f(np.full((2, 2), 2.0)), [16.0])


@pytest.mark.parametrize("count", [MOST_TERMS, MOST_TERMS + 1, 3 * MOST_TERMS])
def test_sums_of_many_arrays_are_divided(count):
    """The order of additions stays that of one sum."""
    terms = [T.dvector(f"x{i}") for i in range(count)]
    values = [np.array([10.0 ** (i % 17), -(3.0**i)]) for i in range(count)]
    f = symcomp.function(terms, T.add(*terms))
    largest = max(len(node.inputs) for node in f.maker.fgraph.toposort())
    assert largest == min(count, MOST_TERMS)
    found, wanted = f(*values), values[0]
    for value in values[1:]:
        wanted = wanted + value
    np.testing.assert_array_equal(found, wanted)


def test_cheap_functions_are_there():
    assert CHEAP - ROWS.keys() == set()
