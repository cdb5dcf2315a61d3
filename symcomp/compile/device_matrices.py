"""Sparse matrices in the memory of a device: the type, the values, and the ops between them and
their arrays.

Compiled functions alone have variables of this type: rewriting lets them compute with the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from symcomp.core.closed import ClosedGraph
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import (
    MatrixBase,
    MatrixOfEntries,
    MatrixOfParts,
    MatrixParts,
    MatrixTransposed,
    PatternBase,
    copies_on_host,
)
from symcomp.errors import DTypeError, ShapeError
from symcomp.gpu.array import DeviceArray, to_device
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.libraries.binding import library_of
from symcomp.gpu.libraries.cusparse import TYPES, Cusparse
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.transfers import DeviceLength, ToHost
from symcomp.gpu.type import DeviceType, TypeOnDevice
from symcomp.ops.indexing.subtensors import getitem
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.shape import ShapeI
from symcomp.rewrite.rule import computed_by
from symcomp.rewrite.shapes import Shapes
from symcomp.sparse.components import Assemble, n_minor, parts_of
from symcomp.sparse.convert import TransposeCompressed
from symcomp.sparse.pairwise import check_same_shape
from symcomp.sparse.products import compressed_value
from symcomp.sparse.type import SparseType, SparseVariable
from symcomp.sparse.values import SparseArrays, assemble, check_fits, components, major_axis
from symcomp.sparse.values import canonical as canonical_value

# From the device that something was on to the one where it goes, or "cpu".
Place = Callable[[str], str]


class SparsePattern(PatternBase):
    """The indices and pointers of matrices on a device, in canonical form."""

    def transposed(self) -> tuple[Any, ...]:
        """Return for each entry of the transpose the place that it has here, and its indices and
        pointers. They are computed once, by the host.
        """
        found = self.transpose
        if found is None:
            indices, indptr = copies_on_host((self.indices, self.indptr))
            arrays = transposed_pattern(indices, indptr, self.n_minor)
            found = self.transpose = tuple(to_device(x, self.indices.device) for x in arrays)
        return found

    def product(self, other: SparsePattern, make: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the indices and pointers of the product with another pattern, both seen as CSR.
        ``make`` computes them of both patterns, once.
        """
        if self.products is None:
            self.products = WeakKeyDictionary()
        found: tuple[Any, ...] | None = self.products.get(other)
        if found is None:
            found = self.products[other] = tuple(make(self, other))
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        products = () if self.products is None else self.products.values()
        kept = [*(self.transpose or ()), *chain(*products)]
        return sum(x.nbytes for x in (self.indices, self.indptr, *kept))


class DeviceMatrix(MatrixBase):
    """A sparse matrix in the memory of a device, which is never written again."""

    @property
    def device(self) -> str:
        """The name of the device."""
        return str(self.data.device)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        found: tuple[int, int] = self.pattern.shape
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, those of the transpose included once they are there."""
        transposed = 0 if self.transposed_entries is None else self.transposed_entries.nbytes
        return int(self.data.nbytes + transposed + self.pattern.nbytes)

    def get(self) -> Any:
        """Wait for the device, and return the matrix as one of SciPy's."""
        pattern = self.pattern
        data, indices, indptr = copies_on_host((self.data, pattern.indices, pattern.indptr))
        arrays = SparseArrays(data, indices, indptr, pattern.shape)
        return assemble(self.kind.format, self.kind.container, arrays)

    def transposed_data(self) -> DeviceArray:
        """Return the entries in the order of the transpose, which they are brought into once."""
        found: DeviceArray | None = self.transposed_entries
        if found is None:
            order, _, _ = self.pattern.transposed()
            numbers = _as_rows(self.data)
            take = _rows_at(self.device, numbers.dtype.name, order.dtype.name)
            (rows,) = take.program(numbers, order)
            found = self.transposed_entries = _relaid(rows, self.data.dtype, self.data.shape)
        return found

    def __repr__(self) -> str:
        return f"DeviceMatrix({self.kind}, {self.shape}, on {self.device})"

    def __reduce__(self) -> Any:
        return on_device, (self.kind, self.get(), self.device)


def transposed_pattern(indices: Any, indptr: Any, n_minor: int) -> tuple[Any, ...]:
    """Return for each entry of the transpose of a pattern its place in that, and its indices and
    pointers.
    """
    places = np.arange(len(indices), dtype=indices.dtype)
    return TransposeCompressed().perform(places, indices, indptr, n_minor)


