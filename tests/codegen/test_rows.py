"""Every scalar function that has C gives in kernels what its row gives, for every dtype."""

import itertools
import warnings

import numpy as np
import pytest

from symcomp.codegen.kernel import kernel_of
from symcomp.config import config
from symcomp.errors import DTypeError
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.codegen.running import addresses, call, one_step

REAL = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
)  # fmt: skip
# Rows computed in the order and precision of NumPy; the others are within this many units in the
# last place of NumPy's functions, or of their C without the fused operations of this processor.
EXACT = {
    "abs", "add", "and_", "cast", "ceil", "ceil_intdiv", "clip", "conj", "deg2rad", "eq", "floor",
    "ge", "gt", "guarded", "identity", "imag", "int_div", "invert", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "le", "left_shift", "logical_and", "logical_not", "logical_or",
    "logical_xor", "lt", "maximum", "minimum", "mod", "mul", "neg", "neq", "or_", "rad2deg", "real",
    "reciprocal", "right_shift", "round_half_away_from_zero", "round_half_to_even", "second",
    "sgn", "sqr", "sqrt", "sqrt1p_minus_sqrt", "sqrt_difference", "square_difference", "sub",
    "switch", "true_div", "trunc", "xor",
}  # fmt: skip
# Parts that are cut at a digit.
CUT = ("cut_exp", "cut_exp_rest")
ULPS = 6
# Exact rows of several arguments, and these, are also tested on two dtypes, the first and that of
# some others: the conversions are the same for all functions.
MIXED = {"int64": "uint64", "float32": "int8"}
ALSO_MIXED = {"pow", "arctan2", "times_three"}
# For others, the installed loops are tested alone, not those of a file of its own, whose text for
# float32 is the same.
OWN_LOOPS = ("float64",)
# Optimizing the loops of others takes most of a minute, and is the same for all functions.
OPTIMIZED = ("float32", "float64", "int8")
# Functions of floats convert integers; all are tested for one of these dtypes.
CONVERTED = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
ARITY = {"add": 3}


def families():
    """Return all rows, those with parameters for each of these."""
    for name, make in ROWS.items():
        if name == "cast":
            for dtype in REAL:
                yield make(dtype)
        elif name == "spherical_jn":
            yield from (make(*orders) for orders in ((0,), (1,), (3,), (1, 1)))
        elif name == "series_remainder":
            yield from (make("exp", 1, 1, n) for n in range(4))
            yield from (make(function, 1, 1, n) for function in ("sinh", "tan") for n in (0, 2))
            yield from (make(function, 1, 1, 1) for function in ("arctan", "arcsin", "erf"))
            yield from (make(function, 2, 0, 0) for function in ("exp", "log1p", "cosh"))
            yield from (make(function, 3, 3, 1) for function in ("sin", "tanh", "arcsinh"))
            yield from (make(function, 4, 2, 0) for function in ("cos", "arctanh"))
        elif name == "product_remainder":
            yield make("sin", 1, 1, 1, 0, 1, 0, 0)
            yield make("log1p", 1, 2, 1, 1)
            yield make("tanh", 3, 1, 0, 1, 1, 3, 0, 2, 2, 0)
        elif name == "scaled_product":
            yield from (make(*sizes) for sizes in ((1, 2, 2), (1, 0, 3), (2, 1, 1)))
        elif name == "log_scaled_product":
            yield from (make(*sizes) for sizes in ((2, 1), (3, 0), (1, 2)))
        else:
            yield make()


