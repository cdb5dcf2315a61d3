"""Straight code of kernels, products and moves: the same bits as theirs."""

import ctypes

import numpy as np
import pytest

from symcomp.codegen.compiler import driver
from symcomp.codegen.kernel import scheduled
from symcomp.codegen.loopir.expressions import ApplyScalar, Convert, Number
from symcomp.codegen.loopir.run import run
from symcomp.codegen.loopir.straight import Elements, NotStraightError, Spot, StraightCode
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.codegen.printers.c_printer import print_straight
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Literal
from symcomp.tests.codegen.running import assert_same_bits
from symcomp.tests.codegen.test_loopir import random_formula, values_of


def elements(code, number, array):
    """Return an array of straight code, in a storage that begins at its lowest address."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(array.shape, array.strides, strict=True))
    return Elements(Spot(code.storage(number), -low), array.dtype.name, array.shape, array.strides)


def printed(code, outputs):
    """Print the code that writes these storages."""
    return print_straight(code.body(lambda n: ("data", n) if n in outputs else None))


def functions(kernels):
    """Compile straight code; return functions of arrays, which are told by lowest addresses."""
    names = [k.name for k in kernels]
    found = []
    for address in driver.load(translation_unit(kernels, "own"), names):
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)

        def call(arrays, function=function):
            lowest = [np.lib.array_utils.byte_bounds(x)[0] for x in arrays]
            table = (ctypes.c_void_p * len(arrays))(*lowest)
            function(ctypes.addressof(table), None)

        found.append(call)
    return found


def straight_formula(rng):
    """Draw a formula of few elements that has straight code: its kernel, arrays, and the code."""
    while True:
        formula, patterns = random_formula(rng)
        made = scheduled(formula, patterns)
        if made is None:
            continue
        lengths = rng.integers(1, 5, len(patterns[0]))
        every, code = formula.patterns(patterns), StraightCode(2000)
        kinds = [*zip(patterns, formula.inputs, strict=True)]
        kinds += [(every[r.value], formula.dtypes[r.value]) for r in formula.results]
        arrays = [
            values_of(rng, dtype, [1 if o else n for o, n in zip(p, lengths, strict=True)])
            for p, dtype in kinds
        ]
        try:
            given = [elements(code, i, x) for i, x in enumerate(arrays)]
            code.run(made.kernel, [*given, *map(code.literal, made.literals)])
        except NotStraightError:
            assert "float16" in {dtype for _, dtype in kinds} | {*formula.dtypes}
            continue
        return made, arrays, len(patterns), code


def test_random_formulas() -> None:
    rng, cases, kernels = np.random.default_rng(1), [], []
    for _ in range(60):
        made, arrays, n_inputs, code = straight_formula(rng)
        kernels.append(printed(code, range(n_inputs, len(arrays))))
        cases.append((made, arrays, n_inputs))
    for (made, arrays, n_inputs), function in zip(cases, functions(kernels), strict=True):
        expected = [x.copy() for x in arrays[n_inputs:]]
        literals = [literal.array for literal in made.literals]
        assert run(made.kernel, [*arrays[:n_inputs], *expected, *literals]) == 0
        function(arrays)
        for x, y in zip(arrays[n_inputs:], expected, strict=True):
            assert_same_bits(x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype: str) -> None:
    rng, kernels, cases = np.random.default_rng(2), [], []
    for alpha, beta in ((1, 0), (0.3, 0), (1, 1), (-1.7, 0.4)):
        x, y, z = (rng.normal(size=s).astype(dtype) for s in ((2, 3), (4, 3), (2, 4)))
        y = y.T
        code = StraightCode(500)
        code.multiply(*(elements(code, i, a) for i, a in enumerate((x, y, z))), alpha, beta)
        kernels.append(printed(code, [2]))
        total = np.zeros((2, 4), dtype)
        for k in range(3):
            total = total + x[:, k : k + 1] * y[k]
        total = total * np.asarray(alpha, dtype) if alpha != 1 else total
        cases.append(((x, y, z), total + np.asarray(beta, dtype) * z if beta else total))
    for (arrays, expected), function in zip(cases, functions(kernels), strict=True):
        function(arrays)
        assert_same_bits(arrays[2], expected)


def test_values_pass_from_call_to_call_without_memory() -> None:
    code = StraightCode(100)
    x, between, z = np.arange(6.0).reshape(2, 3), np.zeros((2, 3)), np.zeros((3, 2))
    a, b, c = (elements(code, i, array) for i, array in enumerate((x, between, z)))
    code.move(b, a, adds=False)
    code.move(b, a, adds=True)
    turned = Elements(b.place, b.dtype, (3, 2), b.strides[::-1])
    code.move(c, turned, adds=False)
    kernel = printed(code, [2])
    functions([kernel])[0]([x, between, z])
    assert "m1" not in kernel.source and "z1" not in kernel.source
    assert_same_bits(z, 2 * x.T)
    assert not between.any()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
def test_elements_that_are_added_wrap_and_round_as_numpys(dtype: str) -> None:
    code = StraightCode(100)
    rng = np.random.default_rng(3)
    x, z = (rng.integers(0, 255, 5).astype(dtype) for _ in range(2))
    code.move(*(elements(code, i, array) for i, array in enumerate((z, x))), adds=True)
    expected = z | x if dtype == "bool" else z + x
    functions([printed(code, [0])])[0]([z, x])
    assert_same_bits(z, expected)


def test_what_failed_is_forgotten() -> None:
    code = StraightCode(3)
    x, y, z = np.arange(2.0), np.arange(9.0), np.zeros(2)
    a, b, c = (elements(code, i, array) for i, array in enumerate((x, y, z)))
    code.move(c, a, adds=False)
    code.keep()
    with pytest.raises(NotStraightError):
        code.move(b, Elements(a.place, "float64", (9,), (8,)), adds=False)
    code.undo()
    function = functions([printed(code, [1, 2])])[0]
    function([x, y, z])
    assert_same_bits(y, np.arange(9.0))
    assert_same_bits(z, x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float32"])
def test_numbers_are_written_out(dtype: str) -> None:
    limits = np.iinfo if np.dtype(dtype).kind in "iu" else np.finfo
    ends = [0, 1] if dtype == "bool" else [limits(dtype).min, limits(dtype).max]
    for x in np.array(ends, dtype):
        code, z = StraightCode(10), np.zeros(1, dtype)
        elements(code, 0, z).place.write(0, dtype, code.define(Number(Literal.of(x))))
        functions([printed(code, [0])])[0]([z])
        assert_same_bits(z, np.array([x]))


def test_overlapping_elements_of_two_dtypes() -> None:
    code = StraightCode(10)
    place = Spot(code.storage(0), 0)
    place.read(0, "float64")
    with pytest.raises(NotStraightError):
        place.read(0, "float32")


def test_numbers_that_the_compiler_would_round_otherwise() -> None:
    """Functions of the library, and casts out of range, are not computed at compile time."""
    code = StraightCode(10)
    number = code.define(Number(Literal.of(np.float64(2))))
    loaded = elements(code, 0, np.zeros(1)).place.read(0, "float64")
    code.define(ApplyScalar(ROWS["neg"](), (number,), "float64"))
    code.define(ApplyScalar(ROWS["log"](), (loaded,), "float64"))
    code.define(Convert(loaded, "int8"))
    negative = code.define(ApplyScalar(ROWS["neg"](), (number,), "float64"))
    for value in (
        ApplyScalar(ROWS["log"](), (negative,), "float64"),
        Convert(number, "int8"),
    ):
        with pytest.raises(NotStraightError):
            code.define(value)
