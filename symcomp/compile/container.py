"""Container: the storage of one value, with the checks for values to store."""

from __future__ import annotations

import copyreg
from typing import Any

from symcomp.core.node import Type
from symcomp.cvm.machine import Cell


class Container(Cell):
    """Holds the value of an input or a shared variable.

    Parameters
    ----------
    type : Type
    value : optional
        None: nothing stored yet.
    name : str, optional
        For messages.
    strict, allow_downcast
        As for ``Type.filter``, applied to everything stored.
    """

    __slots__ = ("allow_downcast", "name", "strict", "type")

    def __init__(
        self,
        type: Type,
        value: Any = None,
        name: str | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
    ) -> None:
        self.type = type
        self.name = name
        self.strict = strict
        self.allow_downcast = allow_downcast
        if value is not None:
            self.set(value)

    def check(self, value: Any) -> Any:
        """Return ``value`` as it would be stored, or raise."""
        return self.type.filter(value, self.strict, self.allow_downcast)

    def set(self, value: Any) -> None:
        """Check and store a value."""
        self.value = self.check(value)

    def __reduce__(self) -> Any:
        # Makes the object picklable by protocols 0 and 1, which old programs use.
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def __getstate__(self) -> tuple[Any, ...]:
        return self.type, self.value, self.name, self.strict, self.allow_downcast

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.type, self.value, self.name, self.strict, self.allow_downcast = state

    def __repr__(self) -> str:
        return f"<Container {self.name}: {self.value!r}>"
