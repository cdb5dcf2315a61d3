"""Reading and writing parts of arrays; positions; sorting."""

from __future__ import annotations

from typing import Any

import pytensor.tensor.basic as ptb
import pytensor.tensor.extra_ops as px
import pytensor.tensor.math as ptm
import pytensor.tensor.subtensor as psu
from pytensor.tensor.sort import ArgSortOp, SortOp

import symcomp.tensor as T
from symcomp.ops.convert import cast_to
from symcomp.ops.shapes.shape import shape_tuple
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.types import is_tensor


def _key(op: Any, node: Any, indices: Any) -> tuple[Any, ...] | None:
    """Return the index in the brackets; None if a part of it is a slice that is a variable."""
    first = len(node.inputs) - len(indices)
    if not all(is_tensor(v.type) for v in node.inputs[first:]):
        return None
    return tuple(psu.indices_from_subtensor(indices, op.idx_list))


@translate.register(psu.Subtensor)
@translate.register(psu.AdvancedSubtensor)
def _subtensor(op: Any, node: Any, x: Any, *indices: Any) -> Any:
    key = _key(op, node, indices)
    return NotImplemented if key is None else T.getitem(x, key)


@translate.register(psu.IncSubtensor)
@translate.register(psu.AdvancedIncSubtensor)
def _inc_subtensor(op: Any, node: Any, x: Any, y: Any, *indices: Any) -> Any:
    key = _key(op, node, indices)
    if key is None:
        return NotImplemented
    y = cast_to(y, x.dtype)
    masks = [k for k in key if getattr(k, "dtype", None) == "bool"]
    if masks and _is_whole_mask(x, y, key):
        return _masked(x, y, key[0], op.set_instead_of_inc)
    part = T.getitem(x, key)
    if op.set_instead_of_inc:
        return T.set_subtensor(part, y)
    if getattr(op, "ignore_duplicates", False):
        return T.set_subtensor(part, part + y)
    return T.inc_subtensor(part, y)


def _is_whole_mask(x: Any, y: Any, key: tuple[Any, ...]) -> bool:
    """Tell whether elements where a mask is true get one value, or a part of it for later axes."""
    return len(key) == 1 and y.ndim <= x.ndim - key[0].ndim


def _masked(x: Any, y: Any, mask: Any, sets: bool) -> Any:
    """``x`` with ``y`` set, or added, where a mask is true: elementwise, no positions are made.

    The mask must have the lengths of the first axes of x, as for NumPy.
    """
    lengths = shape_tuple(x)[: mask.ndim]
    checked = T.specify_shape(mask, [n if isinstance(n, int) else None for n in lengths])
    unknown = [
        axis
        for axis, n in enumerate(lengths)
        if not isinstance(n, int) or mask.type.shape[axis] is None
    ]
    if unknown:
        same = [T.eq(T.shape_i(mask, axis), T.shape_i(x, axis)) for axis in unknown]
        checked = T.Assert("boolean index: a length is not that of x", IndexError)(checked, *same)
    where = T.dimshuffle(checked, *range(mask.ndim), *["x"] * (x.ndim - mask.ndim))
    return T.switch(where, y if sets else x + y, x)


# -- positions


@translate.register(ptb.Nonzero)
def _nonzero(op: Any, node: Any, x: Any) -> Any:
    found = T.nonzero(x)
    return list(found) if isinstance(found, list | tuple) else [found]


@translate.register(px.RavelMultiIndex)
def _ravel_multi_index(op: Any, node: Any, *given: Any) -> Any:
    *indices, dims = given
    if op.mode != "raise":
        return NotImplemented
    return T.ravel_multi_index(tuple(indices), dims, order=op.order)


@translate.register(px.UnravelIndex)
def _unravel_index(op: Any, node: Any, indices: Any, dims: Any) -> Any:
    found = T.unravel_index(indices, dims, order=op.order)
    return list(found) if isinstance(found, list | tuple) else [found]


# -- order


@translate.register(SortOp)
def _sort(op: Any, node: Any, x: Any) -> Any:
    return T.sort(x, op.axis, op.kind)


@translate.register(ArgSortOp)
def _argsort(op: Any, node: Any, x: Any) -> Any:
    return T.argsort(x, op.axis, op.kind)


@translate.register(ptm.Argmax)
def _argmax(op: Any, node: Any, x: Any) -> Any:
    return T.argmax(x, axis=tuple(range(x.ndim)) if op.axis is None else tuple(op.axis))


@translate.register(px.SearchsortedOp)
def _searchsorted(op: Any, node: Any, x: Any, v: Any, sorter: Any = None) -> Any:
    return T.searchsorted(x, v, side=op.side, sorter=sorter)


@translate.register(px.Unique)
def _unique(op: Any, node: Any, x: Any) -> Any:
    found = T.unique(
        x,
        return_index=op.return_index,
        return_inverse=op.return_inverse,
        return_counts=op.return_counts,
        axis=op.axis,
    )
    found = list(found) if isinstance(found, list | tuple) else [found]
    if op.return_inverse:
        # PyTensor keeps the shape that positions had before NumPy 2.
        place = 1 + op.return_index
        found[place] = T.flatten(found[place])
    return found


@translate.register(px.Repeat)
def _repeat(op: Any, node: Any, x: Any, repeats: Any) -> Any:
    return T.repeat(x, repeats, axis=op.axis)


@translate.register(px.CumOp)
def _cumulative(op: Any, node: Any, x: Any) -> Any:
    return (T.cumsum if op.mode == "add" else T.cumprod)(x, axis=op.axis)


@translate.register(ptb.PermuteRowElements)
def _permute_row_elements(op: Any, node: Any, x: Any, y: Any) -> Any:
    return T.permute_row_elements(x, y, inverse=op.inverse)
