"""Functions of lines in C give what they give with NumPy."""

from types import SimpleNamespace

import numpy as np
import pytest

from symcomp.codegen.kernel import whole_kernel
from symcomp.ops.exact import WIDER
from symcomp.ops.formula import Formula, Result, Step, folded_axes
from symcomp.ops.pick import Pick, Put
from symcomp.ops.softmax import (
    Centred,
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    Softmax,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.tests.codegen.running import addresses, attempt

FLOATS = ("float16", "float32", "float64")
SHAPES = ((3, 4, 5), (60, 10, 1), (1, 7, 130), (2, 600, 3), (0, 3, 2), (2, 0, 3), (1, 1, 1))
# Exponentials have errors below 2 ulp; their quotients, of the next binade, twice those of both.
ULPS = 6


def formula_of(function, dtypes):
    """Of one step."""
    dtype = dtypes[-1] if isinstance(function, Put) else dtypes[0]
    step = Step(function, tuple(range(len(dtypes))), dtype)
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes), folded_axes(function)),))


class Compiled:
    """Formulas with the literals of their kernels, and what runs them."""

    def __init__(self, formulas, patterns):
        wholes = [whole_kernel(f, p) for f, p in zip(formulas, patterns, strict=True)]
        assert all(whole is not None for whole in wholes)
        self.functions = addresses([whole.kernel for whole in wholes])
        self.formulas = formulas
        self.literals = [whole.kernel.literals for whole in wholes]

    def attempt(self, i, *values):
        formula = SimpleNamespace(
            patterns=self.formulas[i].patterns, results=self.formulas[i].results,
            dtypes=self.formulas[i].dtypes, literals=self.literals[i],
        )  # fmt: skip
        return attempt(self.functions[i], formula, values)

    def __call__(self, i, *values):
        status, results = self.attempt(i, *values)
        assert status == 0
        return results


def compiled(formulas):
    """Kernels that stretch no axis."""
    return Compiled(formulas, [[(False,) * 3] * len(f.inputs) for f in formulas])


def agree(got, want, scale=0, note=""):
    """NaN and infinity alike, and the rest within some ulps of the larger of it and scale."""
    assert got.shape == want.shape
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        unit = np.spacing(np.maximum(np.abs(want), scale).astype(want.dtype))
        gap = np.abs(got.astype(np.longdouble) - want) / unit
        good = same | (np.isfinite(want) & (gap <= ULPS))
    assert good.all(), (note, got.shape, got[~good][:5], want[~good][:5], gap[~good][:5])


def wide(function, *values):
    """What it gives in the next wider type."""
    with np.errstate(all="ignore"):
        return function.perform(*(v.astype(WIDER[v.dtype.name]) for v in values))


