"""Strings of elementwise functions in several dtypes."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


@golden
def elementwise_float64() -> Golden:
    """Fuse an expression and its gradient into one pass."""
    x, y = T.dvectors("x", "y")
    z = T.tanh(x * y + 1) * T.exp(-(x**2)) / (1 + abs(y)) - T.sqrt(abs(x)) * T.log1p(y**2)
    return Golden([x, y], [z, *symcomp.grad(z.sum(), [x, y])], [numbers(9), numbers(9)])


@golden
def elementwise_float32() -> Golden:
    x, y = T.fmatrices("x", "y")
    z = T.nnet.sigmoid(x) * T.sin(y) + T.maximum(x, y) * T.arctan2(y, x) - T.expm1(x)
    arguments = [numbers(3, 4, dtype="float32")] * 2
    return Golden([x, y], [z, symcomp.grad(z.sum(), x)], arguments)


@golden
def elementwise_float16() -> Golden:
    """Compute in float32 and round after each step."""
    x, y = (T.tensor("float16", (None,), name=name) for name in "xy")
    z = T.exp(x) * y + x / (1 + y**2)
    return Golden([x, y], [z, z.sum()], [numbers(9, dtype="float16")] * 2)


@golden
def elementwise_bfloat16() -> Golden:
    """Compute in float32, between casts."""
    x, y = (T.tensor("bfloat16", (None,), name=name) for name in "xy")
    z = T.exp(x) * y + x
    return Golden([x, y], [z, z.sum()], [numbers(9, dtype="bfloat16")] * 2)


@golden
def elementwise_integers() -> Golden:
    """Divide, shift and mask integers of several widths."""
    i, j, b = T.lvector("i"), T.ivector("j"), T.bvector("b")
    u = T.tensor("uint8", (None,), name="u")
    outputs = [i // (j + 1), i % (j + 2), i / (j + 1), (i & j) | (b << 1), ~u ^ b, -b + u]
    outputs += [abs(i - 2 * j), T.cast(i * 100, "int8"), i**2 + T.sgn(j), T.maximum(i, u)]
    arguments = [numbers(7, dtype=dtype) for dtype in ("int64", "int32", "int8", "uint8")]
    return Golden([i, j, b, u], outputs, arguments)


@golden
def elementwise_complex() -> Golden:
    x, y = T.zvectors("x", "y")
    z = x * T.conj(y) + T.exp(x) / (1 + y)
    outputs = [z, abs(z), T.angle(z), T.real(z) - T.imag(x)]
    slope = symcomp.grad((abs(z) ** 2).sum(), x)
    return Golden([x, y], [*outputs, slope], [numbers(5, dtype="complex128")] * 2)


@golden
def comparisons() -> Golden:
    """Compare, choose and clip."""
    x, y, k = T.dvectors("x", "y", "k")
    inside = (x > y) & (x <= 1) | T.isnan(k)
    outputs = [T.switch(inside, x, -y), T.clip(x, -0.5, 0.5), T.where(T.eq(k, 0), 1.0, x / k)]
    outputs += [~inside, T.all(inside), T.any(T.neq(x, y)), T.sgn(x) * T.ceil(y)]
    return Golden([x, y, k], outputs, [numbers(7), numbers(7)[::-1].copy(), numbers(7)])


@golden
def special_functions() -> Golden:
    x = T.dvector("x")
    values = [T.erf(x), T.erfc(x), T.gammaln(x), T.digamma(x), T.erfinv(x / 4), T.gammainc(2.0, x)]
    slope = symcomp.grad(sum(v.sum() for v in values[:4]), x)
    return Golden([x], [*values, slope], [0.1 + abs(numbers(5))])


@golden
def powers() -> Golden:
    """Raise to constant powers, and to powers that are arguments."""
    x, p = T.dvectors("x", "p")
    outputs = [x**3, x**-2, x**0.5, x**p, 2**p, T.sqr(x) * x]
    slopes = symcomp.grad((x**p).sum() + (x**3).sum(), [x, p])
    return Golden([x, p], [*outputs, *slopes], [1 + abs(numbers(6)), numbers(6)])


@golden
def stable_forms() -> Golden:
    """Rewrite expressions that lose digits or overflow as written."""
    x, y = T.dvectors("x", "y")
    outputs = [T.log(1 + T.exp(x)), T.log(T.nnet.sigmoid(y)), T.exp(x) - 1, 1 - T.nnet.sigmoid(x)]
    outputs += [T.log(T.exp(x) + T.exp(y)), T.log(1 - T.exp(-abs(y)))]
    slope = symcomp.grad(outputs[0].sum() + outputs[1].sum(), x)
    return Golden([x, y], [*outputs, slope], [numbers(6), numbers(6) - 2])


@golden
def single_numbers() -> Golden:
    """Compute scalars alone."""
    x, y, n = T.dscalar("x"), T.fscalar("y"), T.lscalar("n")
    outputs = [x * y + n, T.exp(-x) / (n + 1), T.cast(x, "int64") // n]
    return Golden([x, y, n], outputs, [np.float64(0.5), np.float32(0.25), np.int64(3)])


@golden
def results_of_several_lengths() -> Golden:
    """Mix results of different shapes, which one kernel cannot compute."""
    x = T.dmatrix("x")
    centred = x - x.mean(axis=0)
    scaled = centred / centred.std(axis=1, keepdims=True)
    return Golden([x], [scaled, T.exp(scaled).sum(), (scaled**2).max(axis=0)], [numbers(4, 3)])
