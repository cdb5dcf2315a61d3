"""Fourier transforms by cuFFT, which takes arrays whose transformed axes lie like one array in
memory, and whose other axes do; others are copied.

cuFFT has a plan for each layout. Plans of regions share one, which goes with the last of them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from symcomp.codegen.functions.c_scalars import COMPLEX
from symcomp.core.record import record
from symcomp.cvm.machine import LibraryHandle
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.formulas import parts_of_complex, plan_copy
from symcomp.gpu.libraries.binding import NvidiaLibrary, library_of
from symcomp.gpu.planner import Operand, Planner, contiguous_strides

#: The most axes of one plan.
MOST_AXES = 3
# The sign of the exponent.
FORWARD, INVERSE = -1, 1
# For each kind of transform and complex dtype: cuFFT's number and function.
COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL = "complex", "of reals", "to reals"
TRANSFORMS = {
    (COMPLEX_TO_COMPLEX, "complex64"): (0x29, "cufftExecC2C"),
    (REAL_TO_COMPLEX, "complex64"): (0x2A, "cufftExecR2C"),
    (COMPLEX_TO_REAL, "complex64"): (0x2C, "cufftExecC2R"),
    (COMPLEX_TO_COMPLEX, "complex128"): (0x69, "cufftExecZ2Z"),
    (REAL_TO_COMPLEX, "complex128"): (0x6A, "cufftExecD2Z"),
    (COMPLEX_TO_REAL, "complex128"): (0x6C, "cufftExecZ2D"),
}


@record
class FourierLayout:
    """Where the elements of an array of several transforms lie, as cuFFT is told it.

    Attributes
    ----------
    inside : tuple of int
        The lengths of an array in C order, of which that of one transform is a part.
    step : int
        Elements from one to the next along the last axis.
    distance : int
        Elements from one transform to the next.
    """

    inside: tuple[int, ...]
    step: int
    distance: int


class Cufft(NvidiaLibrary):
    """cuFFT, version 11 or newer, with the plans of one device."""

    name, called = "cufft", "cuFFT"
    needed = (
        "cufftCreate", "cufftDestroy", "cufftMakePlanMany64", "cufftSetAutoAllocation",
        "cufftSetStream", "cufftSetWorkArea", *(function for _, function in TRANSFORMS.values()),
    )  # fmt: skip
    errors: ClassVar = {
        1: "invalid plan", 2: "allocation failed", 3: "invalid type", 4: "invalid value",
        5: "internal error", 6: "execution failed", 7: "setup failed", 8: "invalid size",
        9: "data that are not aligned", 11: "invalid device", 13: "no workspace",
        14: "not implemented", 15: "license error", 16: "not supported", 17: "missing dependency",
        18: "NVRTC failed", 19: "nvJitLink failed", 20: "NVSHMEM failed",
    }  # fmt: skip

    def __init__(self, driver: Driver, path: str) -> None:
        super().__init__(driver, path)
        self._plans: weakref.WeakValueDictionary[object, FourierPlan] = (
            weakref.WeakValueDictionary()
        )

    def plan(
        self,
        kind: int,
        lengths: Sequence[int],
        given: FourierLayout,
        made: FourierLayout,
        count: int,
    ) -> FourierPlan:
        """Return the plan of transforms of these lengths and layouts."""
        key = kind, tuple(lengths), given, made, count
        with self.driver.lock:
            found = self._plans.get(key)
            if found is None:
                found = self._plans[key] = FourierPlan(self, kind, lengths, given, made, count)
            return found


class FourierPlan:
    """A plan of cuFFT's, with memory for its work: a library for plans of regions.

    Attributes
    ----------
    handle : LibraryHandle
    is_recordable : bool

    Parameters
    ----------
    library : Cufft
    kind : int
        cuFFT's number of the transform.
    lengths : sequence of int
    given, made : FourierLayout
    count : int
        How many transforms.
    """

    is_recordable = True

    def __init__(
        self,
        library: Cufft,
        kind: int,
        lengths: Sequence[int],
        given: FourierLayout,
        made: FourierLayout,
        count: int,
    ) -> None:
        self._library = library
        number, size = ctypes.c_int(), ctypes.c_size_t()
        library.call("cufftCreate", ctypes.byref(number))
        end = weakref.finalize(self, library.call, "cufftDestroy", number.value)
        end.atexit = False  # the driver may be gone
        library.call("cufftSetAutoAllocation", number.value, 0)
        numbers = ctypes.c_longlong * len(lengths)
        layouts = [(numbers(*x.inside), x.step, x.distance) for x in (given, made)]
        library.call(
            "cufftMakePlanMany64", number.value, len(lengths), numbers(*lengths), *layouts[0],
            *layouts[1], kind, count, ctypes.byref(size),
        )  # fmt: skip
        # Memory of our own lets work be captured in graphs.
        driver, nbytes = library.driver, max(size.value, 1)
        memory = self._workspace = driver.allocate(nbytes, "the workspace of cuFFT")
        stream, area = (library.address(f) for f in ("cufftSetStream", "cufftSetWorkArea"))
        self.handle = LibraryHandle(number.value, stream, area, memory.address, nbytes)

    def address(self, function: str) -> int:
        """Return the address of a function."""
        return self._library.address(function)

    def message(self, code: int) -> str:
        """Return what an error of a function means."""
        return self._library.message(code)


def layout_of(x: Operand, rank: int) -> FourierLayout | None:
    """Return the layout of transforms along the last ``rank`` axes; None if cuFFT has no such."""
    if any(s % x.itemsize for s in x.strides):
        return None
    steps = [s // x.itemsize for s in x.strides]
    cut = x.ndim - rank
    counted = [(n, s) for n, s in zip(x.shape[:cut], steps[:cut], strict=True) if n > 1]
    outer = _as_part(counted)
    inner = _as_part([*zip(x.shape[cut:], steps[cut:], strict=True)])
    if inner is None or outer is None or outer[0] != [n for n, _ in counted[1:]]:
        return None
    return FourierLayout((x.shape[cut], *inner[0]), inner[1], outer[1])


def _as_part(axes: Sequence[tuple[int, int]]) -> tuple[list[int], int] | None:
    """Return of which array in C order an array is a part: its lengths behind the first, and the
    step along its last axis; None if there is no such.

    Parameters
    ----------
    axes : sequence of (int, int)
        Length and step of each.
    """
    lengths: list[int] = []
    last, behind = 1, (0, 1)
    for n, step in reversed(axes):
        if behind[0] == 0:
            last = step = step if n > 1 else 1
        else:
            step = step if n > 1 else behind[0] * behind[1]
            if step % behind[1] or step // behind[1] < behind[0]:
                return None
            lengths.append(step // behind[1])
        if step < 1:
            return None
        behind = n, step
    return lengths[::-1], last


def plan_transform(
    planner: Planner, x: Operand, axes: Sequence[int], inverse: bool = False
) -> Operand:
    """Emit transforms of complex numbers along axes, all at once or three at a time."""
    for first in range(0, len(axes), MOST_AXES):
        x = _along(planner, COMPLEX_TO_COMPLEX, x, axes[first : first + MOST_AXES], inverse)
    return x


def plan_of_reals(planner: Planner, x: Operand, axis: int) -> Operand:
    """Emit transforms of real numbers along an axis, without the conjugates."""
    return _along(planner, REAL_TO_COMPLEX, x, (axis,))


def plan_to_reals(planner: Planner, x: Operand, axis: int, n: int) -> Operand:
    """Emit the inverse of ``plan_of_reals``, to n numbers along the axis."""
    # cuFFT overwrites what it is given, and wants 0 for the imaginary parts that do not count.
    copy = planner.new(x.dtype, x.shape)
    plan_copy(planner, copy, x)
    imaginary = parts_of_complex(copy)[1]
    for k in {0, n // 2} if n % 2 == 0 else {0}:
        shape = tuple(1 if a == axis else m for a, m in enumerate(x.shape))
        part = imaginary.view(shape, imaginary.strides, k * imaginary.strides[axis])
        zero = planner.constant(np.zeros((), part.dtype))
        plan_copy(planner, part, zero.view(shape, [0] * len(shape)))
    return _along(planner, COMPLEX_TO_REAL, copy, (axis,), n=n)


def _along(
    planner: Planner, kind: str, x: Operand, axes: Sequence[int], inverse: bool = False, n: int = 0
) -> Operand:
    """Emit transforms along at most three axes; return them, with the axes of ``x``."""
    order = [a for a in range(x.ndim) if a not in axes] + [*axes]
    source = x.view([x.shape[a] for a in order], [x.strides[a] for a in order])
    rank, shape, lengths = len(axes), list(source.shape), source.shape[-len(axes) :]
    dtype, wide = x.dtype, x.dtype
    if kind == REAL_TO_COMPLEX:
        dtype = wide = next(c for c, part in COMPLEX.items() if part == x.dtype)
        shape[-1] = shape[-1] // 2 + 1
    elif kind == COMPLEX_TO_REAL:
        dtype, lengths, shape[-1] = COMPLEX[wide], (n,), n
    z = _room(planner, dtype, wide, shape)
    if z.size:
        size = np.dtype(wide).itemsize
        given = layout_of(source, rank)
        if given is None or (kind == REAL_TO_COMPLEX and planner.alignment(source) % size):
            copy = _room(planner, source.dtype, wide, source.shape)
            plan_copy(planner, copy, source)
            source, given = copy, layout_of(copy, rank)
        made = layout_of(z, rank)
        library = library_of(planner.driver, Cufft)
        if library is None:
            raise DeviceError(f"{planner.label} needs cuFFT, which {planner.driver.name} lacks")
        assert given is not None and made is not None
        number, function = TRANSFORMS[kind, wide]
        plan = library.plan(number, lengths, given, made, prod(shape[:-rank]))
        sign = [INVERSE if inverse else FORWARD] if kind == COMPLEX_TO_COMPLEX else []
        planner.call_library(plan, function, [source, z, *sign])
    back = np.argsort(order)
    return z.view([z.shape[a] for a in back], [z.strides[a] for a in back])


def _room(planner: Planner, dtype: str, wide: str, shape: Sequence[int]) -> Operand:
    """Return an operand in C order for reals that lie where complex numbers can: in a step of a
    loop, too, where values of other sizes may be moved.
    """
    if dtype == wide:
        return planner.new(dtype, shape)
    itemsize = np.dtype(dtype).itemsize
    memory = planner.new(wide, [-(-prod(shape) // 2)])
    return Operand(memory.storage, 0, dtype, tuple(shape), contiguous_strides(shape, itemsize))
