"""Types that are not tensors: any Python object, None, and the two types that mark missing
gradients.
"""

from __future__ import annotations

from typing import Any

from symcomp.core.node import Constant, Type, Variable
from symcomp.core.record import record


@record
class GenericType(Type):
    """Any Python object."""

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value`` unchanged."""
        return value

    def __str__(self) -> str:
        return "generic"


class GenericConstant(Constant):
    """A Python object in a graph; merged with others by identity."""

    def signature(self) -> Any:
        """Return a key that is equal for the same object only."""
        return (self.type, id(self.data))


@record
class NoneType(Type):
    """The type of None."""

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Accept only None."""
        if value is not None:
            raise TypeError(f"expected None, got {value!r}")
        return value

    def __str__(self) -> str:
        return "none"


@record
class DisconnectedType(Type):
    """The type of the gradient with respect to a variable that the cost does not depend on. Has no
    values.
    """

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Refuse every value."""
        raise TypeError("a disconnected gradient has no value")

    def __str__(self) -> str:
        return "disconnected"


@record
class NullType(Type):
    """The type of a gradient that is undefined or not implemented; ``reason`` says why. Has no
    values.
    """

    reason: str = "unspecified reason"

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Refuse every value."""
        raise TypeError(f"a null gradient has no value: {self.reason}")

    def __str__(self) -> str:
        return f"null ({self.reason})"


GenericType.variable_class = NoneType.variable_class = Variable
DisconnectedType.variable_class = NullType.variable_class = Variable
GenericType.constant_class = GenericConstant
NoneType.constant_class = Constant

generic = GenericType()
none_type = NoneType()
