"""Short descriptions of values and expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core.node import Variable
from symcomp.core.sparse_values import density_of, is_sparse_value
from symcomp.core.tensor import describe_value
from symcomp.core.tree import letters
from symcomp.core.values import range_of

# Arrays with more elements are described, not shown.
MOST_ELEMENTS = 6


def min_informative_str(obj: Any) -> str:
    """Return a short text that tells a variable or a value from others.

    A variable is described by its expression, down to named variables; repeated parts are
    ``<letter>``. An array by its elements, if they are few, or its dtype, shape and range; a sparse
    matrix also by its density.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> from symcomp.printing import min_informative_str
    >>> x = T.dvector("x")
    >>> print(min_informative_str(T.exp(x) * x))
    A. mul
     B. exp
      C. x
     <C>
    >>> min_informative_str(np.arange(100.0))
    'float64 (100,), 0 to 99'
    """
    if isinstance(obj, Variable):
        return _outline(obj)
    if isinstance(obj, np.ndarray):
        if obj.size <= MOST_ELEMENTS:
            return np.array2string(obj, separator=", ").replace("\n", "")
        return f"{obj.dtype} {obj.shape}, {range_of(obj)}"
    if is_sparse_value(obj):
        return f"{obj.dtype} {obj.format} {obj.shape}, {density_of(obj)}, {range_of(obj.data)}"
    return describe_value(obj)


def _outline(variable: Variable) -> str:
    lines: list[str] = []
    labels: dict[Variable, str] = {}
    stack = [(variable, 0)]
    while stack:
        x, level = stack.pop()
        if x in labels:
            lines.append(f"{' ' * level}<{labels[x]}>")
            continue
        labels[x] = letters(len(labels))
        lines.append(f"{' ' * level}{labels[x]}. {x}")
        if x.owner is not None and (x.name is None or x is variable):
            stack += [(y, level + 1) for y in reversed(x.owner.inputs)]
    return "\n".join(lines)
