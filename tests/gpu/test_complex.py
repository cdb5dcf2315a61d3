"""Complex numbers on devices, as pairs of real ones."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.core.tensor import TensorType
from symcomp.gpu.array import DeviceArray
from symcomp.gpu.complex_formulas import complex_nests_for
from symcomp.gpu.driver.interface import Driver
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.tests.gpu.running import DEVICE, array, check, ops_on_device, ops_on_host


def numbers(*shape: int, dtype: str) -> Any:
    x = array(*shape, dtype=COMPLEX[dtype])
    return (x + 1j * x.T.reshape(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_arithmetic(emu: Driver, dtype: str) -> None:
    z, w = T.matrix("z", dtype=dtype), T.matrix("w", dtype=dtype)
    x, row, i = T.matrix("x", dtype=COMPLEX[dtype]), T.fvector("row"), T.imatrix("i")
    column = TensorType("float32", (None, 1))("column")
    outputs = [
        z * w, z / w, 1 / z, z + w + x, z - x, z * row, x * w, z + i, -z, T.sqr(z), abs(z), z.real,
        z.imag, T.conj(z), T.angle(z), T.complex(x, row), T.complex(column, row),
        T.switch(x > 0, z, x),
        z.sum(), z.sum(0), (z * w).sum(1), z.mean(), z * (2 - 1j), z.astype("complex128") * x,
        T.complex(column, row).imag + x, T.stack([z, w]), T.concatenate([z.T, w.T[::-1]]) * 2,
        T.real(z * w) + T.imag(z), T.conj(z) * z, T.second(x, z), z[::-1, 1:].T / 3, z + 1,
    ]  # fmt: skip
    first = numbers(3, 4, dtype=dtype)
    values = [first, first[::-1], array(3, 4, dtype=COMPLEX[dtype])]
    values += [array(4), np.arange(12, dtype="int32").reshape(3, 4), array(3, 1)]
    check([z, w, x, row, i, column], outputs, values, orders=[0], on_host=True)
    empty = [v[:0] if v.ndim == 2 else v for v in values]
    check([z, w, x, row, i, column], outputs[:18], empty, orders=[0], on_host=True)


def test_what_is_not_finite(emu: Driver) -> None:
    """Infinities and NaN are what NumPy makes of them, and so are quotients by zero.

    Products are exact, so that none depends on whether a processor rounds them before sums.
    """
    some = [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 2.0**500, 2.0**-500]
    grid = np.array([complex(a, b) for a in some for b in some])
    z = TensorType("complex128", (None, 1))("z")
    w = TensorType("complex128", (1, None))("w")
    results = lambda z, w: [z * w, z / w, z + w, z - w, T.conj(z), abs(z)]  # noqa: E731
    plain = symcomp.function([z, w], results(z, w))
    moved = symcomp.function([z, w], results(*(gpu.to_gpu(x, DEVICE) for x in (z, w))))
    assert ops_on_device(moved)
    given = grid[:, None], grid[None, :]
    for found, wanted in zip(moved(*given), plain(*given), strict=True):
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(np.asarray(found)), part(wanted), rtol=4e-16)


def test_values_stay_on_the_device(emu: Driver) -> None:
    z = T.cvector("z")
    there = gpu.to_gpu(z, DEVICE)
    f = symcomp.function([z], gpu.to_gpu(there * there, DEVICE))
    given = numbers(5, dtype="complex64")
    found = f(given)
    assert isinstance(found, DeviceArray)
    np.testing.assert_allclose(found.get(), given * given, rtol=1e-6)
    assert not ops_on_host(f)


def test_literals_are_computed_before() -> None:
    """A product of complex literals takes no step; results are steps, each once."""
    one = Literal.of(np.complex64(1 + 2j))
    mul, conj = ROWS["mul"](), ROWS["conj"]()
    steps = Step(mul, (0, 1), "complex64"), Step(conj, (2,), "complex64")
    formula = Formula(("complex64",), (one,), steps, (Result(2), Result(3)))
    made = complex_nests_for(formula, ((False,),))
    assert made is not None
    split = made.nests.form.formula
    assert split.inputs == ("float32", "float32") and len(split.results) == 4


def test_functions_without_parts_stay_on_the_host() -> None:
    formula = Formula(("complex64",), (), (Step(ROWS["exp"](), (0,), "complex64"),), (Result(1),))
    assert complex_nests_for(formula, ((False,),)) is None
