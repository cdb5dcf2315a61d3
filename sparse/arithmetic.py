"""Sums, products and comparisons, element by element, of sparse matrices with one another and with
dense tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_common, as_tensor_variable, cast_to, is_python_number
from symcomp.ops.elementwise.scalar_math import add as dense_add
from symcomp.ops.elementwise.scalar_math import mul as dense_mul
from symcomp.ops.elementwise.scalar_math import true_div
from symcomp.ops.shapes.axes import dimshuffle
from symcomp.sparse.components import parts_of, with_data
from symcomp.sparse.convert import cast, compressed, dense_from_sparse
from symcomp.sparse.op import as_sparse_or_tensor_variable, as_sparse_variable, common_dtype
from symcomp.sparse.pairwise import COMPARISONS, AddSS, CompareSS, ExtremeSS, MulSS
from symcomp.sparse.products import matched
from symcomp.sparse.structure import neg
from symcomp.sparse.type import SparseVariable
from symcomp.sparse.with_dense import MulSD, dense_entries

# -- functions of users


def _dense_operand(name: str, x: SparseVariable, dense: Any) -> Any:
    """Return a dense operand as a matrix whose lengths are those of ``x``, or 1."""
    if is_python_number(dense):
        (dense,) = as_common(dense, like=[x.dtype])
    dense = as_tensor_variable(dense)
    if dense.ndim > 2:
        raise ShapeError(f"{name}: {dense} ({dense.type}) has more axes than {x} ({x.type})")
    order = ("x",) * (2 - dense.ndim) + tuple(range(dense.ndim))
    return dimshuffle(dense, *order)


def add(x: Any, y: Any) -> Any:
    """Add two matrices of which at least one is sparse.

    Parameters
    ----------
    x, y : matrix, or a tensor that broadcasts to one
        Two sparse matrices give a sparse one, in the format of the first; a sparse and a dense one
        a dense one.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.add(x, x).eval({x: scipy.sparse.diags_array([1.0, 2.0])}).toarray()
    array([[2., 0.],
           [0., 4.]])
    """
    x, y = _operands("add", x, y)
    if isinstance(x, SparseVariable) and isinstance(y, SparseVariable):
        return AddSS()(*matched(x, y))
    return dense_add(_dense(x), _dense(y))


def _dense(x: Any) -> Any:
    return dense_from_sparse(x) if isinstance(x, SparseVariable) else x


def _operands(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands, at least one of them sparse; numbers adapt to the dtype of the other."""
    found = []
    for v, other in ((x, y), (y, x)):
        if is_python_number(v) and isinstance(other, SparseVariable):
            (v,) = as_common(v, like=[other.dtype])
        found.append(as_sparse_or_tensor_variable(v))
    if not any(isinstance(v, SparseVariable) for v in found):
        raise DTypeError(f"{name}: neither {found[0]} nor {found[1]} is sparse: use symcomp.tensor")
    return found[0], found[1]


def sub(x: Any, y: Any) -> Any:
    """Subtract two matrices of which at least one is sparse; see ``add``.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.sub(sparse.eye(2), sparse.eye(2))).eval()
    array([[0., 0.],
           [0., 0.]])
    """
    x, y = _operands("sub", x, y)
    return add(x, neg(y) if isinstance(y, SparseVariable) else -y)


def mul(x: Any, y: Any) -> Any:
    """Multiply, element by element, two matrices of which at least one is sparse.

    Parameters
    ----------
    x, y : matrix, or a tensor that broadcasts to one
        The product is sparse: with the entries that both store, or with those of the sparse one. A
        dense vector is a row.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.mul(x, np.array([[10.0], [20.0]]))
    >>> z.eval({x: scipy.sparse.diags_array([1.0, 2.0])}).diagonal()
    array([10., 40.])
    """
    x, y = _operands("mul", x, y)
    if isinstance(x, SparseVariable) and isinstance(y, SparseVariable):
        return MulSS()(*matched(x, y))
    s, dense = (x, y) if isinstance(x, SparseVariable) else (y, x)
    s, dense = compressed(s), _dense_operand("mul", s, dense)
    dtype = common_dtype(s.dtype, dense.dtype)
    return MulSD()(cast(s, dtype), cast_to(dense, dtype))


def div(x: Any, y: Any) -> Any:
    """Divide the stored entries of a sparse matrix by a number or a dense tensor.

    Parameters
    ----------
    x : sparse matrix
    y : number, vector (a row), or matrix

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> sparse.div(x, 2.0).eval({x: scipy.sparse.diags_array([1.0, 2.0])}).diagonal()
    array([0.5, 1. ])
    """
    x = compressed(x)
    if isinstance(y, SparseVariable):
        raise DTypeError(
            f"div: {y} ({y.type}) is sparse: where it stores nothing the quotient is not finite; "
            "divide by y.toarray(), or multiply by a matrix of reciprocals"
        )
    parts = parts_of(x)
    below = dense_entries(x, _dense_operand("div", x, y), parts)
    return with_data(x, true_div(parts.data, below), parts)


def _extreme(name: str, x: Any, y: Any) -> Any:
    x, y = _operands(name, x, y)
    if isinstance(x, SparseVariable) and isinstance(y, SparseVariable):
        return ExtremeSS(name)(*matched(x, y))
    raise DTypeError(
        f"{name}: {x.type} and {y.type}: both must be sparse; structured_{name} compares the "
        "stored entries with a number"
    )


def maximum(x: Any, y: Any) -> Any:
    """Return the greater of two sparse matrices, element by element.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.maximum(sparse.eye(2), sparse.neg(sparse.eye(2)))).eval()
    array([[1., 0.],
           [0., 1.]])
    """
    return _extreme("maximum", x, y)


