"""Products with sparse matrices that are constants, as those of data and of neighbours are."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Constant

from symcomp.lazy import lazy_module
from symcomp.ops.convert import cast_to
from symcomp.pytensor_backend.dispatch import OF_LIBRARIES
from symcomp.pytensor_backend.types import is_tensor

sparse = lazy_module("symcomp.sparse")


def _product(op: Any, node: Any, *args: Any) -> Any:
    """Multiply a constant sparse matrix and a dense one; NotImplemented for other sparse ones."""
    out = node.outputs[0].type
    pairs = list(zip(node.inputs, args, strict=True))
    dense = [is_tensor(v.type) for v, _ in pairs]
    if not is_tensor(out) or sorted(dense) != [False, True]:
        return NotImplemented
    if not isinstance(node.inputs[dense.index(False)], Constant):
        return NotImplemented
    return sparse.dot(
        *(
            cast_to(x, out.dtype) if full else _constant(v.data, out.dtype)
            for (v, x), full in zip(pairs, dense, strict=True)
        )
    )


def _constant(value: Any, dtype: str) -> Any:
    return sparse.as_sparse_variable(value.astype(dtype))


for _name in ("Dot", "StructuredDot", "TrueDot"):
    OF_LIBRARIES["pytensor.sparse.math", _name] = _product
