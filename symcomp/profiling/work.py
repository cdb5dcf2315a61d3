"""The least work of an instruction for values of given shapes: bytes to move, operations to
compute.

Bytes count only the data that any implementation must read and write: each operand once; of an
indexed operand, only the part. Operations are counted where they are known: 2 m n k for products;
for elementwise expressions and reductions each scalar function once for each element, whatever its
cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.tensor import TensorType
from symcomp.cvm.kernels import formula_of
from symcomp.ops.formulas.formula import AXIS_FUNCTIONS, Formula, folded_axes
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.determinant import Det, SLogDet
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.linalg.stable_linalg import StableInverse, StableSLogDet
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction
from symcomp.vm.tally import Shapes

# Positions of the factors of products among the inputs.
FACTORS: dict[type, tuple[int, int]] = {
    Dot: (0, 1),
    BatchedDot: (0, 1),
    ScaledDot: (1, 2),
    Gemm: (2, 3),
    BatchedGemm: (2, 3),
    Gemv: (2, 3),
    Ger: (2, 3),
}
# Operations on square matrices, in cubes of their order (Golub and Van Loan, Matrix Computations).
CUBES: dict[type, float] = {
    Cholesky: 1 / 3,
    Det: 2 / 3,
    MatrixInverse: 2.0,
    SLogDet: 2 / 3,
    StableInverse: 2.0,
    StableSLogDet: 2 / 3,
}
# Operations on systems, by the structure of the matrix, without those for right sides.
# Bands are known when their systems are solved.
CUBES_OF_SYSTEMS = {
    "general": 2 / 3,
    "hermitian": 1 / 3,
    "lower_triangular": 0.0,
    "positive_definite": 1 / 3,
    "symmetric": 1 / 3,
    "upper_triangular": 0.0,
}
# An along-axis function is a maximum, a difference, an exponential, a sum and a quotient.
LINE_OPERATIONS = 5


def bytes_moved(step: Instruction, inputs: Shapes | None, outputs: Shapes | None) -> int | None:
    """Return the bytes that an instruction must read and write; None if not known.

    Parameters
    ----------
    step : Instruction
    inputs, outputs : tuple of shapes
        The shapes of its values, None for values that are no arrays. Both None: various shapes.
    """
    if inputs is None or outputs is None or step.claims:
        return None
    if step.opcode is Opcode.COPY:
        return _size(inputs[0]) * 2 * _itemsize(step.compute) if inputs[0] is not None else None
    node = step.node
    if step.opcode is not Opcode.CALL or node is None or node.op.inner_graphs():
        return None
    read = [_bytes(x, shape) for x, shape in zip(node.inputs, inputs, strict=True)]
    written = [_bytes(z, shape) for z, shape in zip(node.outputs, outputs, strict=True)]
    return _moved(node, read, written)


def _moved(node: Apply, read: list[int], written: list[int]) -> int:
    op = node.op
    if isinstance(op, Subtensor):
        is_view = bool(op.view_map.get(0))
        return 0 if is_view else 2 * sum(written) + sum(read[1:])
    if isinstance(op, IncSubtensor):
        part = read[1] * (2 if op.set else 3) + sum(read[2:])
        return part if op.inplace else part + 2 * read[0]
    if isinstance(op, Alloc | Shape | ShapeI):
        return sum(written)
    made = [n for j, n in enumerate(written) if not op.view_map.get(j)]
    return sum(read) + sum(made) if made else 0


def operations(node: Apply | None, inputs: Shapes | None, outputs: Shapes | None) -> int | None:
    """Return the number of arithmetic operations of a node; None if not known."""
    if node is None or inputs is None or outputs is None or None in outputs:
        return None
    kind = type(node.op)
    if kind in FACTORS:
        return _products(node, [inputs[i] for i in FACTORS[kind]], outputs[0])
    if kind in CUBES and inputs[0]:
        return round(CUBES[kind] * _size(inputs[0]) * inputs[0][-1])
    if isinstance(node.op, Solve) and inputs[0] and node.op.A_structure in CUBES_OF_SYSTEMS:
        return _system(node.op, inputs[0], inputs[1])
    formula = formula_of(node)
    if formula is None or any(shape is None for shape in inputs):
        return None
    return _elements(formula, [shape for shape in inputs if shape is not None])


def _products(node: Apply, factors: Sequence[Any], result: Any) -> int | None:
    """Return 2 b m n k, from the sizes b m k, b k n and b m n."""
    if any(shape is None for shape in (*factors, result)):
        return None
    batched = isinstance(node.op, BatchedDot | BatchedGemm)
    batch = factors[0][0] if batched else 1
    sizes = _size(factors[0]) * _size(factors[1]) * _size(result)
    return round(2 * sqrt(sizes / batch)) if sizes else 0


def _system(op: Solve, a: Any, b: Any) -> int:
    """Count a decomposition, and an elimination with each triangle for each right side."""
    eliminated = _size(b) * a[-1] * (1 if op.is_triangular else 2)
    return round(CUBES_OF_SYSTEMS[op.A_structure] * _size(a) * a[-1]) + eliminated


def _elements(formula: Formula, inputs: Sequence[tuple[int, ...]]) -> int:
    """Count the steps of a formula, each once for each of its elements."""
    shapes = list(inputs)
    rank = len(shapes[0])
    shapes += [(1,) * rank] * len(formula.literals)
    total = 0
    for step in formula.steps:
        arguments = [shapes[a] for a in step.arguments]
        # Lengths are equal, or 1.
        shape = tuple(max(n) if 0 not in n else 0 for n in zip(*arguments, strict=True))
        weight = LINE_OPERATIONS if isinstance(step.function, AXIS_FUNCTIONS) else 1
        total += weight * prod(shape)
        axes = folded_axes(step.function)
        shapes.append(tuple(1 if a in axes else n for a, n in enumerate(shape)))
    return total


def _size(shape: Any) -> int:
    return prod(shape)


def _itemsize(copier: Any) -> int:
    """Return the itemsize of the dtype that a type's copier copies."""
    kind = getattr(copier, "__self__", None)
    return kind.numpy_dtype.itemsize if isinstance(kind, TensorType) else 0


def _bytes(variable: Any, shape: Any) -> int:
    if shape is None or not isinstance(variable.type, TensorType):
        return 0
    return prod(shape) * int(variable.type.numpy_dtype.itemsize)
