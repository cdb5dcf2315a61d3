"""Summarize the contents of an array: its range, its NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.dtype import is_numeric, kind
from symcomp.core.sparse_values import is_sparse_value
from symcomp.core.tensor import describe_value


def range_of(array: Any) -> str:
    """Return as text the least and greatest finite elements, and how many are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from symcomp.core.values import range_of
    >>> range_of(np.array([1.0, np.nan, 3.0, np.inf]))
    '1 to 3, 1 NaN, 1 inf'
    """
    array = np.asarray(array)
    if array.size == 0:
        return "empty"
    letter = kind(array.dtype)
    if letter == "b":
        return f"{int(array.sum())} of {array.size} true"
    if letter not in "iufc":
        return f"{array.size} of {array.dtype}"
    finite = array[np.isfinite(array)] if letter in "fc" else array
    of = "abs " if letter == "c" else ""
    size = np.abs(finite) if letter == "c" else finite
    parts = []
    if size.size:
        least, most = size.min().item(), size.max().item()
        form = "" if letter in "iu" else ".6g"
        same = f"{of}{least:{form}}"
        parts.append(same if least == most else f"{same} to {most:{form}}")
    if letter in "fc":
        nan = int(np.isnan(array).sum())
        infinite = int(np.isinf(array).sum())
        parts += [f"{n} {word}" for n, word in ((nan, "NaN"), (infinite, "inf")) if n]
    return ", ".join(parts)


def describe_contents(value: Any) -> str:
    """Describe a value as ``describe_value`` does, with the range of an array."""
    if isinstance(value, np.ndarray) and is_numeric(value.dtype):
        layout = "" if value.flags.c_contiguous or value.ndim < 2 else f", strides {value.strides}"
        return f"{describe_value(value)}{layout}: {range_of(value)}"
    if is_sparse_value(value):
        return f"{describe_value(value)}: {range_of(value.data)}"
    return describe_value(value)
