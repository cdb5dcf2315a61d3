"""Kernels are put into files that compilers work on at once."""

import ctypes
import sys

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen import prebuilt
from symcomp.codegen.compiler import driver, units
from symcomp.codegen.kernel import kernel_of
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step

NAMES = ("exp", "log", "tanh", "sin", "sqr")


def kernel(name: str, rank: int = 1) -> Kernel:
    step = Step(ROWS[name](), (0,), "float64")
    found = kernel_of(Formula(("float64",), (), (step,), (Result(1),)), [(False,) * rank])
    assert found is not None
    return found


def test_groups_are_of_about_equal_length() -> None:
    sizes = (9000, 8000, 7000, 6000, 5000, 4000, 100)
    kernels = [Kernel(f"k{n}", "x" * n, ()) for n in sizes]
    two = units.units_of(kernels, 2)
    lengths = [sum(len(k.source) for k in unit) for unit in two]
    assert sum(lengths) == sum(sizes) and max(lengths) - min(lengths) < 4000
    assert units.units_of(kernels[::-1], 2) == two
    assert len(units.units_of(kernels, 16)) == 3
    assert units.units_of(kernels[-1:], 16) == [kernels[-1:]]


def test_kernels_that_need_the_same_come_together() -> None:
    for kernels in (
        [Kernel(f"k{n}", "y" * 9000, (f"{n % 2}" * 30_000,)) for n in range(4)],
        [Kernel(f"k{n}", "y" * 9000 + " g_psi(x)" * (n % 2), ()) for n in range(4)],
    ):
        found = units.units_of(kernels, 2)
        assert {"k1", "k3"} in [{k.name for k in unit} for unit in found]


def test_loops_that_differ_in_lengths_alone_are_written_once() -> None:
    vector, matrix = kernel("tanh"), kernel("tanh", 2)
    assert vector.name != matrix.name and vector.needs == matrix.needs
    (loops,) = vector.needs
    assert translation_unit([vector, matrix]).count(loops) == 1
    codes = units.load_kernels([vector, matrix]).values()
    assert len({code.address for code in codes}) == 2


@pytest.mark.parametrize("processors", [1, 2, 8])
def test_every_kernel_has_its_address(monkeypatch, tmp_path, processors) -> None:
    monkeypatch.setattr(units, "processors", lambda: processors)
    monkeypatch.setattr(units, "WORTH_A_FILE", 1500)
    kernels = [kernel(name) for name in (*NAMES, NAMES[0])]
    with config.change_flags(compiledir=str(tmp_path / "kernels")):
        codes = units.load_kernels(kernels)
        assert codes.keys() == {k.name for k in kernels}
        assert len({code.address for code in codes.values()}) == len(NAMES)
        assert (len(driver.entries()) > 1) == (processors > 1)
        driver._libraries.clear()
        assert units.load_kernels(kernels).keys() == codes.keys()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="each file has its own loops")
def test_loops_that_were_compiled_before_give_the_same_bits(tmp_path) -> None:
    x = T.fmatrix("x")
    outputs = [x.sum(axis=0), x.sum(axis=1), x.max(), T.nnet.softmax(x), T.exp(x), x.T + 1]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=n).astype("float32") for n in ((3, 5), (200, 70), (1, 9000))]
    found = []
    for flags in ("-Wall -Wno-type-limits", "-Wall -O0", "-DNOTHING"):
        with config.change_flags(compiledir=str(tmp_path / "kernels"), kernels=True, cflags=flags):
            assert prebuilt.shares_loops() == (flags != "-DNOTHING")
            f = symcomp.function([x], outputs, mode="FAST_RUN")
            found.append([f(v[::-1, ::k]) for v in values for k in (1, 2)])
    for of_call in zip(*found, strict=True):
        for got, other, want in zip(*of_call, strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(other, want)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="each file has its own loops")
def test_flags_that_need_no_other_loops() -> None:
    for flags in ("", "-Wall -Werror", "-Wextra -O0"):
        with config.change_flags(cflags=flags):
            assert prebuilt.shares_loops()
    for flags in ("-Wl,-O1", "-Wall -g", "-fsanitize=address", "-O3", "-O0 -g"):
        with config.change_flags(cflags=flags):
            assert not prebuilt.shares_loops()


def test_one_file_that_is_refused_fails_all(tmp_path) -> None:
    good = "int answer(void);\nint answer(void)\n{\n    return 42;\n}\n"
    with config.change_flags(compiledir=str(tmp_path / "kernels")):
        with pytest.raises(driver.CompilerError, match="undeclared"):
            driver.load_all(
                [(good, ["answer"]), ("int f(void) { return x; }\n", ["f"])], driver.target()
            )
        found = driver.load_all([(good, ["answer"]), (good, ["answer"])], driver.target())
    assert found is not None and found[0] == found[1]
    assert ctypes.CFUNCTYPE(ctypes.c_int)(found[0][0])() == 42


def test_without_a_compiler_there_are_those_built_before() -> None:
    with config.change_flags(cc="no-such-compiler"):
        driver._warn_once.cache_clear()
        with pytest.warns(RuntimeWarning, match="no-such-compiler"):
            found = units.load_kernels([kernel("exp"), kernel("arctan")])
    assert found.keys() == {kernel("exp").name}
