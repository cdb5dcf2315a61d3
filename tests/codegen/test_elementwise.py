"""Kernels of elementwise formulas: strides, broadcasting, several results, in place."""

import itertools
from functools import cache

import numpy as np
import pytest

from symcomp.codegen.kernel import kernel_of
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.tests.codegen.running import addresses, call, compute, literal, patterns_of


def row(name, *parameters):
    return ROWS[name](*parameters)


def gated(dtype="float64"):
    """t = 2 x + y - x; (t where t > x, else y), t."""
    steps = (
        Step(row("mul"), (0, 2), dtype),
        Step(row("add"), (3, 1), dtype),
        Step(row("sub"), (4, 0), dtype),
        Step(row("gt"), (5, 0), "bool"),
        Step(row("switch"), (6, 5, 1), dtype),
    )
    return Formula((dtype, dtype), (literal(2, dtype),), steps, (Result(7), Result(5)))


def gated_by_hand(x, y):
    t = x * x.dtype.type(2) + y - x
    return [np.where(t > x, t, y), np.asarray(t)]


@cache
def gated_matrices(dtype):
    """Return what runs the formula of two matrices, by which of their axes are stretched."""
    formula, axes = gated(dtype), [*itertools.product((False, True), repeat=2)]
    patterns = [*itertools.product(axes, repeat=2)]
    functions = addresses([kernel_of(formula, pair) for pair in patterns])
    return dict(zip(patterns, functions, strict=True))


def agree(formula, by_hand, *values, compute=compute):
    before = [v.copy() for v in values]
    for got, want in zip(compute(formula, *values), by_hand(*values), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    for old, value in zip(before, values, strict=True):
        np.testing.assert_array_equal(old, value)


LAYOUTS = {
    "contiguous": lambda x: x,
    "columns": np.asfortranarray,
    "reversed": lambda x: x[::-1],
    "every other": lambda x: x[::2, ::3],
    "transposed": lambda x: x.T,
    "negative steps": lambda x: x[::-2, ::-1],
    "one repeated": lambda x: np.broadcast_to(x[:1, :1], (31, 17)),
    "row repeated": lambda x: np.broadcast_to(x[:1], (31, x.shape[1])),
    "empty": lambda x: x[:, :0],
    "one row": lambda x: x[:1],
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_and_broadcasting(layout, dtype):
    def compute(formula, *values):
        return call(gated_matrices(dtype)[tuple(patterns_of(values))], formula, values)

    rng = np.random.default_rng(4)
    x = LAYOUTS[layout]((rng.standard_normal((65, 133)) * 9).astype(dtype))
    for shape in (x.shape, (1, x.shape[1]), (x.shape[0], 1), (1, 1)):
        y = (rng.standard_normal(shape) * 9).astype(dtype)
        agree(gated(dtype), gated_by_hand, x, y, compute=compute)
        agree(gated(dtype), gated_by_hand, y, x, compute=compute)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2,), (513,), (3, 0, 4), (2, 1, 3, 1, 5)])
def test_ranks(shape):
    x = np.arange(np.prod(shape, dtype=int), dtype="float64").reshape(shape)
    agree(gated(), gated_by_hand, x, np.asarray(x + 1))


def test_many_axes_in_any_order():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((4, 5, 6, 7))
    y = rng.standard_normal((7, 1, 4, 6)).transpose(2, 1, 3, 0)
    agree(gated(), gated_by_hand, x[:, ::-1], y)
    agree(gated(), gated_by_hand, x.transpose(3, 1, 0, 2), y.transpose(3, 1, 0, 2))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint16", "int8"])
def test_elements_that_lie_far_apart(dtype):
    """Elements of a row at multiples of 1024 bytes, or many of them: blocks are narrow."""
    rng, length = np.random.default_rng(8), 1024 // np.dtype(dtype).itemsize
    for shape in ((70, length), (33, 2 * length), (20, 4100), (3, 45, length), (45, 3, length)):
        for order in itertools.permutations(range(len(shape))):
            x = (rng.standard_normal(shape) * 9).astype(dtype).transpose(order)
            y = (rng.standard_normal(x.shape) * 9).astype(dtype)
            agree(gated(dtype), gated_by_hand, x, y)
            agree(gated(dtype), gated_by_hand, y[:, ::-1], x[:, ::-1])
            agree(gated(dtype), gated_by_hand, x, y[:1])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_that_lie_far_apart(dtype):
    rng = np.random.default_rng(10)
    x, y = (rng.standard_normal((2, 45, 64)) + 1j * rng.standard_normal((2, 45, 64))).astype(dtype)
    formula = Formula((dtype,) * 2, (), (Step(row("sub"), (0, 1), dtype),), (Result(2),))
    agree(formula, lambda x, y: [x - y], x.T, np.ascontiguousarray(y.T))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_that_lie_far_apart(dtype):
    rng, formula = np.random.default_rng(9), gated(dtype)
    x, y = rng.standard_normal((2, 45, 256)).astype(dtype)
    outputs = [np.zeros((256, 45), dtype).T, rng.standard_normal((256, 45)).astype(dtype).T]
    (function,) = addresses([kernel_of(formula, patterns_of([x, y]))])
    call(function, formula, [x, y], outputs)
    for got, want in zip(outputs, gated_by_hand(x, y), strict=True):
        np.testing.assert_array_equal(got, want)
    # An output may overwrite an input that is read in the same order.
    other = outputs[1]
    want = gated_by_hand(x, other)
    call(function, formula, [x, other], [other, np.empty_like(x)])
    np.testing.assert_array_equal(other, want[0])


def test_results_of_any_layout():
    x, y = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    formula = gated()
    outputs = [np.zeros((4, 3)).T, np.zeros((6, 8))[::2, ::-2]]
    kernel = kernel_of(formula, patterns_of([x, y]))
    call(addresses([kernel])[0], formula, [x, y], outputs)
    for got, want in zip(outputs, gated_by_hand(x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_result_may_take_the_place_of_an_input():
    x, y = np.arange(1000.0), np.arange(1000.0)[::-1] * 3
    want = gated_by_hand(x, y)
    formula = gated()
    outputs = [y, x]
    call(addresses([kernel_of(formula, [(False,)] * 2)])[0], formula, [x, y], outputs)
    for got, expected in zip(outputs, want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_numbers_are_not_in_the_source():
    def times(factor):
        step = Step(row("mul"), (0, 1), "float64")
        return Formula(("float64",), (literal(factor, "float64"),), (step,), (Result(2),))

    two, three = (kernel_of(times(n), [(False,)]) for n in (2, 3))
    assert (two.name, two.source, two.needs) == (three.name, three.source, three.needs)
    assert [float(k.literals[0].array) for k in (two, three)] == [2, 3]
    assert translation_unit([two, three]) == translation_unit([two])
    np.testing.assert_array_equal(compute(times(3), np.arange(4.0))[0], np.arange(4.0) * 3)


def test_what_has_no_c_is_refused():
    bessel = Formula(("float64",), (), (Step(row("j0"), (0,), "float64"),), (Result(1),))
    assert kernel_of(bessel, [(False,)]) is None
    power = Formula(("int64",), (), (Step(row("pow"), (0, 0), "int64"),), (Result(1),))
    assert kernel_of(power, [(False,)]) is None
