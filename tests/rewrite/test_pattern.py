"""Rules as patterns: what they meet, what they leave alone, what they put there."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.reductions.reduce import Reduce
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.pattern import constants, f, named, operation, pattern_rule, variables
from symcomp.rewrite.rule import Rule, RuleSet, rule
from symcomp.tensor.inplace import exp_inplace

x, y, z = variables("x y z")
a, b = constants("a b")
U, V, W = T.dvectors("u", "v", "w")
DATA = {
    U: np.array([0.5, -1.5, 2.0]),
    V: np.array([1.25, 0.5, -0.25]),
    W: np.array([-0.5, 3.0, 0.75]),
}


def made(pattern, replacement, **options):
    return pattern_rule("under_test", pattern, replacement, **{"why": "a test", **options})


def rewritten(expression, *rules):
    """Return the expression after the rules, checked to compute the same."""
    inputs = [v for v in DATA if v in symcomp.core.walk.graph_inputs([expression])]
    graph = FunctionGraph(inputs, [expression])
    Engine(graph, RuleSet(rules), folding=False, on_error="raise").run()
    values = [DATA[v] for v in inputs]
    before = evaluate([expression], dict(zip(inputs, values, strict=True)))[0]
    after = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))[0]
    assert after.dtype == before.dtype
    np.testing.assert_allclose(after, before, rtol=1e-13)
    return graph


def ops(expression, *rules):
    return [str(n.op) for n in rewritten(expression, *rules).toposort() if str(n.op) not in VIEWS]


VIEWS = {str(DimShuffle(0, ("x",)))}

# -- matching


def test_function_of_a_function():
    cancel = made(f.log(f.exp(x)), x)
    assert ops(T.log(T.exp(U)), cancel) == []
    assert ops(T.log(T.exp(U) * V**2), cancel)[-1] == "log"
    assert ops(T.exp(T.log(V**2)), cancel)[-1] == "exp"


@pytest.mark.parametrize("build", [lambda u: 1 + u, lambda u: u + 1, lambda u: u + np.ones(1)])
def test_commutative_in_any_order(build):
    assert ops(T.log(build(U * U)), made(f.log(1 + x), f.log1p(x))) == ["mul", "log1p"]
    assert ops(T.log(build(U * U)), made(f.log(x + 1), f.log1p(x))) == ["mul", "log1p"]


def test_both_orders_of_both_arguments():
    area = made(f.maximum(f.exp(x), f.neg(y)), f.neg(f.minimum(-f.exp(x), y)))
    for z in (T.maximum(T.exp(U), -V), T.maximum(-V, T.exp(U))):
        assert "minimum" in ops(z, area)
    ordered = made(f.sub(f.exp(x), 1), f.expm1(x))
    assert ops(T.exp(U) - 1, ordered) == ["expm1"]
    assert ops(1 - T.exp(U), ordered) == ["exp", "sub"]


def test_a_variable_that_occurs_twice():
    nothing = made(x - x, 0)
    assert ops(U - U, nothing) == ["second"]
    assert ops(U - V, nothing) == ["sub"]
    assert ops(T.exp(U) - T.exp(U), nothing)[-1] == "second"
    same = made(
        f.mul(f.add(x, a), f.add(y, a)), f.sqr(x) * 0 + (x + a) * (y + a), where=lambda m: 0
    )
    assert ops((U + 2.0) * (V + 2.0), same) == ["add", "add", "mul"]
    twice = made(f.add(x, a) * f.add(y, a), lambda m: m.x * m.y + m.a * (m.x + m.y) + m.a * m.a)
    assert len(ops((U + 2.0) * (V + 2.0), twice)) == 6
    assert ops((U + 2.0) * (V + 3.0), twice) == ["add", "add", "mul"]


def test_numbers_in_any_dtype_and_shape_of_length_one():
    plus = made(x * 2, x + x)
    assert ops(U * 2, plus) == ["add"]
    assert ops(np.full(1, 2, np.int8) * U, plus) == ["add"]
    assert ops(U * np.full(3, 2.0), plus) == ["mul"]
    assert ops(U * 2.5, plus) == ["mul"]


def test_in_place_functions_are_left_alone():
    u = T.dvector("u")
    graph = FunctionGraph([u], [T.log(exp_inplace(u * 1.5))])
    Engine(graph, RuleSet([made(f.log(f.exp(x)), x)]), on_error="raise").run()
    assert [str(n.op) for n in graph.toposort()][-1] == "log"


# -- sums of more terms


def test_a_variable_stands_for_the_terms_left_over():
    log1p = made(f.log(1 + x), f.log1p(x))
    for total in (1 + U**2 + V**2, U**2 + (1 + V**2), (U**2 + V**2) + 1, T.add(U**2, 1.0, V**2)):
        assert ops(T.log(total), log1p)[-2:] == ["add", "log1p"]
    assert ops(T.log(U**2 + V**2), log1p)[-1] == "log"


def test_terms_left_over_are_added_to_what_replaces_a_sum():
    one = made(f.sqr(f.sin(x)) + f.sqr(f.cos(x)), 1)
    nested = T.sqr(T.sin(U)) + V + T.sqr(T.cos(U)) + W
    assert ops(nested, one) == ["second", "add", "add"]
    assert ops(T.add(T.sqr(T.sin(U)), V, T.sqr(T.cos(U)), W), one) == ["second", "add"]
    assert "sin" in ops(T.sqr(T.sin(U)) + V + T.sqr(T.cos(V)), one)


def test_three_terms():
    square = made(f.sqr(x) + 2 * (x * y) + f.sqr(y), f.sqr(x + y))
    assert ops(T.sqr(U) + 2 * (V * U) + T.sqr(V), square) == ["add", "sqr"]
    assert ops(T.sqr(V) + (T.sqr(U) + 2 * (V * U)), square) == ["add", "sqr"]


def test_terms_are_not_joined_in_a_smaller_dtype():
    i, j = T.constant(np.array([100], np.int8)), T.constant(np.array([101], np.int8))
    n, m = i + 0 * i, j + 0 * j
    absorb = made(f.exp(a + x), f.exp(a) * f.exp(x))
    graph = rewritten(T.exp(T.add(n, m, U * 0, 1.0)), absorb)
    assert [str(node.op) for node in graph.toposort()][-1] == "exp"


def test_a_sum_without_a_variable_to_stand_for_the_rest():
    exact = made(f.log(f.exp(x) + f.exp(y)), f.logaddexp(x, y))
    assert ops(T.log(T.exp(U) + T.exp(V)), exact) == ["logaddexp"]
    assert ops(T.log(T.exp(U) + T.exp(V) + W**2), exact)[-1] == "log"


def test_the_parts_of_a_sum_are_kept_where_possible():
    signs = made(x + -y, x - y)
    graph = rewritten((U + -V) + -W, signs)
    assert [str(n.op) for n in graph.toposort()] == ["sub", "sub"]


# -- conditions


def test_constants_and_their_values():
    (c,) = constants("c", where=lambda value: value > 0)
    power = made(f.log(x**c), c * f.log(x))
    assert ops(T.log(V**2.0 + 0.0), power)[-1] == "log"
    assert ops(T.log(T.exp(U) ** 3.0), power) == ["exp", "log", "mul"]
    assert ops(T.log(T.exp(U) ** -3.0), power)[-1] == "log"
    assert ops(T.log(T.exp(U) ** V), power)[-1] == "log"


def test_dtype():
    (r,) = variables("r", dtype="float")
    (s,) = variables("s", dtype="float32")
    for pattern, dtype, fires in [
        (r, "float64", True), (r, "float16", True), (r, "int32", False), (r, "complex64", False),
        (s, "float32", True), (s, "float64", False),
    ]:  # fmt: skip
        v = T.vector("v", dtype=dtype)
        graph = FunctionGraph([v], [T.neg(T.neg(v))])
        Engine(graph, RuleSet([made(f.neg(f.neg(pattern)), pattern)]), on_error="raise").run()
        assert (not graph.nodes) == fires, dtype
    with pytest.raises(DTypeError, match="floats"):
        variables("x", dtype="floats")


@pytest.mark.parametrize(
    ("shape", "fires"),
    [((3, 4), True), ((None, 4), True), ((None, None), True), ((4, 4), False), ((None,), False)],
)
def test_shape(shape, fires):
    (s,) = variables("s", shape=shape)
    m = TensorType("float64", (3, 4))("m")
    graph = FunctionGraph([m], [T.neg(T.neg(m))])
    Engine(graph, RuleSet([made(f.neg(f.neg(s)), s)]), on_error="raise").run()
    assert (not graph.nodes) == fires
    unknown = FunctionGraph([n := T.dmatrix("n")], [T.neg(T.neg(n))])
    Engine(unknown, RuleSet([made(f.neg(f.neg(s)), s)]), on_error="raise").run()
    assert (not unknown.nodes) == (shape == (None, None))


def test_a_condition_on_what_is_met_tries_every_way():
    for kept in (U, V):
        chosen = made(x * y, f.sqr(y), where=lambda m, name=kept.name: m.y.name == name)
        graph = FunctionGraph([U, V], [U * V])
        Engine(graph, RuleSet([chosen]), on_error="raise").run()
        assert {v.name for v in graph.outputs[0].owner.inputs} == {kept.name}
    (named_v,) = variables("x", where=lambda v: v.name == "v")
    graph = FunctionGraph([U, V], [U * V])
    Engine(graph, RuleSet([made(named_v * y, -named_v)]), on_error="raise").run()
    assert [str(n) for n in graph.toposort()] == ["neg(v)"]


def test_only_where_nobody_else_needs_it():
    alone = made(
        named("inner", f.exp(x)) * f.exp(y),
        f.exp(x + y),
        where=lambda m: len(m.graph.clients[m.inner]) == 1,
    )
    e = T.exp(U)
    assert ops(e * T.exp(V), alone) == ["add", "exp"]
    shared = FunctionGraph([U], [e * e])
    Engine(shared, RuleSet([alone]), on_error="raise").run()
    assert [str(n.op) for n in shared.toposort()] == ["exp", "mul"]


# -- replacements


def test_functions():
    def by_parity(m):
        """x ** n -> products"""
        return m.x * m.x * m.x if m.number("a") == 3 else None

    cubes = made(x**a, by_parity)
    assert ops(U**3, cubes) == ["mul", "mul"] and ops(U**5.0, cubes) == ["pow"]
    assert cubes.before_after == "x ** a -> x ** n -> products"
    with pytest.raises(symcomp.errors.RewriteError, match="no variable 'q'; it has x, a"):
        rewritten(U**3, made(x**a, lambda m: m.q))
    with pytest.raises(symcomp.errors.RewriteError, match="which is no number"):
        rewritten(U**V, made(x**y, lambda m: m.number("y")))


def test_numbers_fill_the_shape():
    zero = made(x * 0, 0)
    graph = rewritten(U * 0, zero)
    assert graph.outputs[0].type.ndim == 1
    column = T.dmatrix("column")
    graph = FunctionGraph([column, U], [(column - column) + U])
    Engine(graph, RuleSet([made(x - x, 0)]), on_error="raise").run()
    (after,) = evaluate(graph.outputs, {graph.inputs[0]: np.ones((2, 3)), graph.inputs[1]: DATA[U]})
    np.testing.assert_array_equal(after, np.tile(DATA[U], (2, 1)))
    n = T.lvector("n")
    graph = FunctionGraph([n], [n - n])
    Engine(graph, RuleSet([made(x - x, 0)]), on_error="raise").run()
    assert graph.outputs[0].dtype == "int64" and str(graph.outputs[0].owner.op) == "second"


def test_what_would_change_the_type_is_not_done():
    unit = made(x * 1, x)
    assert ops(U * 1, unit) == []
    one = T.constant(np.ones((1, 1)))
    i = T.constant(np.arange(3, dtype="int32"))
    row = T.TensorType("float64", (1,))("row")
    for expression in (i * np.ones((), "float64"), row * (U * 0 + 1)):
        graph = FunctionGraph([row, U], [expression])
        Engine(graph, RuleSet([unit]), folding=False, on_error="raise").run()
        assert "mul" in [str(n.op) for n in graph.toposort()]
    assert rewritten(U * one, unit).outputs[0].type.ndim == 2


def test_named_parts_can_be_used_again():
    kept = made(f.sinh(x) - named("c", f.cosh(x)), lambda m: -m.c + T.sinh(m.x))
    built = made(f.log(named("e", f.exp(x)) * y), named("e", f.exp(x)) * 0 + x + f.log(y))
    assert sorted(ops(T.log(T.exp(U) * T.exp(V)), built))[0] == "add"
    assert set(ops(T.sinh(U) - T.cosh(U), kept)) == {"sinh", "cosh", "neg", "add"}


# -- ops that are no scalar functions


def test_ops_and_classes_of_ops():
    flip = DimShuffle(2, (1, 0))
    twice = made(operation(flip, operation(flip, x)), x)
    m = T.dmatrix("m")
    graph = FunctionGraph([m], [m.T.T])
    Engine(graph, RuleSet([twice]), on_error="raise").run()
    assert not graph.nodes
    through = made(operation(Reduce, -x), lambda m: -m.node.op(m.x))
    assert ops((-U).sum(), through) == [str(U.sum().owner.op), "neg"]
    assert ops((-U).max() * -1 * 0, made(operation(Reduce, -x), lambda m: None))[0] == "neg"


def test_functions_with_parameters():
    to_single = cast(U, "float32").owner.op
    again = made(operation(to_single, operation(to_single, x)), operation(to_single, x))
    single = cast(U, "float32")
    graph = FunctionGraph([U], [to_single(to_single(U) + single)])
    Engine(graph, RuleSet([again]), on_error="raise").run()
    assert again.kinds == ("cast",)
    assert isinstance(graph.outputs[0].owner.op, Elemwise)
    with pytest.raises(AttributeError, match=r"cast has parameters: write operation\(op"):
        f.cast(x)


# -- the rule as a value


def test_it_is_a_rule_like_any_other():
    r = pattern_rule("mine", f.log(1 + x), f.log1p(x), why="digits", tags=["extra"])

    @rule("log", why="digits", tags=["extra"])
    def mine(node, graph):
        """log(1 + x) -> log1p(x)"""

    assert isinstance(r, Rule)
    assert (r.name, r.kinds, r.tags, r.why, r.before_after) == (
        mine.name, mine.kinds, mine.tags, mine.why, mine.before_after,
    )  # fmt: skip
    assert (
        RuleSet([r], ["stabilize"]).selected(lambda tags: "extra" in tags).rules[0].name == "mine"
    )
    assert len(RuleSet([r]).selected(lambda tags: "mine" not in tags)) == 0


def test_how_patterns_are_shown():
    shown = {
        (x + y) * z: "(x + y) * z",
        x + y * 2: "x + y * 2",
        -(x - (y - z)): "-(x - (y - z))",
        f.exp(-x) ** 2 / y: "exp(-x) ** 2 / y",
        2**x: "2 ** x",
        named("s", f.sin(x)): "s: sin(x)",
        operation(Reduce, x): "Reduce(x)",
    }
    assert [str(p) for p in shown] == list(shown.values())


PAIRS = {
    "log1p": (f.log(1 + x), f.log1p(x)),
    "sigmoid": (1 / (1 + f.exp(-x)), f.sigmoid(x)),
    "squares": (f.sqr(x) - f.sqr(y), (x - y) * (x + y)),
    "product": (f.exp(x) * f.exp(y), f.exp(x + y)),
    "tangent": (f.sin(x) / f.cos(x), f.tan(x)),
    "absolute": (f.sqrt(f.sqr(x)), f.abs(x)),
    "distribute": (x * y + x * z, x * (y + z)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_pattern_meets_what_it_builds(name):
    pattern, replacement = PAIRS[name]
    expression = pattern.build({"x": T.sqr(U), "y": V, "z": W})
    expected = {str(v.owner.op) for v in [replacement.build({"x": U, "y": V, "z": W})]}
    assert expected <= set(ops(expression, made(pattern, replacement)))


def test_bad_declarations():
    with pytest.raises(ValueError, match="x is not the application of an op"):
        made(x, f.exp(x))
    with pytest.raises(ValueError, match="y of the replacement exp.y. is not in the pattern"):
        made(f.log(x), f.exp(y))
    with pytest.raises(ValueError, match="says a class, not which op"):
        made(f.log(x), operation(Reduce, x))
    with pytest.raises(ValueError, match="0 has no shape"):
        made(operation(Reduce, x), 0)
    with pytest.raises(AttributeError, match="there is no scalar function 'lgo'"):
        f.lgo(x)
    with pytest.raises(TypeError, match="exp takes 1 arguments, got 2"):
        f.exp(x, y)
    with pytest.raises(TypeError, match="'one' is neither a pattern nor a real number"):
        f.exp("one")
    with pytest.raises(TypeError, match="neither an op nor a class of ops"):
        operation(int, x)