def lines_of(shape, dtype, rng, special=False):
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    if special and x.size:
        at = rng.random(shape)
        x[at < 0.02] = np.nan
        x[(at > 0.02) & (at < 0.05)] = np.inf
        x[at > 0.6] = -np.inf
        x[-1:] = -np.inf
    return x


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("make", [Softmax, LogSoftmax])
def test_softmax(make, dtype):
    rng = np.random.default_rng(3)
    functions = [make(axis) for axis in range(3)]
    run = compiled([formula_of(f, [dtype]) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for v in (x, np.asfortranarray(x), np.repeat(x, 2, axis=2)[::-1, :, ::2]):
                for i, function in enumerate(functions):
                    agree(run(i, v)[0], wide(function, v))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_softmax_keeps_digits_where_one_dominates(dtype):
    x = np.asarray([[[0, -30, -30]], [[100, 99, -1e4]], [[7, 7, -20]], [[3, 3, 3]]], dtype)
    x[0, 0, 1] = -60
    (got,) = compiled([formula_of(LogSoftmax(2), [dtype])])(0, x)
    want = LogSoftmax(2).perform(x)
    assert got[0, 0, 0] != 0
    agree(got, want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_lines(dtype):
    rng = np.random.default_rng(4)
    functions = [WeightedSoftmax((1,)), WeightedSoftmax((0, 2)), Centred((1,)), Centred((0, 2))]
    functions += [Centred((1,), transposed=True), Centred((0, 2), transposed=True)]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for shape in SHAPES:
        for special in (False, True):
            x = lines_of(shape, dtype, rng, special)
            for i, function in enumerate(functions):
                axes = function.axes
                w = np.abs(lines_of(shape, dtype, rng))
                w[rng.random(shape) < 0.2] = 0
                if isinstance(function, Centred):
                    total = w.sum(axis=axes, keepdims=True, dtype="float64")
                    w = (w / np.where(total == 0, 1, total)).astype(dtype)
                want = wide(function, x, w)
                with np.errstate(all="ignore"):
                    part = np.abs(x) + np.sum(np.abs(x * w), axis=axes, keepdims=True)
                scale = part if isinstance(function, Centred) else 0
                agree(run(i, x, w)[0], want, np.nan_to_num(scale, posinf=0), (function, special))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_centred_where_one_weight_is_nearly_one(dtype):
    small = np.asarray(1e-12, dtype)
    w = np.asarray([[[1 - small, small / 2, small / 2]]], dtype)
    x = np.asarray([[[3, 5, -4]]], dtype)
    functions = [Centred((2,)), Centred((2,), transposed=True)]
    run = compiled([formula_of(f, [dtype] * 2) for f in functions])
    for i, function in enumerate(functions):
        agree(run(i, x, w)[0], function.perform(x, w))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_logarithms_of_sums(dtype):
    rng = np.random.default_rng(5)
    one = [LogSumExp((1,)), LogSumExp((0, 2)), LogMeanExp((1,)), LogMeanExp((0, 1, 2))]
    two = [WeightedLogSumExp((1,)), WeightedLogSumExp((0, 2))]
    run = compiled(
        [*(formula_of(f, [dtype]) for f in one), *(formula_of(f, [dtype] * 2) for f in two)]
    )
    for shape in SHAPES:
        for special in (False, True):
            x, w = lines_of(shape, dtype, rng, special), np.abs(lines_of(shape, dtype, rng))
            w[rng.random(shape) < 0.2] = 0
            for i, function in enumerate((*one, *two)):
                values = (x, w) if function in two else (x,)
                agree(run(i, *values)[0], wide(function, *values), 0, (function, special))


def test_logarithms_of_sums_where_parts_cancel():
    x = np.log(np.asarray([[[0.25, 0.5, 0.25]]])).astype("float32")
    for function in (LogSumExp((2,)), WeightedLogSumExp((2,))):
        values = (x,) if isinstance(function, LogSumExp) else (x, np.ones_like(x))
        (got,) = compiled([formula_of(function, ["float32"] * len(values))])(0, *values)
        agree(got, wide(function, *values))


INDICES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float64"])
def test_pick_and_put(dtype, axis):
    rng = np.random.default_rng(6)
    pick, put = Pick((axis,)), Put((axis,))
    stretched = tuple(a == axis for a in range(3))
    x_pattern = (False,) * 3
    run = Compiled(
        [
            *(formula_of(pick, [dtype, index]) for index in INDICES),
            *(formula_of(put, [dtype, index, dtype]) for index in INDICES),
        ],
        [[x_pattern, stretched]] * len(INDICES)
        + [[x_pattern, stretched, stretched]] * len(INDICES),
    )
    for shape in ((3, 4, 5), (2, 100, 2), (0, 3, 2), (1, 1, 1)):
        x = lines_of(shape, dtype, rng, special=np.dtype(dtype).kind == "f")
        below = tuple(1 if a == axis else n for a, n in enumerate(shape))
        for i, kind in enumerate(INDICES):
            n = shape[axis]
            low = -n if np.dtype(kind).kind == "i" else 0
            index = rng.integers(low, max(n, low + 1), below).astype(kind)
            y = lines_of(below, dtype, rng)
            bad = n == 0 and index.size > 0
            for k, values in ((i, (x, index)), (i + len(INDICES), (x, index, y))):
                status, got = run.attempt(k, *values)
                assert status == int(bad)
                if not bad:
                    function = pick if k == i else put
                    np.testing.assert_array_equal(got[0], function.perform(*values))
            for wrong in (n, n + 2, *((-n - 1,) if low else ())):
                if index.size:
                    index = index.copy()
                    index.flat[-1] = wrong
                    assert run.attempt(i, x, index)[0] == 1