def values_of(dtype, count, position, rng):
    """Ordinary, extreme and special values."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    if kind in "iu":
        limits = np.iinfo(dtype)
        ends = [0, 1, 2, 7, limits.max, limits.min, limits.max - 1]
        low = 0 if kind == "u" else -9
        values = rng.integers(low, 10, count).astype(dtype)
    else:
        ends = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, np.nan, np.inf, -np.inf, 30.0, -30.0, 1e-3]
        values = (rng.standard_normal(count) * rng.choice([0.1, 1, 8], count)).astype(dtype)
    for i, end in enumerate(ends * 4):
        values[(7 * i * (position + 1) + i // len(ends)) % count] = end
    return values


def cases(dtype):
    """(row, dtypes) with C, where the first argument has this dtype."""
    found = []
    for row in families():
        arity = row.arity or ARITY[row.name]
        is_mixed = row.name in EXACT | ALSO_MIXED
        mixed = {dtype, MIXED.get(dtype, dtype) if is_mixed else dtype}
        for others in itertools.product(sorted(mixed), repeat=arity - 1):
            dtypes = (dtype, *others)
            try:
                formula = one_step(row, dtypes)
            except (DTypeError, TypeError):
                continue
            is_float = np.dtype(formula.steps[-1].dtype).kind == "f"
            if dtype in CONVERTED and is_float and row.name not in EXACT:
                continue
            kernel = kernel_of(formula, [(False,)] * arity)
            if kernel is not None and (dtypes, row) not in [f[1:3] for f in found]:
                found.append((row.name, dtypes, row, formula, kernel))
    return found


def expected_of(row, formula, values):
    if row.name.startswith("round_half") and values[0].dtype.kind in "biu":
        # NumPy goes through floats, which do not hold all of them.
        return values[0].astype(formula.steps[0].dtype)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(row.function(*values), formula.steps[0].dtype)


def distance(got, want):
    """Return the distance in units in the last place of ``want``; 0 where both are NaN."""
    same = (got == want) | ((got != got) & (want != want))
    with np.errstate(all="ignore"):
        gap = np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(want))
    return np.where(same, 0, gap)


def not_positive(values):
    """Return values of which the first two are in the domain of exp_of_sum_rest."""
    return [v * 0 if v.dtype.kind in "bu" else -np.abs(v) for v in values[:2]] + values[2:]


def same_rests(got, want, values):
    """Tell where rounding errors of exp_of_sum agree to 2^-8 of its last place, but for the choice
    of one of two neighbours.
    """
    with np.errstate(all="ignore"):
        unit = np.spacing(np.exp(sum(v.astype(np.float64) for v in values)))
        gap = np.abs(got.astype(np.float64) - want) / unit
    return (got == want) | (np.minimum(gap, np.abs(gap - 1)) <= 2.0**-8) | same(got, want)


def same_parts(got, want, values):
    """Tell where parts of products that are cut at the last digit of a number agree, but for the
    choice of one of two neighbours of the product, or of the part.
    """
    with np.errstate(all="ignore"):
        x, y, w, bound = (v.astype(np.float64) for v in values)
        unit = np.spacing(np.abs(bound)) + np.spacing(np.abs(w * np.exp(x + y)))
        gap = np.abs(got.astype(np.float64) - want)
    return (gap <= 1.1 * unit) | (distance(got, want) <= ULPS)


def without_undefined(row, dtypes, values):
    """Casts of what the integers of C do not hold are undefined, as in NumPy."""
    if row.name != "cast" or np.dtype(dtypes[0]).kind != "f":
        return values
    target = np.dtype(row.parameters[0])
    if target.kind not in "iu":
        return values
    limits = np.iinfo(target)
    with np.errstate(all="ignore"):
        fits = (values[0] > max(limits.min, -1e4)) & (values[0] < min(limits.max, 1e4))
    return [np.where(fits & (values[0] >= min(limits.min, 0)), values[0], 0).astype(dtypes[0])]


def same(x, y):
    """Tell where numbers are equal, or both NaN."""
    return (x == y) | (np.isnan(x) & np.isnan(y))


@pytest.mark.parametrize("dtype", REAL)
def test_rows(dtype):
    rng = np.random.default_rng(5)
    found = cases(dtype)
    assert len(found) > 40
    with config.change_flags(cflags=config.cflags + ("" if dtype in OPTIMIZED else " -O0")):
        functions = addresses([case[-1] for case in found], own_loops=dtype in OWN_LOOPS)
    wrong = []
    for (name, dtypes, row, formula, _), function in zip(found, functions, strict=True):
        for count in (0, 1, 2, 7, 64, 523):
            values = [values_of(d, count, i, rng) if count else np.empty(0, d)
                      for i, d in enumerate(dtypes)]  # fmt: skip
            values = without_undefined(row, dtypes, values)
            if name in ("exp_of_sum_rest", *CUT):
                values = not_positive(values)
            want = expected_of(row, formula, values)
            (got,) = call(function, formula, values)
            assert got.dtype == want.dtype and got.shape == want.shape
            if want.dtype.kind == "c":
                good = same(got.real, want.real) & same(got.imag, want.imag)
            elif want.dtype.kind != "f":
                good = got == want
            elif name == "exp_of_sum_rest":
                good = same_rests(got, want, values)
            elif name in CUT:
                good = same_parts(got, want, values)
            else:
                good = distance(got, want) <= (0 if name in EXACT else ULPS)
            if not good.all():
                at = int(np.argmin(good))
                wrong.append((name, dtypes, [v[at] for v in values], got[at], want[at]))
                break
    assert not wrong, "\n".join(map(str, wrong))