def made_pattern(
    kind: str, indices: Any, indptr: Any, n: Any, others: Any, pointers: Any, m: Any
) -> tuple[Any, Any]:
    """Return the indices and pointers of the product, the union or the intersection of two CSR
    patterns, where n and m count their columns.
    """
    check_shapes(kind, (len(indptr) - 1, n), (len(pointers) - 1, m))
    x = compressed_value(np.ones(len(indices), np.float32), indices, indptr, n)
    y = compressed_value(np.ones(len(others), np.float32), others, pointers, m)
    z = x @ y if kind == "product" else x + y if kind == "union" else x.multiply(y)
    z = canonical_value(z.tocsr())
    check_fits(indices.dtype.name, z.shape, z.nnz, f"the {kind}")
    return z.indices.astype(indices.dtype), z.indptr.astype(indices.dtype)


def check_shapes(kind: str, x: Sequence[Any], y: Sequence[Any]) -> None:
    """Raise ShapeError unless two matrices can be multiplied, or have one shape."""
    first, second = (tuple(map(int, shape)) for shape in (x, y))
    if kind != "product":
        check_same_shape(kind, first, second)
    elif first[1] != second[0]:
        raise ShapeError(
            f"true_dot: shapes {first} and {second}: the axes that meet have lengths {first[1]} "
            f"and {second[0]}"
        )


def on_device(kind: SparseType, value: Any, device: str) -> DeviceMatrix:
    """Return a matrix of SciPy's, which is a value of ``kind``, on a device."""
    data, indices, indptr, shape = components(value)
    data, indices, indptr = (to_device(x, device) for x in (data, indices, indptr))
    n_minor = shape[1 - major_axis(kind.format)]
    return DeviceMatrix(kind, data, SparsePattern(indices, indptr, shape, n_minor))


@cache
def _rows_at(device: str, dtype: str, index_dtype: str) -> DeviceGraph:
    rows: Any = TensorType(dtype, (None, None)).make_variable()
    order = TensorType(index_dtype, (None,)).make_variable()
    return DeviceGraph(ClosedGraph([rows, order], [getitem(rows, order)]), device)


def _as_rows(x: DeviceArray) -> DeviceArray:
    """Return a vector as a matrix of real numbers: complex ones are rows of two."""
    parts = 2 if x.dtype.kind == "c" else 1
    real = np.dtype(f"f{x.dtype.itemsize // parts}")
    return DeviceArray(
        x.driver, x.memory, x.offset, real, (*x.shape, parts), (*x.strides, real.itemsize)
    )


def _relaid(x: DeviceArray, dtype: np.dtype, shape: Any) -> DeviceArray:
    """Return the memory of an array in C order as a vector of another dtype."""
    return DeviceArray(x.driver, x.memory, x.offset, dtype, shape, (dtype.itemsize,))


def multiplies(kind: SparseType, device: str) -> bool:
    """Return whether a device has products with matrices of a type."""
    return fits_devices(kind) and library_of(driver_of(device), Cusparse) is not None


def fits_devices(kind: SparseType) -> bool:
    """Return whether there are matrices of a type on devices."""
    return kind.is_compressed and kind.dtype in TYPES


@record
class DeviceSparseType(TypeOnDevice):
    """The type of sparse matrices on one device.

    Parameters
    ----------
    device : str
    on_host : SparseType
        The type of the same matrices on the host: CSR or CSC, of a dtype that cuSPARSE knows.
    """

    device: str
    on_host: SparseType

    def __init__(self, device: str, on_host: SparseType) -> None:
        if not fits_devices(on_host):
            raise DTypeError(
                f"there is no {on_host} on devices: csr and csc matrices of {', '.join(TYPES)} are"
            )
        object.__setattr__(self, "device", canonical(device))
        object.__setattr__(self, "on_host", on_host)

    def moved(self, target: str) -> Type:
        """Return the type of the same matrices on another device, or on the host, ``"cpu"``."""
        return self.on_host if target == "cpu" else DeviceSparseType(target, self.on_host)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return a value of this type: matrices of the host are copied to the device."""
        is_there = isinstance(value, DeviceMatrix) and value.device == self.device
        if is_there and self.on_host.is_super(value.kind.clone(shape=value.shape)):
            return value
        there = self.on_host.filter(self.to_host(value), strict, allow_downcast)
        return on_device(self.on_host, there, self.device)

    def to_host(self, value: Any) -> Any:
        """Return a value as a matrix of SciPy's."""
        return value.get() if isinstance(value, DeviceMatrix) else value

    def __repr__(self) -> str:
        return f"DeviceSparseType({self.device}, {self.on_host!r})"


