"""Products whose factors lie on a device as bfloat16: they are read as they are, and multiplied in
float32.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from symcomp.core.dtype import STORAGE
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.storage import is_stored
from symcomp.ops.convert import cast_to
from symcomp.ops.linalg.blas import BatchedGemm, Gemm, Gemv, Ger, ScaledDot
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.rule import computed_by
from symcomp.rewrite.views import argument

# The positions of the two factors among the inputs, by the class of the op.
FACTORS: dict[type, tuple[int, int]] = {
    Dot: (0, 1), BatchedDot: (0, 1), ScaledDot: (1, 2), Gemm: (2, 3), BatchedGemm: (2, 3),
    Gemv: (2, 3), Ger: (2, 3),
}  # fmt: skip


@record
class StoredProduct(Op):
    """The result of ``product``, in the dtype that its factors, of a storage dtype, compute in."""

    product: Op

    no_derivative = "it is made when regions are, after derivatives"

    def output_types(self, *inputs: Any) -> Any:
        wide = [cast_to(x, STORAGE[x.dtype]) if is_stored(x) else x for x in inputs]
        return self.product.output_types(*wide)

    def perform(self, *values: Any) -> Any:
        wide = [v.astype(STORAGE[v.dtype.name]) if v.dtype.name in STORAGE else v for v in values]
        return self.product.perform(*wide)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return self.product.infer_shape(node, shapes)

    def __str__(self) -> str:
        return f"Stored{self.product}"


def _before_cast(x: Any) -> Any:
    """Return the variable of a storage dtype that ``x`` is, cast; None if there is none."""
    view = computed_by(x, DimShuffle)
    if view is not None:
        found = _before_cast(view.inputs[0])
        return None if found is None else view.op(found)
    found = argument(x, "cast")
    return found if found is not None and is_stored(found) else None


def multiply_stored(graph: FunctionGraph, stays: Container[Apply]) -> bool:
    """Let products read factors that are cast from a storage dtype before the cast; tell whether
    there are any.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    stays : container of Apply
        The nodes on the host.
    """
    found = False
    for node in graph.toposort():
        positions = FACTORS.get(type(node.op))
        if positions is None or node in stays or node.op.destroy_map:
            continue
        x, y = (_before_cast(node.inputs[i]) for i in positions)
        (out,) = node.outputs
        if x is None or y is None or x.dtype != y.dtype or out.dtype != STORAGE[x.dtype]:
            continue
        inputs = list(node.inputs)
        for i, factor in zip(positions, (x, y), strict=True):
            inputs[i] = factor
        new = StoredProduct(node.op).make_node(*inputs).outputs[0]
        new.source = out.source
        graph.replace(out, new)
        found = True
    return found