def minimum(x: Any, y: Any) -> Any:
    """Return the lesser of two sparse matrices, element by element.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.minimum(sparse.eye(2), sparse.neg(sparse.eye(2)))).eval()
    array([[-1.,  0.],
           [ 0., -1.]])
    """
    return _extreme("minimum", x, y)


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def compare(x: Any, y: Any) -> Any:
        x, y = _operands(name, x, y)
        if isinstance(x, SparseVariable) and isinstance(y, SparseVariable):
            return CompareSS(name)(*matched(x, y))
        return COMPARISONS[name][1](_dense(x), _dense(y))

    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = (
        f"Compare two matrices, at least one of them sparse, element by element ({name}): two "
        "sparse ones give a sparse matrix of bool, else the result is dense.\n\n"
        "Examples\n--------\n>>> from symcomp import sparse\n"
        f">>> sparse.{name}(sparse.csr_dmatrix('A'), 0.0).type\n"
        "TensorType(bool, (None, None))\n"
    )
    return compare


eq, neq, lt, gt, le, ge = map(_comparison, COMPARISONS)


def _of_pair(name: str, function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> Any:
        return function(x, y)

    right = {"s": "sparse.eye(2)", "d": "[[1.0, 2.0], [3.0, 4.0]]", "v": "[1.0, 2.0]"}[name[-1]]
    kind = "TensorType(" if name == "add_s_d" else "SparseType(csr, "
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = (
        f"{doc}; see ``{function.__name__}``.\n\nExamples\n--------\n"
        f">>> from symcomp import sparse\n>>> sparse.{name}(sparse.eye(2), {right}).type\n"
        f"{kind}float64, (2, 2))\n"
    )
    return apply


add_s_s = _of_pair("add_s_s", add, "Add two sparse matrices")
add_s_d = _of_pair("add_s_d", add, "Add a sparse and a dense matrix")
mul_s_s = _of_pair("mul_s_s", mul, "Multiply two sparse matrices element by element")
mul_s_d = _of_pair("mul_s_d", mul, "Multiply a sparse and a dense matrix element by element")
mul_s_v = _of_pair("mul_s_v", mul, "Multiply each row of a sparse matrix by a dense vector")


def add_s_s_data(x: Any, y: Any) -> Any:
    """Add two sparse matrices that have the same pattern: their stored entries are added.

    Raises
    ------
    ShapeError
        When the function runs, if they store different numbers of entries.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.add_s_s_data(sparse.eye(2), sparse.eye(2))).eval()
    array([[2., 0.],
           [0., 2.]])
    """
    x, y = matched(as_sparse_variable(x), as_sparse_variable(y))
    parts = parts_of(x)
    return with_data(x, dense_add(parts.data, parts_of(y).data), parts)


def structured_add_s_v(x: Any, y: Any) -> Any:
    """Add a dense vector to each row of a sparse matrix, at its stored entries alone.

    Parameters
    ----------
    x : sparse matrix, (n, m)
    y : vector, (m,)

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.structured_add_s_v(x, [10.0, 20.0])
    >>> z.eval({x: scipy.sparse.diags_array([1.0, 2.0])}).toarray()
    array([[11.,  0.],
           [ 0., 22.]])
    """
    x = compressed(x)
    dense = as_tensor_variable(y)
    if dense.ndim != 1:
        raise ShapeError(f"structured_add_s_v: {dense} ({dense.type}) is no vector")
    parts = parts_of(x)
    dtype = common_dtype(x.dtype, dense.dtype)
    row = dimshuffle(cast_to(dense, dtype), "x", 0)
    return with_data(x, dense_add(cast_to(parts.data, dtype), dense_entries(x, row, parts)), parts)


def _scaled(name: str, x: Any, s: Any, order: tuple[Any, ...]) -> Any:
    x, s = compressed(x), as_tensor_variable(s)
    if s.ndim != 1:
        raise ShapeError(f"{name}: {s} ({s.type}) is no vector")
    parts = parts_of(x)
    dtype = common_dtype(x.dtype, s.dtype)
    scale = dense_entries(x, dimshuffle(cast_to(s, dtype), *order), parts)
    return with_data(x, dense_mul(cast_to(parts.data, dtype), scale), parts)


def col_scale(x: Any, s: Any) -> Any:
    """Multiply each column of a sparse matrix by an element of a vector.

    Parameters
    ----------
    x : sparse matrix, (n, m)
    s : vector, (m,)

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = sparse.csr_matrix("x")
    >>> z = sparse.col_scale(x, [10.0, 20.0])
    >>> z.eval({x: scipy.sparse.csr_array([[1.0, 2.0]])}).toarray()
    array([[10., 40.]])
    """
    return _scaled("col_scale", x, s, ("x", 0))


def row_scale(x: Any, s: Any) -> Any:
    """Multiply each row of a sparse matrix by an element of a vector.

    Parameters
    ----------
    x : sparse matrix, (n, m)
    s : vector, (n,)

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.toarray(sparse.row_scale(sparse.eye(2), [3.0, 4.0])).eval()
    array([[3., 0.],
           [0., 4.]])
    """
    return _scaled("row_scale", x, s, (0, "x"))


__all__ = [
    "add", "add_s_d", "add_s_s", "add_s_s_data", "col_scale", "div",
    "eq", "ge", "gt", "le", "lt", "maximum", "minimum", "mul", "mul_s_d",
    "mul_s_s", "mul_s_v", "neq", "row_scale", "structured_add_s_v", "sub",
]  # fmt: skip
