"""A graph of PyTensor in mode SYMCOMP against the same graph, op by op, without rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode

import symcomp.pytensor_backend as backend

PLAIN = Mode("py", None)


def copies(values: Sequence[Any]) -> list[Any]:
    """Copy the values so that arrays share no memory with them."""
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


def compare(
    inputs: Sequence[Any],
    outputs: Any,
    values: Sequence[Any],
    *,
    fallbacks: Sequence[str] | None = (),
    rtol: float = 1e-9,
    atol: float = 0.0,
    updates: Any = None,
) -> Any:
    """Check values, dtypes and shapes against ``perform``; return the function.

    Parameters
    ----------
    inputs, outputs
        As for ``pytensor.function``.
    values : sequence
        Arguments.
    fallbacks : sequence of str or None
        The kinds of nodes that PyTensor's ``perform`` computes; None: not checked.
    """
    several = isinstance(outputs, list | tuple)
    wanted = pytensor.function(inputs, outputs, mode=PLAIN, on_unused_input="ignore")(
        *copies(values)
    )
    f = pytensor.function(
        inputs, outputs, mode="SYMCOMP", updates=updates, on_unused_input="ignore"
    )
    if fallbacks is not None:
        assert sorted(backend.fallbacks(f)) == sorted(fallbacks)
    given = copies(values)
    for _ in range(4):  # instruction by instruction, recorded, and replayed
        found = f(*given)
        for before, now in zip(values, given, strict=True):
            if isinstance(before, np.ndarray):
                np.testing.assert_array_equal(now, before, err_msg="an argument was changed")
        for got, want in zip(
            found if several else [found], wanted if several else [wanted], strict=True
        ):
            agree(got, want, rtol, atol)
    return f


def agree(got: Any, want: Any, rtol: float, atol: float) -> None:
    """Check that two results are the same."""
    if not hasattr(want, "dtype"):
        assert type(got) is type(want)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{got.dtype} instead of {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape} instead of {want.shape}"
    if want.dtype.kind in "fc":
        single = want.dtype.itemsize <= (4 if want.dtype.kind == "f" else 8)
        tolerance = max(rtol, 2e-3 if want.dtype == np.float16 else 2e-5 if single else 0)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=atol, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, want)
