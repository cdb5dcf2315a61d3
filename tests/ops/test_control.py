"""ifelse and assertions: values, types, derivatives, laziness."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ifelse import ifelse
from symcomp.ops.control.conditions import IfElse
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape)


def test_ifelse_values_and_derivatives():
    for c in (0.0, 2.0):
        check(
            lambda c, x, y: ifelse(c, x * 2, y**2),
            np.float64(c),
            normal(3),
            normal(3),
            expected=lambda c, x, y: x * 2 if c else y**2,
        )
    check(
        lambda x, y: ifelse(T.constant(True), [x, y], [y, x]),
        normal(3),
        normal(3),
        expected=lambda x, y: [x, y],
    )
    x, y = T.dscalars("x", "y")
    z = ifelse(x > 0, x**3, y)
    assert float(symcomp.grad(symcomp.grad(z, x), x).eval({x: 2.0, y: 1.0})) == 12.0
    assert float(symcomp.Rop(symcomp.grad(z, x), x, T.constant(1.0)).eval({x: 2.0, y: 1.0})) == 12.0


def test_ifelse_types():
    assert ifelse(T.lscalar(), T.fvector(), T.dvector()).dtype == "float64"
    assert ifelse(T.lscalar(), T.tensor("a", shape=(2,)), T.tensor("b", shape=(3,))).type.shape == (
        None,
    )
    assert ifelse(T.lscalar(), 1, T.dscalar(), name="n").name == "n"
    with pytest.raises(DTypeError, match="must be a real scalar"):
        ifelse(T.dvector(), 1.0, 2.0)
    with pytest.raises(
        ShapeError, match="value 0 is float64 vector in one branch and float64 matrix"
    ):
        ifelse(T.lscalar(), T.dvector(), T.dmatrix())
    with pytest.raises(ShapeError, match="2 values in one branch, 1"):
        ifelse(T.lscalar(), [1, 2], [1])
    with pytest.raises(TypeError, match="one branch is a list"):
        ifelse(T.lscalar(), [1], 1)


def test_assert():
    x = T.dscalar("x")
    y = T.Assert("x must be positive")(x, x > 0)
    assert y.eval({x: 1.0}) == 1.0
    with pytest.raises(AssertionError, match="x must be positive"):
        y.eval({x: -1.0})
    assert symcomp.grad(y**2, x).eval({x: 3.0}) == 6.0
    check(lambda v: T.assert_op(v, v > -100), normal(3), expected=lambda v: v)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_conditions_of_every_dtype(dtype):
    c = T.scalar("c", dtype=dtype)
    if dtype[0] == "c":
        with pytest.raises(DTypeError, match="must be a real scalar"):
            ifelse(c, 1, 2)
        return
    z = ifelse(c, 1, 2)
    assert z.eval({c: np.asarray(1, dtype)}) == 1
    assert z.eval({c: np.asarray(0, dtype)}) == 2
    assert ifelse(True, 1, 2).eval() == 1


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_values_of_every_dtype(dtype):
    x, y = np.array([0, 1]).astype(dtype), np.array([1, 1]).astype(dtype)
    for c in (True, False):
        check(
            ifelse,
            np.asarray(c),
            x,
            y,
            expected=x if c else y,
            grad=dtype in ("float32", "float64", "complex128"),
        )


def test_common_dtype():
    for a, b, c in [
        ("int8", "float32", "float32"),
        ("bool", "int16", "int16"),
        ("float32", "complex64", "complex64"),
        ("uint8", "int8", "int16"),
    ]:
        x, y = T.vector("x", dtype=a), T.vector("y", dtype=b)
        z = ifelse(T.lscalar("c"), x, y)
        assert z.dtype == c
    assert ifelse(T.lscalar(), T.fscalar(), 1).dtype == "float32"
    values = np.arange(2, dtype="int8"), np.ones(2, "float32")
    check(lambda x, y: ifelse(True, x, y), *values, expected=lambda x, y: x.astype("float32"))


@pytest.mark.parametrize("c", [0, 1])
def test_lengths_that_differ(c):
    """Each branch has a shape of its own; so have the gradients."""
    x, y = normal(3), normal(4)
    check(ifelse, np.int64(c), x, y, expected=x if c else y)
    cond, a, b = T.lscalar("c"), T.dvector("a"), T.dvector("b")
    slopes = symcomp.grad(ifelse(cond, a**2, b**3).sum(), [a, b])
    expected = [2 * x if c else 0 * x, 0 * y if c else 3 * y**2]
    for slope, want in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(
            slope.eval({cond: c, a: x, b: y}, on_unused_input="ignore"), want
        )


@pytest.mark.parametrize("c", [0, 1])
def test_several_values(c):
    x, y = normal(2), normal(3, 1)

    def both(c, x, y):
        return ifelse(c, [x * 2, y * 3], [x**2, y**3])

    expected = [x * 2, y * 3] if c else [x**2, y**3]
    check(both, np.float32(c), x, y, expected=expected)
    check(lambda c, x, y: both(c, x, y)[0], np.float32(c), x, y, expected=expected[0])
    assert [v.name for v in ifelse(T.lscalar(), (1, 2), [3, 4], name="n")] == ["n0", "n1"]


@pytest.mark.parametrize("c", [0, 1])
def test_second_derivatives(c):
    x, y = normal(2), normal(2)
    check(
        lambda x, y: symcomp.grad(ifelse(T.constant(c), x**3 * y, y**4).sum(), y),
        x,
        y,
        expected=lambda x, y: x**3 if c else 4 * y**3,
        rtol=1e-11,
    )


def test_branches_within_branches():
    for a in (0, 1):
        for b in (0, 1):
            check(
                lambda x, y, a=a, b=b: ifelse(T.constant(a), ifelse(T.constant(b), x, x * y), y**2),
                np.float64(2.0),
                np.float64(3.0),
                expected=np.asarray((2.0 if b else 6.0) if a else 9.0),
            )


def failing(x):
    return T.assert_op(x, x < -100, msg="computed")


@pytest.mark.parametrize("mode", [None, "FAST_COMPILE", "FAST_RUN"])
def test_only_what_is_chosen_is_computed(mode):
    c, x = T.bscalar("c"), T.dscalar("x")
    z = ifelse(c, x * 2, failing(x) * 3)
    for outputs, want in ((z, 4.0), (symcomp.grad(z, x), 2.0)):
        f = symcomp.function([c, x], outputs, mode=mode, on_unused_input="ignore")
        assert f(1, 2.0) == want
        with pytest.raises(AssertionError, match="computed"):
            symcomp.function([c, x], z, mode=mode)(0, 2.0)


def test_a_chain_of_choices_has_a_program_of_its_length():
    x = T.dvector("x")
    y = x
    for _ in range(40):
        y = ifelse(y.sum() > 0, y * 0.5, y * -1.5)
    f = symcomp.function([x], [y, symcomp.grad(y.sum(), x)])
    value = np.array([1.0, -1.5])
    expected, slope = value, 1.0
    for _ in range(40):
        factor = 0.5 if expected.sum() > 0 else -1.5
        expected, slope = factor * expected, factor * slope
    for found, wanted in zip(f(value), (expected, np.full(2, slope)), strict=True):
        assert np.allclose(found, wanted)


def test_tangents_are_lazy():
    c, x = T.bscalar("c"), T.dscalar("x")
    z = ifelse(c, x**2, failing(x) ** 2)
    pushed = symcomp.Rop(z, x, T.constant(1.0))
    assert symcomp.function([c, x], pushed)(1, 3.0) == 6.0


def test_the_gradient_of_the_condition_is_zero():
    c, x = T.dscalar("c"), T.dscalar("x")
    z = ifelse(c, x, 2 * x)
    assert symcomp.grad(z, c).eval() == 0
    # Through a branch it has one.
    z = ifelse(c, c * x, x)
    assert symcomp.grad(z, c).eval({c: 2.0, x: 5.0}) == 5.0


def test_the_result_is_no_memory_of_an_argument():
    """IfElse is a view of a branch; what a function returns is the caller's own."""
    c, x, y = T.bscalar("c"), T.dvector("x"), T.dvector("y")
    f = symcomp.function([c, x, y], ifelse(c, x, y))
    given = np.ones(3)
    found = f(1, given, given * 2)
    found += 1
    np.testing.assert_array_equal(given, 1)


