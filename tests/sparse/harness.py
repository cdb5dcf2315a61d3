"""The check of functions of sparse matrices: values, formats, order, patterns, both derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.autodiff.check import check_derivatives
from symcomp.core.evaluate import evaluate
from symcomp.core.tensor import TensorType
from symcomp.sparse.components import Assemble, parts_of
from symcomp.sparse.type import SparseType, SparseVariable
from symcomp.sparse.values import components, is_canonical

# The rewrites of functions on the machine that needs no compiler.
MODE = symcomp.Mode(linker="vm", optimizer="fast_run")
RTOL = {"float32": 2e-5, "complex64": 2e-5}


def random_sparse(
    n: int,
    m: int,
    density: float = 0.3,
    dtype: str = "float64",
    seed: int = 0,
    zero: bool = True,
) -> Any:
    """Return a CSR array with normal entries, an explicit ``zero`` among them, and an empty row."""
    rng = np.random.default_rng(seed)
    mask = rng.random((n, m)) < density
    if n > 2:
        mask[n // 2] = False
    rows, columns = np.nonzero(mask)
    entries = rng.normal(size=len(rows))
    if np.dtype(dtype).kind == "c":
        entries = entries + 1j * rng.normal(size=len(rows))
    if np.dtype(dtype).kind in "iu":
        entries = np.round(entries * 4)
    if zero and len(entries):
        entries[-1] = 0
    with np.errstate(all="ignore"):
        return sp.csr_array((entries.astype(dtype), (rows, columns)), shape=(n, m))


def dense(value: Any) -> Any:
    """Return a value as an array."""
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def variable_for(value: Any, known: bool) -> Any:
    """Return an input for a value, with all lengths known or only lengths of 1."""
    if sp.issparse(value):
        shape = value.shape if known else (None, None)
        return SparseType(value.format, value.dtype, shape, "int32", "array")("s")
    shape = np.shape(value) if known else [1 if n == 1 else None for n in np.shape(value)]
    return TensorType(np.asarray(value).dtype, shape)("d")


def check(
    function: Callable[..., Any],
    *given: Any,
    expected: Any,
    formats: Any = ("csr", "csc"),
    grad: bool = True,
    known: bool = False,
    tolerance: float | None = None,
    order: int = 2,
) -> None:
    """Check ``function`` of variables for SciPy and NumPy values against ``expected``.

    Parameters
    ----------
    function : callable
        From sparse and tensor variables to one variable.
    *given : sparse or dense values
    expected : callable or array_like
        The dense result, or a function to it from the dense values.
    formats : sequence of str
        Sparse values are converted to each of these, one after the other.
    grad : bool
        Check derivatives with respect to stored entries and dense values, up to ``order``.
    known : bool
        Whether the types know the lengths.
    """
    wanted = np.asarray(expected(*map(dense, given)) if callable(expected) else expected)
    for format in formats:
        values = [v.asformat(format) if sp.issparse(v) else np.asarray(v) for v in given]
        inputs = [variable_for(v, known) for v in values]
        out = function(*inputs)
        before = [v.copy() for v in values]
        with np.errstate(all="ignore"):
            checked = {x: x.type.filter(v) for x, v in zip(inputs, values, strict=True)}
            plain = evaluate([out], checked)[0]
            fast = symcomp.function(inputs, out, mode=MODE, on_unused_input="ignore")(*values)
        for value, how in ((plain, "as written"), (fast, "rewritten")):
            check_value(out, value, wanted, f"{how}, {format}")
        for a, b in zip(values, before, strict=True):
            np.testing.assert_array_equal(dense(a), dense(b), err_msg="an input was modified")
        if isinstance(out, SparseVariable):
            same = out.type.values_eq_approx(plain, fast)
            assert same, f"{format}: patterns differ: {plain} as written, {fast} rewritten"
        if grad and out.dtype[0] in "fc":
            depth = order if format == formats[0] else 1
            check_both_derivatives(function, values, tolerance, depth)


def check_value(out: Any, value: Any, wanted: Any, what: str) -> None:
    """Check a value against the type of its variable, and the dense result that is wanted."""
    if isinstance(out, SparseVariable):
        assert sp.issparse(value), f"{what}: {type(value)}"
        assert out.type.filter(value, strict=True) is not None
        assert is_canonical(value), what
        is_array = isinstance(value, sp.sparray)
        assert is_array == (out.type.container == "array"), what
        parts = components(value)
        np.testing.assert_array_equal(value.toarray(), sp.coo_array(value).toarray())
        assert len(parts.data) == value.nnz or value.format == "bsr"
    else:
        assert isinstance(value, np.ndarray), f"{what}: {type(value)}"
    assert value.dtype == out.dtype, f"{what}: {value.dtype}, the type says {out.dtype}"
    assert out.dtype == wanted.dtype, f"{what}: {out.dtype}, expected {wanted.dtype}"
    assert value.shape == wanted.shape, f"{what}: shape {value.shape}, expected {wanted.shape}"
    lengths = zip(out.type.shape, value.shape, strict=True)
    assert all(n is None or n == m for n, m in lengths), f"{what}: {out.type}, {value.shape}"
    rtol = RTOL.get(str(wanted.dtype), 1e-11)
    np.testing.assert_allclose(dense(value), wanted, rtol, rtol, equal_nan=True, err_msg=what)


def of_entries(function: Callable[..., Any], values: Any) -> tuple[list[Any], Any, list[Any]]:
    """Return inputs that are dense, the result as a dense variable, and the inputs' values: of a
    sparse value the entries are the input.
    """
    inputs, arguments, arrays = [], [], []
    for value in values:
        if sp.issparse(value):
            parts = components(value)
            kind = SparseType(value.format, value.dtype, (None, None), "int32", "array")
            x = T.TensorType(value.dtype, (None,) * parts.data.ndim)("entries")
            places = [T.constant(v.astype("int32")) for v in parts[1:3]]
            shape = T.constant(np.asarray(value.shape, "int64"))
            inputs.append(x)
            arguments.append(Assemble(kind)(x, *places, shape))
            arrays.append(np.asarray(parts.data))
        else:
            inputs.append(variable_for(value, False))
            arguments.append(inputs[-1])
            arrays.append(value)
    out = function(*arguments)
    if isinstance(out, SparseVariable):
        out = sparse.dense_from_sparse(out)
    return inputs, out, arrays


def check_both_derivatives(
    function: Callable[..., Any], values: Any, tolerance: float | None, order: int
) -> None:
    """Check L-op and R-op against finite differences, and those of the gradient, too."""
    inputs, out, arrays = of_entries(function, values)
    wrt = [x for x in inputs if x.dtype[0] in "fc"]
    if not wrt:
        return
    rng = np.random.default_rng(1)
    with np.errstate(all="ignore"):
        check_derivatives(inputs, out, arrays, rng, None, tolerance, tolerance)
        if order < 2:
            return
        weights = T.constant(rng.normal(size=evaluate([out], dict(zip(inputs, arrays)))[0].shape))  # noqa: B905
        cost = (out.real * weights).sum() + (out.real**2).sum()
        for g in symcomp.grad(cost, wrt, disconnected_inputs="ignore"):
            used = [g.owner is not None]
            if all(used):
                check_derivatives(inputs, g, arrays, rng, None, tolerance, tolerance)


def pattern_of(value: Any) -> Any:
    """Return the places of the stored entries of a value, as two arrays."""
    coo = value.tocoo()
    order = np.lexsort((coo.col, coo.row))
    return coo.row[order], coo.col[order]


def assert_same_pattern(a: Any, b: Any) -> None:
    """Check that two sparse values store entries at the same places."""
    for x, y in zip(pattern_of(a), pattern_of(b), strict=True):
        np.testing.assert_array_equal(x, y)


def programs_use(function: Any, *names: str) -> bool:
    """Return whether the rewritten graph of a function has ops of these classes."""
    found = {type(node.op).__name__ for node in function.maker.fgraph.nodes}
    return set(names) <= found


__all__ = [
    "MODE", "assert_same_pattern", "check", "dense", "parts_of", "pattern_of", "programs_use",
    "random_sparse",
]  # fmt: skip
