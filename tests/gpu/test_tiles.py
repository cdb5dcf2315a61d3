"""Formulas with transposed inputs on the emulator, which blocks compute by tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.cuda.text import CudaKernel
from symcomp.core.tensor import TensorType
from symcomp.gpu import layouts, to_gpu
from symcomp.gpu.planner import Operand, contiguous_strides
from symcomp.tests.gpu.running import DEVICE, check
from symcomp.tests.gpu.test_kernels import REALS, numbers, tensor


@pytest.fixture
def made(emu: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, CudaKernel]:
    """Return the kernels that plans need from now on, by name."""
    found: dict[str, CudaKernel] = {}
    load: Callable[..., Any] = emu.kernels

    def kernels(wanted: Any) -> Any:
        found.update((kernel.name, kernel) for kernel in wanted)
        return load(wanted)

    monkeypatch.setattr(emu, "kernels", kernels)
    return found


def tiled(made: dict[str, CudaKernel]) -> list[bool]:
    """Return for each kernel whether it computes tiles, and forget them."""
    found = ["height" in kernel.numbers for kernel in made.values()]
    made.clear()
    return found


def check_transposed(*shape: int, dtype: str = "float32", seed: int = 0) -> None:
    """Compare a formula of an array and of a transposed one with the processor."""
    x, y, w = tensor(dtype, (None, None)), tensor(dtype, (None, None), "y"), T.dmatrix("w")
    values = [numbers(dtype, shape, seed), numbers(dtype, shape[::-1], seed + 1)]
    values.append(numbers("float64", shape, seed + 2))
    z = T.switch(x, y.T, x) if dtype == "bool" else x + y.T
    check([x, y, w], [T.cast(z, "float64") * w, T.switch(w > 0, z, y.T)], values, 0)


SHAPES = [
    (32, 32), (31, 33), (33, 31), (33, 32), (64, 65), (100, 70), (1, 40), (40, 1), (0, 40), (40, 0),
    (32, 1), (95, 97),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(made: dict[str, CudaKernel], shape: tuple[int, int]) -> None:
    check_transposed(*shape)
    wanted = [min(shape) >= layouts.LEAST_SIDE] if min(shape) > 0 else []
    assert tiled(made) == wanted


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("side", [32, 64])
def test_each_dtype(
    made: dict[str, CudaKernel], monkeypatch: pytest.MonkeyPatch, dtype: str, side: int
) -> None:
    monkeypatch.setattr(layouts, "TILES", ((side, 48 << 10, 1),))
    monkeypatch.setattr(layouts, "MOST_HELD", 64)
    check_transposed(70, 100, dtype=dtype)
    assert tiled(made) == [True]
    check_transposed(2 * side, side, dtype=dtype)


def test_wide_indices(made: dict[str, CudaKernel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symcomp.gpu.formulas.needs_wide", lambda numbers, operands: True)
    check_transposed(70, 100)
    (kernel,) = made.values()
    assert kernel.wide and "height" in kernel.numbers


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(made: dict[str, CudaKernel], dtype: str) -> None:
    x, y = tensor(dtype, (None, None)), tensor(dtype, (None, None), "y")
    values = [
        (numbers("float64", s, i) + 1j * numbers("float64", s, i + 2)).astype(dtype)
        for i, s in enumerate([(70, 100), (100, 70)])
    ]
    check([x, y], [x * y.T + 1], values, 8)
    assert tiled(made) == [True]
    f = function_of([y], [T.reshape(to_gpu(y, DEVICE).T, (7000,))])
    np.testing.assert_array_equal(f(values[1])[0], values[1].T.reshape(7000))
    assert tiled(made) == [True]  # real and imaginary parts by one kernel, launched twice


PERMUTATIONS = [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


@pytest.mark.parametrize("order", PERMUTATIONS)
def test_three_axes(made: dict[str, CudaKernel], order: tuple[int, ...]) -> None:
    shape = 33, 35, 40
    given = tuple(shape[order.index(axis)] for axis in range(3))
    x, y = T.ftensor3("x"), T.ftensor3("y")
    values = numbers("float32", shape), numbers("float32", given, 1)
    check([x, y], [x * 2 - y.transpose(*order)], values, 0, orders=[0, 2])
    assert tiled(made) == [order[-1] != 2]


@pytest.mark.parametrize("order", [(3, 1, 0, 2), (1, 3, 2, 0), (0, 2, 3, 1), (3, 2, 1, 0)])
def test_four_axes(made: dict[str, CudaKernel], order: tuple[int, ...]) -> None:
    shape = 33, 3, 34, 35
    given = tuple(shape[order.index(axis)] for axis in range(4))
    x, y = (TensorType("float32", (None,) * 4)(name) for name in "xy")
    values = numbers("float32", shape), numbers("float32", given, 1)
    check([x, y], [x * 2 - y.transpose(*order)], values, 0, orders=[0])
    tiled(made)


@pytest.mark.parametrize("steps", [(-1, 1), (1, -1), (-1, -1), (2, -1), (-1, 2), (1, 3)])
def test_steps(made: dict[str, CudaKernel], steps: tuple[int, int]) -> None:
    x, y = T.fmatrix("x"), T.fmatrix("y")
    shape = 70, 100
    a, b = numbers("float32", shape), numbers("float32", (shape[1] * abs(steps[0]), 300), 1)
    b = b[:, : shape[0] * abs(steps[1])]
    part = to_gpu(y, DEVICE)[:: steps[0], :: steps[1]]
    (found,) = function_of([x, y], [x - part.T])(a, b)
    np.testing.assert_array_equal(found, a - b[:: steps[0], :: steps[1]].T)
    # The neighbours of y.T are those along the last axis of y.
    assert tiled(made) == [abs(steps[1]) <= 2]


def test_broadcast_and_several_outputs(made: dict[str, CudaKernel]) -> None:
    x, y, z = T.fmatrix("x"), T.fmatrix("y"), T.dmatrix("z")
    row, column, one = T.frow("row"), T.fcol("column"), T.fscalar("one")
    outputs = [T.tanh(x + y.T) * row, (x - z.T) / column, y.T * one + 3, z.T * column.T.T]
    shapes = [(45, 70), (70, 45), (70, 45), (1, 70), (45, 1), ()]
    values = [numbers("float32", shape, i) for i, shape in enumerate(shapes)]
    values[2] = values[2].astype("float64")
    check([x, y, z, row, column, one], outputs, values, 4)
    assert any(tiled(made))
    stretched = tensor("float32", (1, None), "stretched")
    check([x, stretched], [x + stretched.T], [values[0], values[0][:, 0][None]], 0)
    assert tiled(made) == [False]


def test_inputs_with_neighbours_along_different_axes(made: dict[str, CudaKernel]) -> None:
    x, y, z = T.ftensor3("x"), T.ftensor3("y"), T.dtensor3("z")
    t = x + y.transpose(0, 2, 1) * 2 + T.cast(z.transpose(2, 1, 0), "float32")
    values = [numbers("float32", (34, 35, 36)), numbers("float32", (34, 36, 35), 1)]
    check([x, y, z], [t], [*values, numbers("float64", (36, 35, 34), 2)], 4)
    assert tiled(made) == [True]


def test_many_inputs(made: dict[str, CudaKernel]) -> None:
    """Without room in registers, or in shared memory, there are no tiles."""
    xs = [T.fmatrix(f"x{i}") for i in range(20)]
    values = [numbers("float32", (40, 40), i) for i in range(20)]
    for transposed, direct, wanted in [(1, 8, True), (1, 9, False), (11, 1, True), (12, 1, False)]:
        used = xs[: transposed + direct]
        z = T.add(*(x.T for x in used[:transposed]), *used[transposed:])
        check(used, [z], values[: len(used)], 16, orders=[0])
        assert tiled(made) == [wanted]


def function_of(inputs: Any, outputs: Any) -> Any:
    """Return a function whose results stay on the device."""
    return symcomp.function(inputs, [to_gpu(z, DEVICE) for z in outputs])


def test_copies(made: dict[str, CudaKernel]) -> None:
    x, y = T.fmatrix("x"), T.fmatrix("y")
    a, b = numbers("float32", (70, 100)), numbers("float32", (50, 70), 1)
    there = to_gpu(x, DEVICE).T
    f = function_of([x, y], [T.join(0, there, y), T.reshape(there[::-1], (700, 10))])
    found = f(a, b)
    np.testing.assert_array_equal(found[0], np.concatenate([a.T, b]))
    np.testing.assert_array_equal(found[1], a.T[::-1].reshape(700, 10))
    assert tiled(made) == [True]
    small = numbers("float32", (20, 30))
    f = function_of([x], [T.reshape(there, (600,))])
    np.testing.assert_array_equal(f(small)[0], small.T.reshape(600))
    assert tiled(made) == [False]


def operand(dtype: str, *shape: int) -> Operand:
    strides = contiguous_strides(shape, np.dtype(dtype).itemsize)
    return Operand(0, 0, dtype, shape, strides)


def tile_of_sum(shape: tuple[int, int], dtype: str = "float32") -> layouts.TileShape | None:
    """Return the tiles of the sum of an array and of a transposed one."""
    x, y = operand(dtype, *shape), operand(dtype, *shape[::-1])
    steps = [x.strides, y.strides[::-1], x.strides]
    return layouts.tile_shape([x, y, x], steps, shape, 2, 1)


def test_sides() -> None:
    """Large arrays have large tiles."""
    assert tile_of_sum((8192, 8192)) == layouts.TileShape(0, frozenset([1]), 64)
    assert tile_of_sum((1024, 1024)) == layouts.TileShape(0, frozenset([1]), 32)
    assert tile_of_sum((8192, 8192), "float64") == layouts.TileShape(0, frozenset([1]), 32)
    assert tile_of_sum((8192, 8192), "int8") == layouts.TileShape(0, frozenset([1]), 64)
    assert tile_of_sum((1 << 20, 40)) == layouts.TileShape(0, frozenset([1]), 32)
    assert tile_of_sum((1 << 20, 31)) is tile_of_sum((31, 1 << 20)) is None


def test_rows_of_tiles_are_apart_from_each_other_in_shared_memory() -> None:
    """The elements of a column lie in different banks, of 4 bytes each; there are 32."""
    for dtype in REALS:
        size, pitch = layouts.size_of(dtype), layouts.bytes_of(dtype, 64) // 64
        banks = {i * pitch // 4 % 32 for i in range(min(32, 128 // size))}
        assert len(banks) == min(32, 128 // size), dtype


@pytest.mark.parametrize("dtype", REALS)
def test_long_lines_that_are_sorted(made: dict[str, CudaKernel], dtype: str) -> None:
    """Lines along another axis than the last are copied by tiles before, if they are long."""
    x = tensor(dtype, (None, None))
    there = to_gpu(x, DEVICE)
    z = [T.sort(there, 0), T.argsort(there, 0), T.argtopk(there, 5, 0)]
    length = 4100 if dtype in ("bool", "int8", "uint8") else 1100
    value = numbers(dtype, (length, 40))
    check([x], z, [value], 0)
    assert tiled(made).count(True) == 1
    for shape in ((100, 40), (length, 31)):
        check([x], [T.sort(there, 0)], [numbers(dtype, shape)], 0, orders=[0])
    check([x], [T.sort(there, 1)], [value.T.copy()], 0, orders=[0])
    assert tiled(made).count(True) == 0
    check([x], [T.sort(there[:, ::-1].T, 1)], [value], 0, orders=[0])
    assert tiled(made).count(True) == 1


def test_lines_of_three_axes_that_are_sorted(made: dict[str, CudaKernel]) -> None:
    y = T.ftensor3("y")
    there = to_gpu(y, DEVICE)
    check([y], [T.sort(there, 1), T.argsort(there, 1)], [numbers("float32", (2, 1030, 33))], 0)
    check([y], [T.sort(there, 0)], [numbers("float32", (1030, 3, 34))], 0)
    assert tiled(made).count(True) == 2
