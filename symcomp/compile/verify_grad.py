"""verify_grad: compare a function's derivatives, compiled, with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.autodiff.check import check_derivatives
from symcomp.compile.function import function
from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.sparse_values import is_sparse_value
from symcomp.core.tensor import TensorType, refuse_masked
from symcomp.errors import DTypeError
from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.scalar_math import cast

sparse_checking = lazy_module("symcomp.sparse.checking")


def verify_grad(
    fun: Callable[..., Any],
    pt: Sequence[Any],
    n_tests: int = 2,
    rng: np.random.Generator | None = None,
    eps: float | None = None,
    out_type: Any = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
    forward: bool = True,
) -> None:
    """Compare the symbolic derivatives of a function with central finite differences.

    Parameters
    ----------
    fun : callable
        Maps variables to one variable of any rank. Integers, as those of ``argmax``, have the
        derivative zero.
    pt : sequence of array_like, and of SciPy's sparse arrays and matrices
        The point to differentiate at: one floating array per argument. Integer arrays are held
        constant. Derivatives with respect to a sparse argument are those in its stored entries.
    n_tests : int
        The number of random projections to check.
    rng : numpy.random.Generator, optional
        Draws the projections; by default seeded with 0.
    eps : float, optional
        Step; by default the cube root of the rounding unit, about.
    out_type : optional
        Dtype of the output, if another than the function's own is wanted.
    abs_tol, rel_tol : float, optional
        An element is wrong if it differs by more than ``abs_tol + rel_tol * size``.
    mode : Mode or str, optional
        The mode to compile in.
    cast_to_output_type : bool
        Cast the output to ``out_type``.
    no_debug_ref : bool
        Accepted for Theano's sake.
    forward : bool
        Check the R-op too, against the same differences.

    Raises
    ------
    GradientError
        Naming the argument and element that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> symcomp.gradient.verify_grad(lambda x: T.tanh(x) ** 2, [np.array([0.1, -2.0])])
    """
    if not isinstance(pt, list | tuple):
        raise TypeError(f"verify_grad: pt must be a list, one array per argument, got {pt!r}")
    refuse_masked(pt)
    if any(map(is_sparse_value, pt)):
        fun, pt = sparse_checking.of_entries(fun, pt)
    arrays = [np.array(p) for p in pt]
    for position, array in enumerate(arrays):
        if array.dtype.name not in dtypes.ALL:
            raise DTypeError(f"verify_grad: pt[{position}] has dtype {array.dtype}")
    if all(dtypes.is_discrete(a.dtype.name) for a in arrays):
        raise DTypeError(
            "verify_grad: no argument is floating, so there is nothing to differentiate"
        )
    inputs = [
        TensorType(a.dtype, [1 if n == 1 else None for n in a.shape])(f"input {i}")
        for i, a in enumerate(arrays)
    ]
    output = fun(*inputs)
    if not isinstance(output, Variable):
        raise TypeError(f"verify_grad: fun returned {output!r}, not a tensor variable")
    if cast_to_output_type and out_type is not None:
        output = cast(output, out_type)

    def compile_graph(
        xs: Sequence[Variable], ys: Sequence[Variable]
    ) -> Callable[[Sequence[Any]], list[Any]]:
        compiled = function(list(xs), list(ys), mode=mode, on_unused_input="ignore")
        return lambda values: compiled(*values)

    generator = np.random.default_rng(0) if rng is None else rng
    for _ in range(n_tests):
        check_derivatives(
            inputs, output, arrays, generator, eps, abs_tol, rel_tol, compile_graph, forward
        )
