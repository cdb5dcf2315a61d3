"""Print, PdbBreakpoint, Raise."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ParameterError
from symcomp.ifelse import ifelse
from symcomp.ops.control.debugging import PdbBreakpoint, Print, Raise
from symcomp.tests.harness import check


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_print_is_the_identity(dtype, capsys):
    check(lambda x: Print("p")(x), np.ones((2, 3), dtype), expected=np.ones((2, 3), dtype))
    assert "p __str__ = " in capsys.readouterr().out


def test_print_prints_attributes_and_calls_methods(capsys):
    x = T.dvector("x")
    f = symcomp.function([x], Print("x", attrs=("shape", "min"))(x).sum())
    f([3.0, 1.0])
    assert capsys.readouterr().out == "x shape = (2,)\nx min = 1.0\n"


@pytest.mark.parametrize("name", ["sort", "fill", "resize", "dump", "setflags", "clear", "nothing"])
def test_print_changes_nothing(name):
    """A method with side effects would change what the function computes."""
    with pytest.raises(ParameterError, match=f"Print: attrs has '{name}'; .*argmax"):
        Print("x", attrs=("shape", name))
    Print("x", attrs=(name,), global_fn=lambda op, value: None)  # knows what to do with them


def test_print_of_one_attribute_and_of_a_function(capsys):
    seen = []
    x = T.dvector("x")
    Print("x", "shape")(x).eval({x: [1.0]})
    Print("x", global_fn=lambda op, value: seen.append((op.message, value.copy())))(x).eval(
        {x: [5.0]}
    )
    assert capsys.readouterr().out == "x shape = (1,)\n" and seen == [("x", [5.0])]


def test_a_constant_is_printed_by_the_call(capsys):
    f = symcomp.function([], Print("two")(T.constant(2.0)) + 1)
    assert capsys.readouterr().out == ""
    f()
    f()
    assert capsys.readouterr().out.count("two __str__ = 2.0") == 2


def test_print_in_a_loop(capsys):
    states, _ = symcomp.scan(lambda s: Print("s")(s + 1), outputs_info=[T.zeros(())], n_steps=3)
    states.eval()
    assert capsys.readouterr().out == "s __str__ = 1.0\ns __str__ = 2.0\ns __str__ = 3.0\n"


def test_breakpoint_stops_when_the_condition_holds(monkeypatch):
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    x, y = T.dvectors("x", "y")
    a, b = PdbBreakpoint("large")(x.max() > 1, x, y)
    f = symcomp.function([x, y], [a * 2, b])
    f([0.0], [1.0])
    assert not stops
    doubled, same = f([3.0], [1.0])
    assert stops == [1] and doubled == [6.0] and same == [1.0]


def test_breakpoint_derivatives_and_types():
    values = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    check(lambda x, y: PdbBreakpoint("b")(x.sum() > 100, x * 1, y)[0], *values, expected=values[0])
    one = PdbBreakpoint("b")(T.bscalar("c"), T.dvector("x"))
    assert one.type == T.dvector("x").type
    with pytest.raises(symcomp.errors.DTypeError, match="real scalar"):
        PdbBreakpoint("b")(T.dvector("c"), T.dvector("x"))
    with pytest.raises(TypeError, match="at least one variable"):
        PdbBreakpoint("b")(T.bscalar("c"))


def test_raise_only_where_it_is_needed():
    x = T.dscalar("x")
    f = symcomp.function([x], ifelse(x > 0, x, Raise("negative", ValueError)(x)))
    assert f(2.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        f(-2.0)
    with pytest.raises(NotImplementedError):
        Raise()(x).eval({x: 1.0})
