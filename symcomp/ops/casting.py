"""Cast policies: the dtypes of Python numbers among tensors, and of functions of integers.

``config.cast_policy`` names the policy in force. A higher layer can offer more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from symcomp.config import config
from symcomp.core import dtype as dtypes

NUMBERS = (bool, int, float, complex)


class CastPolicy:
    """The default policy, "numpy+floatX": NumPy's dtypes, and ``config.floatX`` where an integer
    tensor meets a Python float.
    """

    def is_number(self, x: Any) -> bool:
        """Tell whether ``x`` is a bare number, which adapts to the dtype of tensors around it."""
        return type(x) in NUMBERS

    def met_by_float(self, met: str) -> str:
        """Return the dtype of integer tensors, with the common dtype ``met``, that a Python float
        meets.
        """
        return config.floatX

    def integer_among(self, number: int, met: str) -> str:
        """Return the dtype of a Python integer among tensors of dtype ``met``."""
        return "int64" if met == "bool" else met

    def numbers_of_switch(self) -> Sequence[str]:
        """Return dtypes that two Python numbers in the branches of a switch adapt to."""
        return ()

    def function_inputs(
        self, scalar: Any, args: Sequence[Any], tensors: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the inputs of a scalar function; ``tensors`` are made of ``args``."""
        return tensors

    def float_of(self, dtype: str) -> str:
        """Return the dtype of float functions of integers of ``dtype``."""
        return dtypes.to_float(dtype)


class NumpyPolicy(CastPolicy):
    """Policy "numpy": as in NumPy, also where an integer tensor meets a Python float."""

    def met_by_float(self, met: str) -> str:
        """Return ``met``: the tensors stay integers."""
        return met


_policies: dict[str, CastPolicy] = {"numpy+floatX": CastPolicy(), "numpy": NumpyPolicy()}
# Modules of higher layers that register a policy when they are imported.
_offered: dict[str, str] = {}


def register_cast_policy(name: str, policy: CastPolicy) -> None:
    """Set the policy that a value of ``config.cast_policy`` names."""
    _policies[name] = policy


def offer_cast_policy(name: str, module: str) -> None:
    """Name the module to import for a policy, when it is first in force."""
    _offered[name] = module


def cast_policy() -> CastPolicy:
    """Return the policy in force."""
    name = config.cast_policy
    if name not in _policies:
        import_module(_offered[name])
    return _policies[name]
