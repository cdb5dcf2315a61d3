"""Convolution and its two gradients by cuDNN, of images by rows.

The algorithms are products of matrices of which none is stored: of all that cuDNN has they take all
geometries, and add up in the same order each time. Geometries that cuDNN does not have, such as
padding that differs at both ends of an axis, are left to kernels of our own.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from math import prod
from typing import ClassVar

from symcomp.core.record import record
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.formulas import contiguous
from symcomp.gpu.libraries.binding import LibraryWithHandle, library_of
from symcomp.gpu.planner import Operand, Planner, contiguous_strides
from symcomp.ops.windows.geometry import Geometry

# Types of elements and of sums.
TYPES = {"float32": (0, 0), "float64": (1, 1), "float16": (2, 0)}
# The kinds of computing: with rounded factors on tensor cores, or not.
DEFAULT_MATH, TENSOR_MATH, FULL_MATH = 0, 1, 3
BY_ROWS, CROSS_CORRELATION = 0, 1
#: cuDNN has convolution along two and three axes, of fewer elements than this in each array.
MOST_AXES, MOST_ELEMENTS = 3, 2**31
# Answers that a function is not supported: of version 8, and from version 9 on.
REFUSALS = {9, *range(3000, 4000)}
# Implicit products, reproducible ones, have the number 1 in all three lists of algorithms.
ALGORITHM = 1
FORWARD, TO_INPUTS, TO_KERNELS = "Forward", "BackwardData", "BackwardFilter"
# The operands that are read and written, of image, kernels and result.
IMAGE, KERNELS, RESULT = range(3)
ROLES = {
    FORWARD: (IMAGE, KERNELS, RESULT), TO_INPUTS: (KERNELS, RESULT, IMAGE),
    TO_KERNELS: (IMAGE, RESULT, KERNELS),
}  # fmt: skip
_SHAPES = ("Tensor", "Filter", "Convolution")


class Cudnn(LibraryWithHandle):
    """cuDNN, version 8 or newer, with a handle for one device."""

    name, called = "cudnn", "cuDNN"
    creating, setting = "cudnnCreate", "cudnnSetStream"
    needed = (
        *(f"cudnn{does}{kind}Descriptor" for does in ("Create", "Destroy") for kind in _SHAPES),
        *(f"cudnnSet{kind}NdDescriptor" for kind in _SHAPES),
        "cudnnSetConvolutionGroupCount", "cudnnSetConvolutionMathType",
        *(f"cudnnConvolution{kind}" for kind in ROLES),
        *(f"cudnnGetConvolution{kind}WorkspaceSize" for kind in ROLES),
    )  # fmt: skip
    errors: ClassVar = {
        1: "not initialized", 2: "allocation failed", 3: "bad parameter", 4: "internal error",
        8: "execution failed", 9: "not supported", 1001: "not initialized",
        1002: "its parts are of several versions", 1007: "a part of it cannot be loaded",
        2000: "bad parameter", 2002: "null pointer", 2003: "pointer that is not aligned",
        2006: "too little memory", 2008: "shapes that do not fit", 3000: "not supported",
        3002: "shape not supported", 3003: "dtype not supported", 3007: "not for this architecture",
        4000: "internal error", 4004: "allocation on the device failed", 5000: "execution failed",
    }  # fmt: skip

    def __init__(self, driver: Driver, path: str) -> None:
        super().__init__(driver, path)
        self._plans: weakref.WeakValueDictionary[object, Convolution] = (
            weakref.WeakValueDictionary()
        )

    def convolution(self, key: ConvolutionKey) -> Convolution:
        """Return what cuDNN needs to know of a convolution."""
        with self.driver.lock:
            found = self._plans.get(key)
            if found is None:
                found = self._plans[key] = Convolution(self, key)
            return found


@record
class ConvolutionKey:
    """A convolution along two or three axes.

    Attributes
    ----------
    dtype : str
    shapes : tuple of tuple of int
        Of image, kernels and result.
    pads, strides, dilation : tuple of int
    groups, math : int
    """

    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    pads: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    math: int


class Convolution:
    """The descriptors of a convolution: a library for plans of regions.

    Attributes
    ----------
    handle : LibraryHandle
    is_recordable : bool
    arrays : list of int
        The descriptors of image, kernels and result.
    geometry : int
        That of pads, steps and groups.
    one, zero : int
        The addresses of these factors, which cuDNN reads from the host when it is called.

    Parameters
    ----------
    library : Cudnn
    key : ConvolutionKey
    """

    is_recordable = True

    def __init__(self, library: Cudnn, key: ConvolutionKey) -> None:
        self._library, self.handle = library, library.handle
        number = ctypes.c_double if key.dtype == "float64" else ctypes.c_float
        self._factors = number(1), number(0)
        self.one, self.zero = (ctypes.addressof(f) for f in self._factors)
        kind, of_sums = TYPES[key.dtype]
        image, kernels, result = key.shapes
        n = len(image)
        self.arrays = [self._new("Tensor"), self._new("Filter"), self._new("Tensor")]
        for place, shape in ((IMAGE, image), (RESULT, result)):
            self._set("Tensor", self.arrays[place], kind, n, shape, contiguous_strides(shape, 1))
        self._set("Filter", self.arrays[KERNELS], kind, BY_ROWS, n, kernels)
        self.geometry = self._new("Convolution")
        self._set(
            "Convolution", self.geometry, n - 2, key.pads, key.strides, key.dilation,
            CROSS_CORRELATION, of_sums,
        )  # fmt: skip
        library.call("cudnnSetConvolutionGroupCount", self.geometry, key.groups)
        library.call("cudnnSetConvolutionMathType", self.geometry, key.math)

    def _new(self, kind: str) -> int:
        made = ctypes.c_void_p()
        self._library.call(f"cudnnCreate{kind}Descriptor", ctypes.byref(made))
        end = weakref.finalize(
            self, self._library.call, f"cudnnDestroy{kind}Descriptor", made.value or 0
        )
        end.atexit = False  # the driver may be gone
        return made.value or 0

    def _set(self, kind: str, *given: int | Sequence[int]) -> None:
        words = [g if isinstance(g, int) else (ctypes.c_int * len(g))(*g) for g in given]
        self._library.call(f"cudnnSet{kind}NdDescriptor", *words)

    def workspace(self, kind: str) -> int | None:
        """Return the bytes that a function needs; None, if cuDNN does not have it."""
        first, second, made = (self.arrays[role] for role in ROLES[kind])
        size = ctypes.c_size_t()
        is_there = self._library.try_call(
            REFUSALS, f"cudnnGetConvolution{kind}WorkspaceSize", self._library.number, first,
            second, self.geometry, made, ALGORITHM, ctypes.byref(size),
        )  # fmt: skip
        return size.value if is_there else None

    def address(self, function: str) -> int:
        """Return the address of a function."""
        return self._library.address(function)

    def message(self, code: int) -> str:
        """Return what an error of a function means."""
        return self._library.message(code)


def plan_by_cudnn(
    planner: Planner,
    kind: str,
    geometry: Geometry,
    groups: int,
    operands: Sequence[Operand],
) -> bool:
    """Emit a convolution by cuDNN, if it is there and has it.

    Parameters
    ----------
    kind : str
        FORWARD, TO_INPUTS or TO_KERNELS.
    operands : sequence of Operand
        Image, kernels and result; the one that is made is in C order.
    """
    shapes = [x.shape for x in operands]
    dtype = operands[IMAGE].dtype
    if dtype not in TYPES or len(geometry.strides) > MOST_AXES:
        return False
    if not all(0 < prod(shape) < MOST_ELEMENTS for shape in shapes):
        return False
    pads = _pads(geometry, shapes)
    library = library_of(planner.driver, Cudnn) if pads is not None else None
    if library is None or pads is None:
        return False
    math = {"float16": TENSOR_MATH, "float64": DEFAULT_MATH}.get(
        dtype, FULL_MATH if planner.products == "full" else DEFAULT_MATH
    )
    key = ConvolutionKey(
        dtype, tuple(_plane(s, 2) for s in shapes), _plane(pads, 0, 0),
        _plane(geometry.strides, 0), _plane(geometry.dilation, 0), groups, math,
    )  # fmt: skip
    plan = library.convolution(key)
    nbytes = plan.workspace(kind)
    if nbytes is None:
        return False
    first, second, made = ROLES[kind]
    work = planner.new("int8", [max(nbytes, 1)])
    given = [contiguous(planner, operands[role]) for role in (first, second)]
    planner.call_library(
        plan, f"cudnnConvolution{kind}",
        [
            plan.one, plan.arrays[first], given[0], plan.arrays[second], given[1], plan.geometry,
            ALGORITHM, work, nbytes, plan.zero, plan.arrays[made], operands[made],
        ],
    )  # fmt: skip
    return True


def _pads(geometry: Geometry, shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Return the padding at both ends of each axis that makes as many windows; None where there is
    none, or where windows may miss the image.
    """
    image, kernels, result = (shape[2:] for shape in shapes)
    found = []
    for a, (n, k, count) in enumerate(zip(image, kernels, result, strict=True)):
        before, _ = geometry.pads(a, k)
        span = geometry.span(a, k)
        if before >= span or (n + 2 * before - span) // geometry.strides[a] + 1 != count:
            return None
        found.append(before)
    return tuple(found)


def _plane(numbers: Sequence[int], lead: int, one: int = 1) -> tuple[int, ...]:
    """Return numbers for two axes of images or more, where there may be one."""
    if len(numbers) - lead > 1:
        return tuple(numbers)
    return (*numbers[:lead], one, *numbers[lead:])

