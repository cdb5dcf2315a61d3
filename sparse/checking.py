"""Derivatives of functions of sparse matrices, checked as those of their entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.ops.convert import as_tensor_variable
from symcomp.sparse.components import Assemble
from symcomp.sparse.convert import csc_from_dense, csr_from_dense, dense_from_sparse
from symcomp.sparse.type import SparseVariable, type_of_value
from symcomp.sparse.values import components, is_sparse


def of_entries(
    function: Callable[..., Any], points: Sequence[Any], structured: bool = True
) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function of dense tensors and its arguments, for one of sparse matrices.

    Parameters
    ----------
    function : callable
        Maps sparse and tensor variables to a sparse or tensor variable.
    points : sequence of sparse values and arrays
    structured : bool
        True: the stored entries of a sparse argument are the arguments. False: all its elements
        are, so that none of them may be 0.

    Returns
    -------
    callable, list of arrays
        The function makes a sparse result dense.
    """
    makers: list[Callable[[Any], Any]] = []
    arrays: list[Any] = []
    for point in points:
        if not is_sparse(point):
            makers.append(lambda x: x)
            arrays.append(np.array(point))
        elif structured:
            kind = type_of_value(point)
            value = kind.filter(point)
            data, *places = components(value)
            constants = [as_tensor_variable(np.asarray(v)) for v in places[:2]]
            shape = as_tensor_variable(np.asarray(value.shape, np.int64))
            makers.append(_assembling(kind, (*constants, shape)))
            arrays.append(np.array(data))
        else:
            make = csc_from_dense if point.format == "csc" else csr_from_dense
            makers.append(make)
            arrays.append(point.toarray())

    def dense(*tensors: Any) -> Any:
        out = function(*(make(x) for make, x in zip(makers, tensors, strict=True)))
        if isinstance(out, SparseVariable):
            return dense_from_sparse(out, structured)
        return out

    return dense, arrays


def _assembling(kind: Any, pattern: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda data: Assemble(kind)(data, *pattern)