class DeviceSparseVariable(Variable):
    """A sparse matrix on a device, as a variable of a compiled function."""

    type: DeviceSparseType

    @staticmethod
    def to_host(x: Any) -> Any:
        """Return the matrix on the host."""
        return SparseToHost()(x)

    @staticmethod
    def to_device(x: Any, device: str) -> Any:
        """Return a sparse variable of the host on a device."""
        return SparseToDevice(device)(x)


DeviceSparseType.variable_class = DeviceSparseVariable


class DeviceMatrixOp(Op):
    """Base of the ops on sparse matrices on devices."""

    no_derivative = "it is made when functions are compiled, when derivatives have been taken"

    def placed(self, inputs: Sequence[Any], of: Place) -> Op | list[Variable]:
        """Return the op, or its outputs where ``inputs`` are now: on other devices, or on the host.

        Parameters
        ----------
        inputs : sequence of Variable
        of : callable (device) -> device
            Says where that goes which was on a device.
        """
        is_there = any(hasattr(x.type, "on_host") for x in inputs)
        return self if is_there else self._outputs_on_host(*inputs)

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        raise NotImplementedError


@record
class SparseToHost(DeviceMatrixOp):
    """z = x, on the host; computing it waits for the device."""

    def output_types(self, x: Any) -> list[Type]:
        return [x.type.on_host]

    def perform(self, x: Any) -> Any:
        return x.get()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        return [*inputs]


@record
class SparseToDevice(DeviceMatrixOp):
    """z = the sparse matrix x of the host, on a device."""

    device: str

    def output_types(self, x: Any) -> list[Type]:
        if not isinstance(x, SparseVariable):
            raise DTypeError(f"{self}: {x} ({x.type}) is no sparse matrix on the host")
        return [DeviceSparseType(self.device, x.type)]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return node.outputs[0].type.filter

    def perform(self, x: Any) -> Any:
        raise NotImplementedError

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    def placed(self, inputs: Sequence[Any], of: Place) -> Op | list[Variable]:
        target = of(self.device)
        return [*inputs] if target == "cpu" else SparseToDevice(target)


@record
class DeviceComponents(DeviceMatrixOp):
    """data, indices, indptr, shape = the arrays of x, on its device, and its lengths, on the host.
    """

    multiple_outputs = True

    def output_types(self, x: Any) -> list[Type]:
        device, kind = x.type.device, x.type.on_host
        n = kind.shape[major_axis(kind.format)]
        pointers = None if n is None else n + 1
        return [
            DeviceType(device, kind.dtype, (None,)),
            DeviceType(device, kind.index_dtype, (None,)),
            DeviceType(device, kind.index_dtype, (pointers,)),
            TensorType("int64", (2,)),
        ]

    def perform(self, x: Any) -> tuple[Any, ...]:
        return MatrixParts()(x)

    def bind(self, node: Apply) -> Callable[..., Any]:
        return MatrixParts()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        _, indices, indptr, _ = node.outputs
        stored = DeviceLength(0)(indices)
        return [(stored,), (stored,), (DeviceLength(0)(indptr),), (2,)]

    view_map = {0: (0,), 1: (0,), 2: (0,)}

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        return [*parts_of(*inputs)]


@record
class WithEntries(DeviceMatrixOp):
    """z = the matrix with the pattern of x and the entries data, which are on its device."""

    def output_types(self, x: Any, data: Any) -> list[Type]:
        kind = x.type.on_host
        if data.type != DeviceType(x.type.device, kind.dtype, data.type.shape):
            raise DTypeError(f"{self}: {data} ({data.type}) has no entries for {x} ({x.type})")
        return [x.type]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return MatrixOfEntries(self.perform)

    def perform(self, x: Any, data: Any) -> Any:
        if data.shape != x.pattern.indices.shape:
            raise ShapeError(f"{self}: {data.shape} entries for {x.pattern.indices.shape} indices")
        return DeviceMatrix(x.kind, data, x.pattern)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    view_map = {0: (0, 1)}

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        x, data = inputs
        _, indices, indptr, shape = parts_of(x)
        return [Assemble(x.type)(data, indices, indptr, shape)]


