"""Functions of lines in C give what they give with NumPy."""

import numpy as np
import pytest

from symcomp.codegen.kernel import whole_kernel
from symcomp.ops.elemwise import ROWS
from symcomp.ops.formula import Formula, Result, Step, folded_axes
from symcomp.ops.pick import Pick, Put
from symcomp.ops.reduce import REDUCTIONS, Reduce
from symcomp.ops.softmax import (
    Centred,
    LogMeanExp,
    LogSoftmax,
    LogSumExp,
    Softmax,
    WeightedLogSumExp,
    WeightedSoftmax,
)
from symcomp.tests.codegen.running import addresses, attempt, call, patterns_of

FLOATS = ("float16", "float32", "float64")
SHAPES = ((3, 4, 5), (60, 10, 1), (1, 7, 130), (2, 600, 3), (0, 3, 2), (2, 0, 3), (1, 1, 1))


def formula_of(function, dtypes):
    """Of one step."""
    dtype = dtypes[-1] if isinstance(function, Put) else dtypes[0]
    step = Step(function, tuple(range(len(dtypes))), dtype)
    return Formula(tuple(dtypes), (), (step,), (Result(len(dtypes), folded_axes(function)),))


def whole_patterns(values, full):
    """Axes of length 1 stretch only where others are longer."""
    return [
        tuple(n == 1 and m != 1 for n, m in zip(v.shape, full, strict=True)) for v in values
    ]


def compute(formula, *values):
    """The results of a formula by a kernel."""
    whole = whole_kernel(formula, patterns_of(values))
    assert whole is not None
    (function,) = addresses([whole.kernel])
    return call(function, with_literals(formula, whole), values)


class with_literals:
    """A formula with the literals of its kernel."""

    def __init__(self, formula, whole):
        self._formula, self.literals = formula, whole.kernel.literals

    def __getattr__(self, name):
        return getattr(self._formula, name)


def agree(got, want, scale, ulps):
    """NaN and infinity alike, and the rest within so many ulps of the larger of it and scale."""
    assert got.dtype == want.dtype and got.shape == want.shape
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    finite = np.isfinite(want) & np.isfinite(got)
    assert (same | finite).all(), (got[~(same | finite)], want[~(same | finite)])
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(want), scale).astype(want.dtype))
        gap = np.abs(got.astype(np.longdouble) - want) / unit
    assert (same | (gap <= ulps)).all(), float(np.nanmax(np.where(same, 0, gap)))


def lines_of(shape, dtype, rng, special=False):
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    if special and x.size:
        at = rng.random(shape)
        x[at < 0.02] = np.nan
        x[(at > 0.02) & (at < 0.05)] = np.inf
        x[at > 0.6] = -np.inf
        x.reshape(-1, x.shape[-1])[-1] = -np.inf
    return x


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("make", [Softmax, LogSoftmax])
def test_softmax(make, axis, dtype, special):
    rng = np.random.default_rng(3)
    function = make(axis)
    for shape in SHAPES:
        x = lines_of(shape, dtype, rng, special)
        (got,) = compute(formula_of(function, [dtype]), x)
        agree(got, function.perform(x), 0, 4)
