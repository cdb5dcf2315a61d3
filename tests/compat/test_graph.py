"""``theano.gof.graph`` and test values."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat import graph, plain, test_values
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
    assert nodes[1:] == [SUM.owner, OUT.owner.inputs[0].owner, OUT.owner]
    assert graph.list_of_nodes([x, y], [OUT]) == [nodes[i] for i in (3, 2, 0, 1)]
    assert graph.ops([SUM], [OUT]) == set(nodes) - {SUM.owner}
    assert y in graph.orphans([x], [OUT])
    assert x not in graph.orphans([x], [OUT])
    variables, orphans = graph.variables_and_orphans([x], [OUT])
    assert SUM in variables
    assert y in orphans
    assert graph.is_in_ancestors(OUT.owner, SUM.owner)
    assert not graph.is_in_ancestors(SUM.owner, OUT.owner)


class TestOrder:
    """A stack: the last variable given comes first, of the inputs of a node the first."""

    a, b, c = T.dscalars("a", "b", "c")
    product = b * c
    total = a + product

    def test_of_inputs(self) -> None:
        a, b, c = self.a, self.b, self.c
        assert graph.inputs([self.total, c]) == [c, a, b]
        assert graph.inputs(reversed([self.total, c])) == [a, b, c]
        assert graph.inputs(iter([a, self.product])) == [b, c, a]
        assert graph.inputs({self.product: None}) == [b, c]
        assert graph.inputs([self.total], blockers=[self.product]) == [a]

    def test_of_ancestors_and_of_what_lies_between(self) -> None:
        a, b, c, product, total = self.a, self.b, self.c, self.product, self.total
        assert graph.ancestors([total, c]) == [c, total, a, product, b]
        assert graph.variables([a, b], [total]) == [total, a, product, b, c]
        assert graph.orphans([a, b], [total]) == [c]
        assert graph.orphans([], [total, product]) == [b, c, a]
        assert graph.variables([a, b, T.dscalar()], [product]) == [product, b, c]

    def test_of_nodes(self) -> None:
        a, b, c = self.a, self.b, self.c
        first, second = T.exp(a), T.exp(b)
        last = first * c + second
        between = last.owner.inputs[0].owner
        # Variables without dependencies are found from the last input of the last output on.
        order = graph.io_toposort([a, b, c], [last])
        assert order == [second.owner, first.owner, between, last.owner]
        after = {second.owner: [first.owner]}
        order = graph.io_toposort([a, b, c], [last], after)
        assert order == [first.owner, second.owner, between, last.owner]
        assert graph.list_of_nodes([a, b, c], [last]) == [
            last.owner, between, second.owner, first.owner
        ]  # fmt: skip

    def test_of_anything(self) -> None:
        needs: dict[Any, list[str]] = {"d": ["b", "c"], "b": ["a"], "c": ["a"]}
        clients: dict[Any, list[Any]] = {}
        found = plain.general_toposort(["d"], lambda x: needs.get(x), clients=clients)
        assert found == ["a", "c", "b", "d"]
        assert clients == {"a": ["c", "b"], "b": ["d"], "c": ["d"]}
        with pytest.raises(ValueError, match="cycles"):
            plain.general_toposort(["a"], {"a": ["b"], "b": ["a"]}.get)
        spread = {1: [2, 3], 2: [4]}
        assert graph.stack_search([1], spread.get) == [1, 2, 3, 4]
        assert graph.stack_search([1], spread.get, "dfs", True) == (
            [1, 3, 2, 4], {2: [1], 3: [1], 4: [2]}
        )  # fmt: skip
        with pytest.raises(ValueError, match="'bfs' or 'dfs'"):
            graph.stack_search([1], spread.get, "best")


def test_copies() -> None:
    (a, b), (out,) = graph.clone([x, y], [OUT])
    assert a is not x
    assert np.allclose(out.eval({a: [0.0], b: [0.0]}), 2.0)
    assert graph.clone([x, y], [OUT], copy_inputs=False)[0] == [x, y]
    copies = graph.clone_get_equiv([x, y], [OUT])
    assert copies[SUM.owner].outputs[0] is copies[SUM]
    memo = {SUM: z}
    copies = graph.clone_get_equiv([z], [OUT], copy_inputs=False, memo=memo)
    assert copies is memo
    assert np.allclose(copies[OUT].eval({z: [0.0]}), 2.0)


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