def test_types_of_nodes():
    x, c = T.dvector("x"), T.lscalar("c")
    with pytest.raises(ShapeError, match="3 values for 2 outputs, 4 are needed"):
        IfElse(2)(c, x, x, x)
    with pytest.raises(DTypeError, match="must be a real scalar"):
        IfElse(1)(x, x, x)
    with pytest.raises(ShapeError, match="value 0 is"):
        IfElse(1)(c, x, T.fvector())
    known = T.tensor(dtype="float64", shape=(2, 1))
    partly = T.tensor(dtype="float64", shape=(None, 1))
    assert ifelse(c, known, known).type.shape == (2, 1)
    assert ifelse(c, known, partly).type.shape == (None, 1)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_assert_dtypes(dtype):
    x = np.array([[1, 0]]).astype(dtype)
    grad = dtype in ("float32", "complex128")
    check(lambda v: T.Assert("no")(v, True, v.sum() > -1), x, expected=x, grad=grad)


def test_assert_conditions():
    x = T.dvector("x")
    one = T.Assert("one is not positive")(x, x > 0)
    assert one.eval({x: []}).shape == (0,)
    with pytest.raises(AssertionError, match="one is not positive"):
        one.eval({x: [1.0, -1.0]})
    with pytest.raises(AssertionError, match="second"):
        T.assert_op(x, x[0] > 0, x[1] > 0, msg="second").eval({x: [1.0, -1.0]})
    assert T.Assert("none")(x).eval({x: [1.0]}) == 1
    with pytest.raises(AssertionError, match="zero"):
        T.Assert("zero")(x, x.sum()).eval({x: [1.0, -1.0]})
