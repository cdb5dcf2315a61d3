"""Records behave as frozen dataclasses do, and work together with them."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field
from typing import ClassVar

import pytest

from symcomp.core.op import Op
from symcomp.core.record import record, replace


@record
class Point:
    """Two numbers."""

    kind: ClassVar[str] = "point"
    x: float
    y: float = 0.0


@record
class Named(Point):
    name: str = field(default="none", compare=False, repr=False)
    marks: list = field(default_factory=list, compare=False)


@record
class Positive:
    x: float

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")

    def __repr__(self) -> str:
        return f"+{self.x}"


@record
class Empty:
    """No fields."""


@record(eq=False)
class Itself:
    x: int


@record(frozen=False)
class Counter:
    """May change."""

    count: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TwinOfPoint:
    x: float
    y: float = 0.0


def test_fields_are_set_by_position_name_and_default() -> None:
    assert asdict(Point(1.0)) == {"x": 1.0, "y": 0.0}
    assert asdict(Point(y=2.0, x=1.0)) == {"x": 1.0, "y": 2.0}
    first, second = Named(1.0), Named(1.0)
    assert (first.name, first.marks) == ("none", [])
    assert first.marks is not second.marks


@pytest.mark.parametrize(
    ("args", "given", "said"),
    [
        ((), {}, r"Point\(\) needs x"),
        ((1, 2, 3), {}, r"Point\(\) takes 2 arguments, got 3"),
        ((1,), {"z": 3}, r"Point\(\) has no field z"),
        ((1,), {"x": 3}, r"Point\(\) has no field x, or was given it twice"),
    ],
)
def test_wrong_fields_are_refused(args: tuple, given: dict, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Point(*args, **given)


def test_equal_fields_of_one_class_make_equal_records() -> None:
    assert Point(1.0) == Point(1.0, 0.0)
    assert hash(Point(1.0)) == hash(Point(1.0, 0.0))
    assert Point(1.0) != Point(1.0, 1.0)
    assert Point(1.0) != Named(1.0)
    assert Named(1.0, name="a") == Named(1.0, name="b")
    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1
    assert Itself(1) != Itself(1)


def test_it_never_changes() -> None:
    point = Point(1.0)
    with pytest.raises(FrozenInstanceError):
        point.x = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1.0)


def test_one_that_is_not_frozen_changes_and_has_no_hash() -> None:
    counter, other = Counter(), Counter()
    counter.count += 1
    counter.names.append("a")
    assert repr(counter) == "Counter(count=1, names=['a'])"
    assert repr(other) == "Counter(count=0, names=[])"
    assert counter != other == Counter()
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    del counter.count
    assert counter.count == 0  # the default, as in a dataclass
    assert asdict(pickle.loads(pickle.dumps(other))) == {"count": 0, "names": []}


@pytest.mark.parametrize("replace", [replace, dataclasses.replace])
def test_a_copy_has_other_fields(replace) -> None:
    assert replace(Point(1.0, 2.0), x=3.0) == Point(3.0, 2.0)
    assert repr(replace(Counter(1), names=["b"])) == "Counter(count=1, names=['b'])"
    with pytest.raises(TypeError, match="z"):
        replace(Point(1.0), z=1.0)


def test_methods_of_the_class_stay() -> None:
    assert repr(Positive(2.0)) == "+2.0"
    with pytest.raises(ValueError, match="negative"):
        Positive(-1.0)
    with pytest.raises(ValueError, match="negative"):
        replace(Positive(1.0), x=-1.0)


def test_it_reads_as_a_dataclass() -> None:
    assert repr(Point(1.0)) == repr(TwinOfPoint(1.0)).replace("TwinOfPoint", "Point")
    assert inspect.signature(Point).parameters.keys() == {"x", "y"}
    assert inspect.signature(Point).parameters["y"].default == 0.0
    assert repr(Named(1.0)) == "Named(x=1.0, y=0.0, marks=[])"
    assert Point.kind == "point"
    match Point(3.0):
        case Point(x, y):
            assert (x, y) == (3.0, 0.0)


def test_dataclasses_may_derive_from_it() -> None:
    @dataclass(frozen=True)
    class Solid(Point):
        z: float = 1.0

    assert Solid(1.0, z=2.0) == replace(Solid(1.0), z=2.0)
    assert repr(Solid(1.0)).endswith("Solid(x=1.0, y=0.0, z=1.0)")


def test_it_derives_from_no_other_dataclass() -> None:
    @dataclass(frozen=True)
    class Base:
        x: int

    with pytest.raises(TypeError, match=r"record: Derived derives from Base, a dataclass that"):

        @record
        class Derived(Base):
            y: int


def test_copies_are_equal() -> None:
    point = Named(1.0, 2.0, "p")
    for twin in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert twin == point
        assert twin.name == "p"
    assert asdict(replace(point, x=3.0)) == {"x": 3.0, "y": 2.0, "name": "p", "marks": []}


def test_an_op_may_be_either() -> None:
    @record
    class OneWay(Op):
        axis: int

    @dataclass(frozen=True)
    class OtherWay(Op):
        axis: int

    assert str(OneWay(2)) == "OneWay{axis=2}"
    assert str(OtherWay(2)) == "OtherWay{axis=2}"
    assert OneWay(2) == OneWay(2) != OtherWay(2)


def test_signatures_of_instances_are_of_their_calls():
    @record
    class Adder:
        amount: int

        def __call__(self, x, y=0):
            return x + y + self.amount

    assert list(inspect.signature(Adder).parameters) == ["amount"]
    assert list(inspect.signature(Adder(1)).parameters) == ["x", "y"]
