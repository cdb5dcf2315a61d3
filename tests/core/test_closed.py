"""ClosedGraph: equality by structure, connection, pickling, and what it refuses."""

import pickle

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Constant
from symcomp.core.walk import graph_inputs, toposort
from symcomp.errors import MissingInputError, UnusedInputError
from symcomp.gradient import disconnected_grad


def closed(function, *kinds):
    inputs = [kind() for kind in kinds or (T.dvector, T.dvector)]
    outputs = function(*inputs)
    return ClosedGraph(inputs, outputs if isinstance(outputs, list) else [outputs])


def test_equal_by_structure():
    g = closed(lambda x, y: T.exp(x) + y)
    assert g == closed(lambda a, b: T.exp(a) + b) and hash(g) == hash(
        closed(lambda a, b: T.exp(a) + b)
    )
    others = [
        lambda x, y: T.exp(y) + x,
        lambda x, y: y + T.exp(x),
        lambda x, y: T.expm1(x) + y,
        lambda x, y: [T.exp(x) + y, x],
        lambda x, y: T.exp(x) + y + 0,
    ]
    assert all(g != closed(other) for other in others)
    assert g != closed(lambda x, y: T.exp(x) + y, T.dvector, T.drow) and g != "a graph"


def test_equal_parts_count_once_and_constants_by_value():
    assert closed(lambda x, y: T.exp(x) * T.exp(x)) == closed(lambda x, y: (e := T.exp(x)) * e)
    assert closed(lambda x, y: x * 2.5) == closed(lambda x, y: x * 2.5)
    assert closed(lambda x, y: x * 2.5) != closed(lambda x, y: x * 3.5)
    assert closed(lambda x, y: x * np.nan) == closed(lambda x, y: x * np.nan)
    assert closed(lambda x, y: [x, y]) != closed(lambda x, y: [y, x])


def test_nobody_else_holds_its_nodes():
    x = T.dvector("x")
    y = T.exp(x)
    y.name = "y"
    g = ClosedGraph([x], [y + 1])
    assert g.inputs[0] is not x and g.inputs[0].name == "x" and g.inputs[0].source == x.source
    inner = toposort(g.outputs)[0].outputs[0]
    assert inner is not y and inner.name == "y" and inner.source == y.source
    twin = g([x])[0]
    assert [v for v in graph_inputs([twin]) if not isinstance(v, Constant)] == [x]
    np.testing.assert_array_equal(twin.eval({x: [0.0]}), g.run([np.zeros(1)])[0])


def test_an_input_stands_for_nothing_but_itself():
    x = T.dvector("x")
    y = T.exp(x)
    g = ClosedGraph([y, x], [y * 2 + x])
    np.testing.assert_array_equal(g.run([np.ones(1), np.zeros(1)])[0], [2.0])


def test_connection():
    g = closed(lambda x, y: [x * y, disconnected_grad(x) + y, x])
    assert g.connection == [[True, False, True], [True, True, False]]


def test_pickle_keeps_equality_at_any_depth():
    def chain(x, y):
        for _ in range(3000):
            x = x + y
        return x

    g = closed(chain)
    again = pickle.loads(pickle.dumps(g))
    assert again == g and hash(again) == hash(g)
    assert again.run([np.zeros(1), np.ones(1)])[0] == 3000


def test_refusals_and_text():
    x, y = T.dvectors("x", "y")
    with pytest.raises(
        MissingInputError, match=r"needs y of type float64 vector, made at .*closed"
    ):
        ClosedGraph([x], [x * y])
    with pytest.raises(UnusedInputError, match="the input x is given more than once"):
        ClosedGraph([x, x], [x])
    assert repr(ClosedGraph([x, y], [x + y])) == "(x, y) -> (add)"