@record
class AssembleOnDevice(DeviceMatrixOp):
    """z = the matrix on a device with the arrays data, indices and indptr, which are there, and the
    lengths shape, on the host. The pattern is known to be canonical, as that of ``Assemble``.
    """

    kind: SparseType

    def output_types(self, data: Any, indices: Any, indptr: Any, shape: Any) -> list[Type]:
        kind, device = self.kind, data.type.device
        wanted = (kind.dtype, kind.index_dtype, kind.index_dtype)
        for x, dtype in zip((data, indices, indptr), wanted, strict=True):
            if x.type != DeviceType(device, dtype, x.type.shape) or x.type.ndim != 1:
                raise DTypeError(f"{self}: {x} ({x.type}) is no array of a {kind} on {device}")
        return [DeviceSparseType(device, kind)]

    def bind(self, node: Apply) -> Callable[..., Any]:
        minor_axis = 1 - major_axis(self.kind.format)
        return MatrixOfParts(self.kind, minor_axis, DeviceMatrix, SparsePattern, self.perform)

    def perform(self, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
        if data.shape != indices.shape:
            raise ShapeError(f"{self}: {data.shape} entries for {indices.shape} indices")
        lengths: Any = tuple(shape.tolist())
        n_minor = lengths[1 - major_axis(self.kind.format)]
        return DeviceMatrix(self.kind, data, SparsePattern(indices, indptr, lengths, n_minor))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [None]

    view_map = {0: (0, 1, 2)}

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        return [Assemble(self.kind)(*inputs)]


@record
class TransposedPattern(DeviceMatrixOp):
    """order, indices, indptr = for each entry of the transpose of x, in the format of x, its place
    in x, and the indices and pointers of the transpose; computed once for each pattern.
    """

    multiple_outputs = True

    def output_types(self, x: Any) -> list[Type]:
        device, kind = x.type.device, x.type.on_host
        n = kind.shape[1 - major_axis(kind.format)]
        pointers = None if n is None else n + 1
        shapes = (None,), (None,), (pointers,)
        return [DeviceType(device, kind.index_dtype, shape) for shape in shapes]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return MatrixTransposed(False, self.perform)

    def perform(self, x: Any) -> tuple[Any, ...]:
        return tuple(x.pattern.transposed())

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        stored, pointers = (DeviceLength(0)(z) for z in node.outputs[1:])
        return [(stored,), (stored,), (pointers,)]

    view_map = {0: (0,), 1: (0,), 2: (0,)}

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        (x,) = inputs
        data, indices, indptr, _ = parts_of(x)
        places = arange(ShapeI(0)(indices), dtype=x.type.index_dtype)
        return [*TransposeCompressed()(places, indices, indptr, n_minor(x, parts_of(x)))]


@record
class TransposedEntries(DeviceMatrixOp):
    """data = the entries of x in the order of its transpose; computed once for each value."""

    def output_types(self, x: Any) -> list[Type]:
        return [DeviceType(x.type.device, x.type.on_host.dtype, (None,))]

    def bind(self, node: Apply) -> Callable[..., Any]:
        return MatrixTransposed(True, self.perform)

    def perform(self, x: Any) -> Any:
        return x.transposed_data()

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(DeviceLength(0)(node.outputs[0]),)]

    view_map = {0: (0,)}

    def _outputs_on_host(self, *inputs: Any) -> list[Variable]:
        (x,) = inputs
        data, indices, indptr, _ = parts_of(x)
        return TransposeCompressed()(data, indices, indptr, n_minor(x, parts_of(x)))[:1]


def matrix_of(indices: Any, indptr: Any) -> Any:
    """Return the matrix on a device that a pattern is copied from; None if there is none."""
    copies = [computed_by(x, ToHost) for x in (indices, indptr)]
    if None in copies:
        return None
    first, second = (copy.inputs[0] for copy in copies)  # type: ignore[union-attr]
    node = computed_by(first, DeviceComponents)
    if node is None or second.owner is not node or (first.index, second.index) != (1, 2):
        return None
    return node.inputs[0]


def is_minor_length(n: Any, indices: Any, x: Any) -> bool:
    """Return whether ``n`` is the length that the indices of a matrix on a device count along."""
    kind, found = x.type.on_host, Shapes().intern(n)
    axis = 1 - major_axis(kind.format)
    if isinstance(found, int) or kind.shape[axis] is not None:
        return bool(found == kind.shape[axis])
    shape = indices.owner.inputs[0].owner.outputs[3]
    read: Any = getitem(shape, axis).owner
    made = found.owner
    return made is not None and made.op == read.op and made.inputs == [shape]
