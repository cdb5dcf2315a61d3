"""Every rule of canonicalize/structure.py: what it leaves, that values stay; where it is mute."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.ops.control.conditions import ifelse
from symcomp.ops.convert import Stack
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.ops.shapes.shape import ShapeI, SpecifyShape
from symcomp.rewrite.canonicalize.structure import STRUCTURE
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import RULES, Case, check_rule

V = np.array([0.5, -1.5, 3.0])
W = np.array([2.0, 0.25, -4.0])
M = np.array([[1.0, -2.0, 0.5], [4.0, -0.125, 7.0]])
ROW = np.array([[1.0, -2.0, 0.5]])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 11
I = np.array([[1, -2, 7], [3, 0, 5]])
B = np.array([[True, False, True], [True, True, True]])
F = M.astype("float32")
C = M + 1j
S = np.array(2.5)
E = np.zeros((2, 0))
TRUE = np.array(True)

CASES = [
    Case("dimshuffle_chain", lambda x: x.T.T, (M,), ""),
    Case("dimshuffle_chain", lambda x: x.dimshuffle(0, "x", 1).dimshuffle(2, 0, 1), (M,),
         "DimShuffle", note="two"),
    Case("dimshuffle_chain", lambda x: x.dimshuffle(0, "x", 1).dimshuffle(2, 0), (M,),
         "DimShuffle", note="dropping"),
    Case("dimshuffle_chain", lambda x: x.dimshuffle("x", 0).dimshuffle(1), (V,), "", note="back"),
    Case("dimshuffle_of_elemwise", lambda x: T.exp(x).T, (M,), "DimShuffle exp", rtol=1e-15),
    Case("dimshuffle_of_elemwise", lambda x, y: (x + y).dimshuffle(1, "x", 0), (M, M),
         "DimShuffle DimShuffle add", note="two"),
    Case("dimshuffle_of_elemwise", lambda x, y: (x * y).T, (M, ROW), "DimShuffle DimShuffle mul",
         note="broadcast"),
    Case("reshape_chain", lambda x: x.reshape((3, 2)).reshape((6,)), (M,), "Reshape",
         static="full"),
    Case("reshape_chain", lambda x: x.reshape((2, 3)), (M,), "", static="full", note="same"),
    Case("reshape_chain", lambda x: x.reshape((-1, 1)).reshape((6,)), (M,), "Reshape",
         static="full", note="computed and known"),
    Case("reshape_chain", lambda x: x.reshape((2, 3)).reshape((6, 1)), (M,), "Reshape",
         static="none", note="as many by their numbers"),
    Case("reshape_chain", lambda x: x.reshape(x.shape), (M,), "", static="none",
         note="its shape"),
    Case("reshape_chain", lambda x: x.flatten().reshape((2, -1)), (M,),
         "Reshape", static="none", note="flat before"),
    Case("bounded_length", lambda x: T.maximum(0, ShapeI(0)(x)), (V,), "ShapeI", static="none"),
    Case("length_of", lambda x: T.exp(x).shape[0], (V,), "ShapeI", static="none",
         note="elementwise"),
    Case("length_of", lambda x, y: ShapeI(1)(T.dot(x, y)), (M, M.T.copy()), "ShapeI",
         static="none", checks_shapes=False),
    Case("shape_of", lambda x: T.exp(x).shape, (M,), "ShapeI ShapeI Stack", static="none"),
    Case("shape_of", lambda x: T.exp(x).shape, (M,), "", static="full", note="known"),
    Case("known_claim", lambda x: SpecifyShape((2, 3))(x), (M,), "", static="full"),
    Case("known_claim", lambda x: SpecifyShape((1, None))(T.exp(x)), (ROW,), "exp",
         note="one"),
    Case("join_of_one", lambda x: Join(0)(x), (V,), ""),
    Case("join_of_one", lambda x, e: Join(1)(x, e, x), (M, E), "Join", static="full",
         note="empty"),
    Case("join_of_one", lambda x, e: Join(1)(e, x), (M, E), "", static="full", note="rest of one"),
    Case("join_of_join", lambda x, y: Join(0)(Join(0)(x, y), x), (V, W), "Join"),
    Case("join_of_join", lambda x, y: Join(1)(y, Join(1)(x, y)), (M, M), "Join", note="right"),
    Case("alloc_of_filled", lambda x: T.alloc(x, x.shape[0], x.shape[1]), (M,), "",
         static="full"),
    Case("alloc_of_filled", lambda x: T.alloc(T.alloc(x, 1), 4), (S,), "Alloc", note="scalar"),
    Case("alloc_of_filled", lambda x: T.alloc(T.alloc(x, 1, 1), 4, 3), (np.ones(1),), "Alloc",
         note="vector of one"),
    Case("reduce_short_axes", lambda x: x.sum(axis=()), (M,), "DimShuffle"),
    Case("reduce_short_axes", lambda x: x.sum(axis=0), (ROW,), "DimShuffle", note="one"),
    Case("reduce_short_axes", lambda x: x.sum(), (ROW,), "DimShuffle sum", note="one of two"),
    Case("reduce_short_axes", lambda x: x.max(axis=0), (ROW,), "DimShuffle", note="max"),
    Case("reduce_short_axes", lambda x: x.prod(axis=(0, 2)), (CUBE[:, :, :1],),
         "DimShuffle prod", note="axes between"),
    Case("reduce_short_axes", lambda x: x.sum(axis=0), (I[:1],), "DimShuffle", note="ints"),
    Case("reduce_short_axes", lambda x: x.sum(axis=0), (I[:1].astype("int8"),), "DimShuffle cast",
         note="small ints"),
    Case("reduce_short_axes", lambda x: x.all(axis=0), (B[:1],), "DimShuffle", note="bool"),
    Case("reduce_of_reduce", lambda x: x.sum(axis=0).sum(axis=0), (CUBE,), "sum", rtol=1e-13,
         atol=1e-12, extremes=False),
    Case("reduce_of_reduce", lambda x: x.sum(axis=1).sum(axis=1), (CUBE,), "sum", rtol=1e-13,
         atol=1e-12, extremes=False, note="outer axes"),
    Case("reduce_of_reduce", lambda x: x.max(axis=1).max(axis=0), (M,), "max", static="full",
         note="max"),
    Case("reduce_of_reduce", lambda x: x.prod(axis=0).prod(), (M,), "prod", rtol=1e-13,
         extremes=False, note="prod"),
    Case("reduce_of_reduce", lambda x: x.any(axis=0).any(), (B,), "any", note="any"),
    Case("reduce_of_reduce", lambda x: x.sum(axis=0).sum(), (I,), "sum", note="ints"),
    Case("reduce_of_dimshuffle", lambda x: x.T.sum(), (M,), "sum", rtol=1e-13, atol=1e-12,
         extremes=False),
    Case("reduce_of_dimshuffle", lambda x: x.dimshuffle(1, "x", 0).prod(), (M,), "prod",
         rtol=1e-13, extremes=False, note="prod"),
    Case("reduce_of_dimshuffle", lambda x: x.T.all(), (B,), "all", note="all"),
    Case("sum_of_neg", lambda x: (-x).sum(axis=0), (M,), "neg sum"),
    Case("sum_of_neg", lambda x: (-x).sum(), (F,), "neg sum", note="float32"),
    Case("sum_of_neg", lambda x: (-x).sum(axis=1), (C,), "neg sum", note="complex"),
    Case("stack_of_one", lambda x: Stack()(x), (S,), "DimShuffle"),
    Case("stack_of_one", lambda x: Stack()(x), (M,), "DimShuffle", note="of a matrix"),
    Case("all_of_stack", lambda x, c: T.all(Stack()(x.all(), c, T.any(x))), (B, TRUE),
         "all and_ and_ any"),
    Case("all_of_stack", lambda x, c: T.any(Stack()(x.all(), c)), (B, TRUE), "all or_",
         note="any"),
    Case("all_of_stack", lambda x, c: T.all(Stack()(c, T.constant(True), x.all())), (B, TRUE),
         "all and_", note="known"),
    Case("all_of_stack", lambda x: T.all(Stack()(T.constant(True), x.all())), (B,), "all",
         note="one unknown"),
    Case("all_of_stack", lambda c: T.any(Stack()(T.constant(True), c)), (TRUE,), "or_",
         note="decided"),
    Case("assert_true", lambda x: T.Assert()(x, T.constant(True)), (V,), ""),
    Case("assert_true", lambda x, c: T.Assert()(x, T.constant(True), c), (V, TRUE), "Assert",
         note="one of two"),
    Case("ifelse_known", lambda x, y: ifelse(T.constant(1), x, y), (V, W), ""),
    Case("ifelse_known", lambda x, y: ifelse(T.constant(0.0), x, y * 2.0), (V, W),
         "mul", note="else"),
    Case("ifelse_known", lambda c, x: ifelse(c, x, x), (TRUE, V), "", note="equal"),
    Case("ifelse_drop_unused", lambda c, x, y: ifelse(c, [T.exp(x), x], [T.sin(y), y])[1],
         (TRUE, V, W), "ifelse"),
    Case("ifelse_drop_unused", lambda c, x, y: ifelse(c, ifelse(c, [x, T.exp(x)], [y, y]),
         [x, T.sin(y)])[0], (TRUE, V, W), "ifelse ifelse", note="nested"),
    Case("ifelse_known", lambda c, x, y: ifelse(c, [x, y], [x, x]), (TRUE, V, W), "ifelse",
         note="one of two equal"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


def test_every_rule_has_a_case():
    assert {rule.name for rule in STRUCTURE} == {case.rule for case in CASES}


def _used_twice(x):
    y = T.exp(x)
    return [y.T, y]


# Name of the rule, expression, arrays: what looks like a case and is none.
STAYS = {
    "used elsewhere": ("dimshuffle_of_elemwise", _used_twice, (M,)),
    "drops an axis": ("dimshuffle_of_elemwise", lambda x: T.exp(x).dimshuffle(1), (ROW,)),
    "checks the number": ("reshape_chain", lambda x: x.reshape((2, 2)).reshape((-1, 4)), (M,)),
    "divides": ("reshape_chain", lambda x: x.reshape((-1, 2)).reshape((3, 2)), (M,)),
    "length of an input": ("length_of", lambda x: ShapeI(0)(x), (V,)),
    "bounded by one": ("bounded_length", lambda x: T.maximum(1, ShapeI(0)(x)), (V,)),
    "shape of an input": ("shape_of", lambda x: x.shape, (M,)),
    "claim to check": ("known_claim", lambda x: T.specify_shape(x, (2, 3)), (M,)),
    "other axis": ("join_of_join", lambda x: Join(1)(Join(0)(x, x), Join(0)(x, x)), (M,)),
    "any length": ("join_of_one", lambda x: Join(0)(x, x), (V,)),
    "longer": ("alloc_of_filled", lambda x: T.alloc(x, x.shape[0] + 1), (V,)),
    "numbers to bool": ("reduce_short_axes", lambda x: x.any(axis=0), (ROW,)),
    "sum of max": ("reduce_of_reduce", lambda x: x.max(axis=0).sum(), (M,)),
    "max of empty": ("reduce_of_reduce", lambda x: x.max(axis=0).max(), (M,)),
    "rounded between": (
        "reduce_of_reduce", lambda x: x.sum(axis=0, dtype="int8").sum(dtype="int64"), (I,)
    ),
    "some axes": ("reduce_of_dimshuffle", lambda x: x.T.sum(axis=0), (M,)),
    "ints": ("sum_of_neg", lambda x: (-x).sum(dtype="float64"), (I.astype("int8"),)),
    "max of neg": ("sum_of_neg", lambda x: (-x).max(), (M,)),
    "two": ("stack_of_one", lambda x: Stack()(x, x), (S,)),
    "all of numbers": ("all_of_stack", lambda x: Stack()(x, x).all(), (S,)),
    "all of rows": ("all_of_stack", lambda x: Stack()(x, x).all(axis=0), (B,)),
    "all of nine": ("all_of_stack", lambda c: Stack()(*[c] * 9).all(), (TRUE,)),
    "sum of conditions": ("all_of_stack", lambda c: Stack()(c, c).sum(), (TRUE,)),
    "false": ("assert_true", lambda x: T.Assert()(x, T.constant(False)), (V,)),
    "unknown": ("ifelse_known", lambda c, x, y: ifelse(c, x, y), (TRUE, V, W)),
    "all used": (
        "ifelse_drop_unused", lambda c, x, y: ifelse(c, [x, y], [y, x]), (TRUE, V, W)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_rule_does_not_fire(name):
    rule, build, values = STAYS[name]
    inputs = variables_for(values, "none")
    built = build(*inputs)
    graph = FunctionGraph(inputs, built if isinstance(built, list) else [built])
    firings = Engine(graph, RuleSet([RULES[rule]]), folding=False, on_error="raise").run()
    assert [f.rule for f in firings if f.rule == rule] == []


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1)])
@pytest.mark.parametrize("users", [1, 2])
def test_many_transposes_meet_in_as_many_rewrites(order, users):
    """Each moves down to the next, and not all of them to the input."""
    x = T.dtensor3("x")
    counts = []
    for n in (30, 60):
        y = x
        for _ in range(n):
            y = y.dimshuffle(*order)
            y = T.tanh(y) if users == 1 else T.tanh(y) * y
        graph = FunctionGraph([x], [y])
        counts.append(len(Engine(graph, STRUCTURE, on_error="raise").run()))
        moved = [node for node in graph.toposort() if isinstance(node.op, DimShuffle)]
        assert users == 2 or not moved  # 30 and 60 are multiples of 2 and of 3
    assert counts[1] <= 2.2 * counts[0]


def test_many_joins_are_one_rewrite():
    x = y = T.dvector("x")
    for _ in range(50):
        y = T.join(0, y, T.join(0, x, x))
    graph = FunctionGraph([x], [y])
    assert [f.rule for f in Engine(graph, STRUCTURE, on_error="raise").run()] == ["join_of_join"]
    assert graph.toposort() == [graph.outputs[0].owner]
