"""SparseOp: an op whose inputs or outputs are sparse matrices, computed with SciPy.

``perform`` takes and gives whatever SciPy does; ``bind`` checks the arguments, so that no memory
outside their arrays is read, and brings results to the format, dtypes and order of their types.
Compiled functions do not run these ops where a lowering (``lowering.py``) replaces them by ops on
the arrays of sparse matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.errors import DTypeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.indexing.subtensors import getitem
from symcomp.sparse.type import SparseConstant, SparseType, SparseVariable, type_of_value
from symcomp.sparse.values import canonical, check_value, is_sparse


class SparseOp(Op):
    """Base of the ops on sparse variables."""

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Return ``perform`` between checked arguments and results of the types of ``node``."""
        sparse = [isinstance(x.type, SparseType) for x in node.inputs]
        kinds = [out.type for out in node.outputs]
        several = self.multiple_outputs

        def compute(*given: Any) -> Any:
            pairs = zip(given, sparse, strict=True)
            result = self.perform(*(_checked(v) if is_matrix else v for v, is_matrix in pairs))
            found = result if several else (result,)
            made = tuple(_made(v, kind) for v, kind in zip(found, kinds, strict=True))
            return made if several else made[0]

        return compute

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return None for each output that is no tensor."""
        if any(isinstance(out.type, TensorType) for out in node.outputs):
            raise NotImplementedError(f"{type(self).__name__} does not say its shape")
        return [None] * len(node.outputs)


def _checked(value: Any) -> Any:
    check_value(value)
    return canonical(value)


def _made(value: Any, kind: Any) -> Any:
    if isinstance(kind, SparseType):
        return kind.finish(value)
    if is_sparse(value):
        value = value.toarray()
    return np.asarray(value, kind.numpy_dtype)


# -- arguments


def as_sparse_variable(x: Any, name: str | None = None, ndim: int | None = None) -> Any:
    """Return ``x`` as a sparse variable.

    Parameters
    ----------
    x : sparse variable, or sparse array or matrix of SciPy
        A value becomes a constant.
    name : str, optional
        The name of the constant.
    ndim : int, optional
        Accepted for Theano's sake; a sparse matrix has 2 axes.

    Raises
    ------
    DTypeError
        If ``x`` is not sparse.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp.sparse import as_sparse_variable
    >>> as_sparse_variable(scipy.sparse.eye_array(2, format="csr")).type
    SparseType(csr, float64, (2, 2), array)
    """
    if isinstance(x, Apply):
        (x,) = x.outputs
    if ndim not in (None, 2):
        raise DTypeError(f"as_sparse_variable: ndim={ndim}: a sparse matrix has 2 axes")
    if isinstance(x, SparseVariable):
        return x
    if is_sparse(x):
        return sparse_constant(x, name)
    kind = x.type if isinstance(x, Variable) else type(x).__name__
    raise DTypeError(
        f"{x!r:.80} ({kind}) is not sparse: convert a dense matrix by sparse.csr_from_dense(x)"
    )


def sparse_constant(x: Any, name: str | None = None) -> SparseConstant:
    """Return a constant that is a copy of a SciPy sparse array or matrix."""
    if not is_sparse(x):
        raise DTypeError(
            f"constant: {x!r:.80} ({type(x).__name__}) is not a sparse matrix of SciPy"
        )
    kind = type_of_value(x, shape=x.shape)
    made = kind.make_constant(x.copy(), name)
    assert isinstance(made, SparseConstant)
    return made


def as_sparse_or_tensor_variable(x: Any, name: str | None = None) -> Any:
    """Return ``x`` as a sparse variable if it is sparse, else as a tensor variable.

    Examples
    --------
    >>> from symcomp import sparse
    >>> sparse.as_sparse_or_tensor_variable([1.0, 2.0]).type
    TensorType(float64, (2,))
    """
    if isinstance(x, SparseVariable) or is_sparse(x):
        return as_sparse_variable(x, name)
    return as_tensor_variable(x, name)


def common_dtype(*names: str) -> str:
    """Return the dtype that results of several sparse or dense operands have."""
    return dtypes.working(dtypes.upcast(*names))


# -- lengths


@record
class SparseShape(SparseOp):
    """z = the numbers of rows and columns of x.   (n, m) -> (2,), int64"""

    no_derivative = "lengths do not depend on values"

    def as_inputs(self, x: Any) -> list[Variable]:
        return [as_sparse_variable(x)]

    def output_types(self, x: Any) -> list[TensorType]:
        return [TensorType("int64", (2,))]

    def perform(self, x: Any) -> Any:
        return np.asarray(x.shape, np.int64)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [(2,)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


def length(x: SparseVariable, axis: int) -> Any:
    """Return the length of an axis of a sparse variable: an int if known, else an int64 scalar."""
    known = x.type.shape[axis]
    return getitem(SparseShape()(x), axis) if known is None else known


def known_length(n: Any) -> int | None:
    """Return the value of a length that is known, else None."""
    if isinstance(n, int | np.integer):
        return int(n)
    return int(n.data) if isinstance(n, Constant) else None


def as_scalar(n: Any) -> TensorVariable:
    """Return a length as an int64 scalar variable."""
    return as_tensor_variable(n, dtype="int64") if isinstance(n, int | np.integer) else n
