"""Members added to classes, and observers of calls of ops."""

import pytest

import symcomp.tensor as T
from symcomp.core.applications import note_application, observe_applications, stop_observing
from symcomp.core.members import add_members
from symcomp.errors import GraphError


class Parent:
    def inherited(self):
        return "parent"


class Child(Parent):
    own = 1


def test_members_are_added_once_or_again():
    member = property(lambda self: 2)
    for _ in range(2):
        add_members(Child, {"two": member})
        assert Child().two == 2


def test_members_that_are_inherited_are_hidden():
    add_members(Child, {"inherited": lambda self: "child"})
    assert Child().inherited() == "child" and Parent().inherited() == "parent"


def test_only_named_members_are_replaced():
    with pytest.raises(GraphError, match="Child defines own itself"):
        add_members(Child, {"three": 3, "own": 2})
    assert Child.own == 1 and not hasattr(Child, "three")
    add_members(Child, {"own": 2}, replace=["own"])
    assert Child.own == 2


def test_observers_see_calls_and_nothing_else():
    seen = []
    observe_applications(seen.append)
    observe_applications(seen.append)
    try:
        x = T.vector("x")
        y = T.exp(x)
        y.owner.op.make_node(x)
    finally:
        stop_observing(seen.append)
    stop_observing(seen.append)
    T.exp(x)
    assert seen == [y.owner]
    note_application(y.owner)
    assert seen == [y.owner]
