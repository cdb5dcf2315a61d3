"""``sparse.verify_grad``: derivatives of functions of sparse matrices against differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.compile.verify_grad import verify_grad as verify_dense
from symcomp.sparse.checking import of_entries


def verify_grad(
    fun: Callable[..., Any], pt: Sequence[Any], structured: bool = True, **options: Any
) -> None:
    """Compare the derivatives of a function of sparse matrices with finite differences.

    Parameters
    ----------
    fun : callable
        Maps variables to one variable, sparse or dense.
    pt : sequence of SciPy sparse arrays or matrices, and of arrays
    structured : bool
        True: with respect to the stored entries. False: to all elements, none of which may be 0;
        the result is made dense with its regular gradient.
    **options
        As for ``symcomp.gradient.verify_grad``.

    Raises
    ------
    GradientError
        Naming the argument and the entry that is wrong.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> sparse.verify_grad(sparse.sqr, [scipy.sparse.csr_array([[1.0, 0.0], [2.0, 3.0]])])
    """
    dense, arrays = of_entries(fun, pt, structured)
    verify_dense(dense, arrays, **options)


def verify_grad_sparse(
    op: Callable[..., Any], pt: Sequence[Any], structured: bool = False, **options: Any
) -> None:
    """Compare derivatives with finite differences, as Theano's function of this name does.

    It is ``verify_grad``, but by default with respect to all elements.

    Examples
    --------
    >>> import scipy.sparse
    >>> from symcomp import sparse
    >>> x = scipy.sparse.eye_array(2, format="csr")
    >>> sparse.verify_grad_sparse(sparse.sqr, [x], structured=True)
    """
    verify_grad(op, pt, structured, **options)


__all__ = ["verify_grad", "verify_grad_sparse"]
