"""Theano's cast policy: floatX for Python's and NumPy's floats and for quotients of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.ops.casting import CastPolicy, register_cast_policy
from symcomp.ops.convert import cast_to


class TheanoPolicy(CastPolicy):
    """Policy "theano": integers stay narrow, and no function of integers is float16."""

    def is_number(self, x: Any) -> bool:
        """Tell whether ``x`` is a Python number, or a float64 scalar of NumPy, which is a float."""
        return super().is_number(x) or type(x) is np.float64

    def integer_among(self, number: int, met: str) -> str:
        """Return the first dtype that ``met`` and the narrowest dtype of the number promote to."""
        name = super().integer_among(number, met)
        if not dtypes.is_discrete(met):
            return name
        for narrow in dtypes.INTEGERS:
            common = dtypes.upcast(met, narrow)
            limits = np.iinfo(common) if dtypes.is_integer(common) else None
            if limits is not None and limits.min <= number <= limits.max:
                return common
        return met

    def numbers_of_switch(self) -> Sequence[str]:
        """Return bool: ``switch(c, 1, 0)`` is a mask of int8, which keeps float32."""
        return ("bool",)

    def function_inputs(
        self, scalar: Any, args: Sequence[Any], tensors: Sequence[Any]
    ) -> Sequence[Any]:
        """Cast integers to floatX for functions of Python numbers and for quotients; never to
        float16.
        """
        if not all(dtypes.is_discrete(x.dtype) for x in tensors):
            return tensors
        result = scalar.dtype(*(x.dtype for x in tensors))
        # rows with parameters state their dtype: cast
        if not dtypes.is_float(result) or scalar.parameters:
            return tensors
        if scalar.name == "true_div" or all(map(self.is_number, args)):
            result = config.floatX
        elif result == "float16":
            result = "float32"
        return [cast_to(x, result) for x in tensors]

    def float_of(self, dtype: str) -> str:
        """Return the float dtype of functions of integers, float32 for float16."""
        found = super().float_of(dtype)
        return "float32" if found == "float16" else found


register_cast_policy("theano", TheanoPolicy())
