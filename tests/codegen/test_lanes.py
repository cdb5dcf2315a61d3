"""Reductions whose totals stay in registers: lengths about those of rows, and where arrays lie."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from symcomp.codegen.kernel import kernel_of
from symcomp.tests.codegen.running import addresses, call, compute
from symcomp.tests.codegen.test_reductions import agree, reduction, values

LENGTHS = (*range(1, 70), 96, 127, 128, 129, 255, 256, 257, 511, 513, 1023, 1025)
LENGTHS += (8191, 8192, 8193, 16_500, 40_000)
NAMES = ("sum", "prod", "max", "min")
DTYPES = ("int8", "int16", "int32", "int64", "float32", "float64")


@cache
def compiled():
    """Return each reduction and what runs it, by name, axis and dtype; all are compiled at once."""
    keys = [*product(NAMES, (0, 1), DTYPES)]
    formulas = [reduction(name, (axis,), dtype) for name, axis, dtype in keys]
    functions = addresses([kernel_of(formula, [(False, False)]) for formula in formulas])
    return dict(zip(keys, zip(formulas, functions, strict=True), strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_length(name, dtype):
    rng = np.random.default_rng(3)
    formula, function = compiled()[name, 1, dtype]
    for n in LENGTHS:
        x = values(dtype, (3, n), rng)
        if name == "prod" and x.dtype.kind == "f":
            x = (x ** (1 / n)).astype(dtype)
            want = x.astype("longdouble").prod(1)
            rounding = n * np.finfo(dtype).eps
            np.testing.assert_allclose(call(function, formula, [x])[0], want, rounding)
            continue
        agree(call(function, formula, [x])[0], formula.steps[0].function.perform(x), n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("n", [1, 7, 16, 63, 64, 65, 128, 200, 300])
def test_nan_at_every_place(n, name, dtype):
    formula = reduction(name, (1,), dtype)
    x = np.random.default_rng(n).standard_normal((2 * n, n)).astype(dtype)
    x[np.arange(n), np.arange(n)] = np.nan
    want = formula.steps[0].function.perform(x)
    assert np.isnan(want[:n]).all() and not np.isnan(want[n:]).any()
    np.testing.assert_array_equal(compute(formula, x)[0], want)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("rows", [3, 63, 64, 65, 79, 80, 85, 130, 333])
def test_rows_at_once(rows, name, dtype):
    formula = reduction(name, (0,), dtype)
    x = values(dtype, (rows, 37), np.random.default_rng(rows))
    got, want = compute(formula, x)[0], formula.steps[0].function.perform(x)
    np.testing.assert_allclose(got, want, rtol=2e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("columns", [1023, 1024, 1500, 4096, 9001])
def test_results_do_not_depend_on_where_arrays_lie(columns, dtype):
    x = values(dtype, (70, columns), np.random.default_rng(columns))
    for name, axis in (("sum", 0), ("max", 0), ("sum", 1), ("max", 1)):
        formula, function = compiled()[name, axis, dtype]
        found = []
        for offset in range(0, 64, 16):
            memory = np.zeros(x.nbytes + 128, np.uint8)
            start = -memory.ctypes.data % 64 + offset
            moved = memory[start : start + x.nbytes].view(dtype).reshape(x.shape)
            moved[...] = x
            assert moved.ctypes.data % 64 == offset
            found.append(call(function, formula, [moved])[0])
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])
        agree(found[0], formula.steps[0].function.perform(x), (name, axis))
