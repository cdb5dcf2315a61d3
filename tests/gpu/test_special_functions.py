"""Gamma and error functions on the emulator: the text of the processor, without a wider type."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.series_remainder import FUNCTIONS
from symcomp.tests.gpu.running import (
    DEVICE,
    assert_close,
    check,
    compile_both,
    ops_on_host,
)

OF_ONE = (
    "gamma", "gammaln", "log_of_gamma", "psi", "tri_gamma", "erfcx", "ierfcx", "log_erfc", "ndtr",
    "log_ndtr",
)  # fmt: skip
OF_TWO = (
    "beta", "betaln", "digamma_increment", "gamma_ratio", "gammainc_der", "inverse_poch",
    "log_gamma_ratio", "log_poch", "poch", "tri_gamma_increment", "log_of_pow",
    "logaddexp", "logdiffexp",
)  # fmt: skip
# The processor computes some of them in a wider type. Both are within 3 units of the truth, but
# left of 0 terms of polygamma cancel.
UNITS, UNITS_OF_POLYGAMMA = 4, 32
SPECIAL = np.array(
    [0, -0.0, 1, 2, 2.5, 15.9, 24, 170.6, 171.7, 300, 1e-300, 1e300, -0.5, -1, -2, -2.5, -150.5]
    + [np.nan, np.inf, -np.inf]
)


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest difference in units of the last place; NaN and infinities must agree."""
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_array_equal(found[~np.isfinite(found)], wanted[~np.isfinite(found)])
    x, y = (v[np.isfinite(wanted)].astype("float64") for v in (found, wanted))
    size = np.spacing(np.abs(y).astype(wanted.dtype)).astype("float64")
    return float(np.max(np.abs(x - y) / size, initial=0))


def computed(
    names: Sequence[str], values: Sequence[Any], dtype: str
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Compute functions of the same arguments on the device and on the processor."""
    inputs = [T.vector(dtype=dtype) for _ in values]
    ops = [Elemwise(ROWS[name]()) for name in names]
    there = [to_gpu(x, DEVICE) for x in inputs]
    moved = symcomp.function(inputs, [T.as_tensor_variable(op(*there)) for op in ops])
    assert not ops_on_host(moved), ops_on_host(moved)
    with np.errstate(all="ignore"):
        given = [np.asarray(v).astype(dtype) for v in values]
        return moved(*given), symcomp.function(inputs, [op(*inputs) for op in ops])(*given)


def arguments(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    near, far = rng.standard_normal(200) * 5, 10 ** rng.uniform(-9, 9, 100)
    return rng.permutation(np.concatenate([near, far, -(10 ** rng.uniform(-5, 3, 60)), SPECIAL]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("names", [OF_ONE, OF_TWO, ("polygamma",)])
def test_functions_are_those_of_the_processor(emu: Emulator, names: Any, dtype: str) -> None:
    values = [arguments(i) for i in range(1 if names is OF_ONE else 2)]
    units = UNITS
    if names == ("polygamma",):
        values[0] = np.random.default_rng(0).integers(0, 40, values[1].shape).astype("float64")
        units = UNITS_OF_POLYGAMMA
    for name, found, wanted in zip(names, *computed(names, values, dtype), strict=True):
        assert difference(found, wanted) <= (units if dtype == "float64" else 1), name


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9))
def test_any_number(values: list[float]) -> None:
    for name, found, wanted in zip(OF_ONE, *computed(OF_ONE, [values], "float64"), strict=True):
        assert difference(found, wanted) <= UNITS, name


def test_gradients_and_fusion(emu: Emulator) -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    loss = (T.gammaln(x) * T.erfcx(y) + T.log_ndtr(x - y)).sum() + T.psi(x[0]).sum()
    rng = np.random.default_rng(1)
    values = [rng.uniform(0.1, 9, (5, 4)), rng.standard_normal((5, 4))]
    check([x, y], [loss, *symcomp.grad(loss, [x, y])], values, 16)


# In units of the largest result: subtracted terms, and derivatives, lose some of the digits that a
# wider type has more.
IN_DOUBLE: dict[str, list[tuple[Any, float]]] = {
    "others": [
        (("exp_moment_ratio",), 16), (("exp_minus_cos",), 4), (("spherical_jn", 1, 1), 8),
        (("log1p_integral",), 4),
        *((("spherical_jn", n), 8) for n in (0, 1, 2)),
    ],
    **{
        name: [
            (("series_remainder", name, terms, power, n), 4 ** (terms + n))
            for terms, power, n in [*((1, 1, n) for n in range(3)), (3, 0, 0), (3, 3, 0), (3, 2, 1)]
        ]
        for name in FUNCTIONS
    },
    "products": [
        (("product_remainder", name, 1, 2, 1, n), 4 ** (n + 1))
        for name in ("exp", "sin", "log1p", "erf")
        for n in (0, 1)
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", IN_DOUBLE)
def test_functions_of_the_wider_type_in_double(emu: Emulator, kind: str) -> None:
    x = T.dvector("x")
    ops = [Elemwise(ROWS[name](*parameters)) for (name, *parameters), _ in IN_DOUBLE[kind]]
    plain, moved = compile_both([x], [op(to_gpu(x, DEVICE)) for op in ops])
    assert not ops_on_host(moved)
    for reach in (0.9, 30.0):
        value = np.random.default_rng(2).uniform(-reach, reach, 500)
        value = np.concatenate([value[np.abs(value) > 1e-9], [0.0]])
        results = zip(IN_DOUBLE[kind], moved(value), plain(value), strict=True)
        for (function, units), found, wanted in results:
            assert_close(found, wanted, units, str(function))


def test_relative_entropy_in_double(emu: Emulator) -> None:
    """Beside the bound of the series, |y / x - 1| = 1/4, five bits cancel."""
    x, y = T.dvector("x"), T.dvector("y")
    z = Elemwise(ROWS["kl_div"]())(to_gpu(x, DEVICE), to_gpu(y, DEVICE))
    rng = np.random.default_rng(4)
    value = rng.uniform(1, 2, 500)
    check([x, y], z, [value, value * rng.uniform(0.6, 1.6, 500)], 64, orders=[0])


def test_quotients_that_vanish_stay_on_the_device(emu: Emulator) -> None:
    x = T.fmatrix("x")
    z = [T.sin(x) / x, T.expm1(x) / x, T.tanh(x) / x]
    rng = np.random.default_rng(3)
    check([x], [*z, symcomp.grad(sum(v.sum() for v in z), x)], [rng.random((9, 5), "float32")], 4)
