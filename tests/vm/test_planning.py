"""Facts about op classes for the planner, and the graphs in ops: tables that features extend."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.builders import OpFromGraph
from symcomp.compile.features import register_feature, unregister_feature
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.control.graph_op import GraphOp
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.vm.bodies import OP_BODIES, Bodies
from symcomp.vm.features import Feature
from symcomp.vm.guard import UNCHECKED
from symcomp.vm.op_planning import OP_PLANNING
from symcomp.vm.planning import UNPLANNED, Planning, entry_of

OP_BY_OP = symcomp.Mode().excluding("fusion")


@contextmanager
def feature(**tables: Any) -> Iterator[None]:
    """Compile with a feature that has these tables."""
    register_feature(Feature("of a test", **tables))
    try:
        yield
    finally:
        unregister_feature("of a test")


@record
class Doubled(Op):
    """z = 2 x, of a vector of float64."""

    def output_types(self, x: Any) -> list[TensorType]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        return 2 * x

    def infer_shape(self, node: Any, shapes: Any) -> list[Any]:
        return [shapes[0]]


class Renamed(OpFromGraph):
    """An OpFromGraph of a user's class."""


def into(function: Any) -> list[bool]:
    """Tell for each instruction whether it writes into an existing array."""
    return [bool(step.into) for step in function.program.instructions]


def test_an_entry_holds_for_subclasses() -> None:
    x = T.dvector("x")
    assert entry_of(Renamed([x], [T.exp(x)]), OP_BODIES) is OP_BODIES[GraphOp]
    assert entry_of(T.exp(x).owner.op, OP_BODIES) is None
    own = Bodies(lambda node, runs: runs[0])
    assert entry_of(Renamed([x], [T.exp(x)]), {**OP_BODIES, Renamed: own}) is own


def test_the_planning_of_a_feature_is_that_of_functions() -> None:
    x = T.dvector("x")
    z = T.sort(x) * 2.0
    assert any(into(symcomp.function([x], z, mode=OP_BY_OP)))
    with feature(planning={Elemwise: Planning()}):
        f = symcomp.function([x], z, mode=OP_BY_OP)
    assert not any(into(f))
    np.testing.assert_array_equal(f([2.0, 1.0]), [2.0, 4.0])


def test_users_ops_are_not_planned() -> None:
    x = T.dvector("x")
    node = Doubled()(x).owner
    assert UNCHECKED.planning_of(node) is UNPLANNED
    with feature(planning={Doubled: Planning(into=lambda node: np.copyto)}):
        f = symcomp.function([x], Doubled()(T.sort(x)))
    assert not any(into(f))
    np.testing.assert_array_equal(f([2.0, 1.0]), [2.0, 4.0])


def test_checking_compares_lengths() -> None:
    x, y = T.dmatrices("x", "y")
    node = T.dot(x, y).owner
    check = OP_PLANNING[type(node.op)].checking(node)
    assert check is not None
    check(np.ones((2, 3)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="do not fit"):
        check(np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_the_bodies_of_a_feature_are_those_of_functions(linker: str) -> None:
    x = T.dvector("x")
    op = Renamed([x], [T.exp(x) - 1.0])
    mode = symcomp.Mode(linker=linker)
    runs = []

    def bind(node: Any, bodies: Any) -> Any:
        runs.extend(bodies)
        return lambda value: bodies[0]([value])[0]

    with feature(bodies={Renamed: Bodies(bind)}):
        f = symcomp.function([x], op(x), mode=mode)
    (step,) = (s for s in f.program.instructions if s.node is not None)
    (body,) = step.bodies
    assert [s.node.op for s in body.program.instructions] == [T.expm1(x).owner.op]
    assert len(runs) == 1
    np.testing.assert_array_equal(f([1.0]), np.expm1([1.0]))
