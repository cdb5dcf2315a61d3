"""Complex numbers in kernels: what rounds each part once bit for bit as NumPy's; products, which
NumPy rounds in one way on some processors and in another on others, functions and sums within a few
units in the last place of the larger part."""

import itertools
import warnings

import numpy as np
import pytest

from symcomp.codegen.kernel import kernel_of
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.tests.codegen.running import addresses, call, one_step

EXACT = {
    "add", "clip", "complex", "conj", "eq", "ge", "gt", "guarded", "identity", "imag", "isfinite",
    "isinf", "isnan", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "maximum", "minimum", "neg", "neq", "real", "round_half_to_even", "second", "sub", "switch",
}  # fmt: skip
ARITY = {"add": 3}
# Functions of C near their zeros and cuts lose as much as NumPy's, which are the same or others.
ULPS = 8


def cases(dtype):
    """(row, dtypes, formula, kernel) where the first argument, or the result, has this dtype."""
    part = "float32" if dtype == "complex64" else "float64"
    for name, make in ROWS.items():
        with_parameters = ("cast", "spherical_jn", "series_remainder", "product_remainder")
        if name in (*with_parameters, "scaled_product", "log_scaled_product"):
            continue  # with parameters; of real numbers, or in tests of their own
        row = make()
        arity = row.arity or ARITY[name]
        for dtypes in {(dtype,) * arity, (dtype, *(part,) * (arity - 1)), (part,) * arity}:
            try:
                formula = one_step(row, dtypes)
            except (DTypeError, TypeError):
                continue
            if dtype in (*dtypes, formula.steps[0].dtype):
                yield row, dtypes, formula, kernel_of(formula, [(False,)] * arity)


def values_of(dtype, count, rng):
    """Return ordinary numbers; long arrays begin with zeros, infinities and NaN."""
    value = (rng.standard_normal(count) * 2).astype(dtype)
    if np.dtype(dtype).kind == "c":
        value = value + (1j * rng.standard_normal(count)).astype(dtype)
        special = [0, complex(-0.0, 0.0), 1j, -1, np.nan, complex(np.inf, 1), complex(2, -np.inf)]
    else:
        special = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf]
    if count > 20:
        value[: len(special)] = rng.permutation(np.array(special, dtype))
    return value.astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_rows(dtype):
    rng = np.random.default_rng(7)
    found = [case for case in cases(dtype) if case[3] is not None]
    names = {row.name for row, *_ in found}
    assert names >= {*EXACT, "mul", "sqr", "true_div", "abs", "exp", "log", "sqrt", "sin", "tanh"}
    for (row, dtypes, formula, _), function in zip(
        found, addresses([case[3] for case in found]), strict=True
    ):
        for count in (0, 1, 3, 64, 301):
            values = [values_of(d, count, rng) for d in dtypes]
            (got,) = call(function, formula, values)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = np.asarray(row.function(*values), got.dtype)
            assert got.dtype == want.dtype
            if row.name in EXACT:
                np.testing.assert_array_equal(got, want, err_msg=f"{row.name}{dtypes}")
            else:
                check_close(got, want, f"{row.name}{dtypes}")


def check_close(got, want, name):
    if want.dtype.kind == "c" and name.startswith(("mul", "sqr", "add", "true_div", "abs", "sgn")):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
    fine = np.isfinite(want)
    gap = np.abs(got[fine] - want[fine])
    limit = ULPS * np.finfo(want.dtype).eps * np.maximum(np.abs(want[fine]), 1e-30)
    assert (gap <= limit).all(), (name, got[fine][gap > limit], want[fine][gap > limit])


def test_nothing_stays_in_numpy():
    without = {row.name for row, *_, kernel in cases("complex128") if kernel is None}
    assert not without


def in_one_unit(formulas, rank):
    """Compile the functions of formulas of one input together."""
    kernels = [kernel_of(formula, [(False,) * rank]) for formula in formulas]
    assert None not in kernels
    return zip(formulas, addresses(kernels), strict=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_reductions(dtype):
    rng = np.random.default_rng(8)
    formulas = []
    for name, axes in itertools.product(("sum", "prod", "any", "all"), ((0,), (1,), (0, 1))):
        kind = "bool" if name in ("any", "all") else dtype
        step = Step(Reduce(REDUCTIONS[name], axes), (0,), kind)
        formulas.append(Formula((dtype,), (), (step,), (Result(1, axes),)))
    for formula, function in in_one_unit(formulas, 2):
        reduce = formula.steps[0].function
        for shape in ((2, 3), (70, 40), (3, 5000)):
            value = np.exp(1j * rng.normal(size=shape)).astype(dtype)
            value[0, 0] = 0 if reduce.reduction.name == "all" else value[0, 0]
            check_reduction(formula, function, value)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("count", [1, 2, 3, 33, 300])
def test_products_with_infinities(dtype, count):
    """Parts of a product that have no factors leave them as they are."""
    formula = Formula(
        (dtype,), (), (Step(Reduce(REDUCTIONS["prod"], (0,)), (0,), dtype),), (Result(1, (0,)),)
    )
    ((_, function),) = in_one_unit([formula], 1)
    for place, factor in itertools.product({0, count // 2, count - 1}, (1, 1 + 1j)):
        value = np.ones(count, dtype)
        value[place], value[place - 1] = complex(np.inf, 1), factor
        if count == 1:
            value[0] = complex(np.inf, 1)
        want = complex(np.inf, np.inf if factor != 1 and count > 1 else 1)
        assert call(function, formula, [value])[0] == want


def check_reduction(formula, function, value):
    step = formula.steps[0]
    name, axes = step.function.reduction.name, step.function.axes
    for x in (value, value.T.copy().T, value[::-1, ::-1], np.repeat(value, 2, 1)[:, ::2]):
        (got,) = call(function, formula, [x])
        want = getattr(np, name)(x.astype("complex128"), axis=axes).astype(step.dtype)
        scale = np.sqrt(value.size) if name == "prod" else value.size / 4
        tolerance = np.finfo(x.dtype).eps * max(scale, 4)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_casts():
    kinds = ("bool", "int16", "float16", "float32", "float64", "complex64", "complex128")
    formulas = []
    for given, wanted in itertools.product(kinds, kinds):
        if "c" in (np.dtype(given).kind, np.dtype(wanted).kind):
            try:
                formulas.append(one_step(ROWS["cast"](wanted), (given,)))
            except (DTypeError, TypeError):
                assert np.dtype(given).kind == "c"
    assert len(formulas) > 15
    value = values_of("complex128", 30, np.random.default_rng(9))[7:]
    for formula, function in in_one_unit(formulas, 1):
        given, wanted = formula.inputs[0], formula.steps[0].dtype
        x = value.astype(given) if np.dtype(given).kind == "c" else value.real.astype(given)
        (got,) = call(function, formula, [x])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(got, x.astype(wanted))
