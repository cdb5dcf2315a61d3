"""Sine, cosine and tangent of arrays: float64 as kernels compute them, to 1 ulp for angles of any
size (``symcomp/codegen/functions/angles.h``), and other dtypes by NumPy.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from symcomp.ops.compiled_ufuncs import CompiledFunction


@cache
def _in_double(dtype: np.dtype) -> bool:
    """Tell whether functions of such numbers are computed in float64."""
    return bool(np.result_type(dtype, np.float32) == np.float64)


class FunctionOfAngle(CompiledFunction):
    """The C function for float64; for other dtypes ``ufunc``, one of NumPy's."""

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc.__name__)
        self.of_others = ufunc

    def __call__(self, *arrays: Any) -> Any:
        if _in_double(arrays[0].dtype):
            return super().__call__(*arrays)
        return self.of_others(*arrays)


sin, cos, tan = FunctionOfAngle(np.sin), FunctionOfAngle(np.cos), FunctionOfAngle(np.tan)
