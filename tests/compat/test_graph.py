"""``theano.gof.graph`` and test values."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat import graph, test_values
from symcomp.compat.config import config
from symcomp.core.node import Constant

x, y, z = T.dvectors("x", "y", "z")
SUM = x + y
OUT = T.exp(SUM) * 2.0


def test_what_is_in_a_graph() -> None:
    assert [v for v in graph.inputs([OUT]) if not isinstance(v, Constant)] == [x, y]
    assert set(graph.ancestors([OUT])) >= {x, y, SUM, OUT}
    assert x not in graph.ancestors([OUT], blockers=[SUM])
    assert x not in graph.inputs([OUT], blockers=[SUM])
    nodes = graph.io_toposort([x, y], [OUT])
    assert nodes[0] is SUM.owner
    assert nodes[-1] is OUT.owner
    assert graph.list_of_nodes([x, y], [OUT]) == nodes
    assert graph.ops([SUM], [OUT]) == set(nodes) - {SUM.owner}
    assert y in graph.orphans([x], [OUT])
    assert x not in graph.orphans([x], [OUT])
    variables, orphans = graph.variables_and_orphans([x], [OUT])
    assert SUM in variables
    assert y in orphans
    assert graph.is_in_ancestors(OUT.owner, SUM.owner)
    assert not graph.is_in_ancestors(SUM.owner, OUT.owner)


def test_copies() -> None:
    (a, b), (out,) = graph.clone([x, y], [OUT])
    assert a is not x
    assert np.allclose(out.eval({a: [0.0], b: [0.0]}), 2.0)
    assert graph.clone([x, y], [OUT], copy_inputs=False)[0] == [x, y]
    copies = graph.clone_get_equiv([x, y], [OUT])
    assert copies[SUM.owner].outputs[0] is copies[SUM]


def test_equality() -> None:
    assert graph.equal_computations([x + y], [x + y])
    assert not graph.equal_computations([x + y], [y + x])
    assert graph.equal_computations([x + 1], [y + 1], [x], [y])
    assert not graph.equal_computations([x], [x, y])


def test_views_lead_to_what_they_show() -> None:
    assert graph.view_roots(x[1:][::-1]) == [x]
    assert graph.view_roots(SUM) == [SUM]


class TestTestValues:
    def test_of_inputs_and_of_what_is_computed(self) -> None:
        a, s = T.dvector("a"), symcomp.shared(np.ones(2), "s")
        a.tag.test_value = np.array([1.0, 2.0])
        assert np.array_equal(test_values.get_test_value(a), [1.0, 2.0])
        assert np.array_equal(test_values.get_test_value(a * 2 + s), [3.0, 5.0])
        assert test_values.get_test_value(3) == 3
        with pytest.raises(AttributeError, match="x of type float64 vector has no test value"):
            test_values.get_test_value(x + a)

    def test_a_test_value_of_the_wrong_type(self) -> None:
        a = T.dvector("a")
        a.tag.test_value = np.ones((2, 2))
        with pytest.raises(ValueError, match="1 axes"):
            test_values.get_test_value(a)

    def test_debug_values_follow_the_option(self) -> None:
        a = T.dvector("a")
        a.tag.test_value = np.array([1.0])
        assert test_values.get_debug_values(a) == []
        with config.change_flags(compute_test_value="warn"):
            assert test_values.get_debug_values(a, a * 2) == [(1.0, 2.0)]
            assert test_values.get_debug_values(x) == []
        with config.change_flags(compute_test_value="raise"), pytest.raises(AttributeError):
            test_values.get_debug_values(x)
