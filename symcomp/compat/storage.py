"""``container.storage[0]`` and ``container.data``: what Theano's containers call their value."""

from __future__ import annotations

from typing import Any

from symcomp.compile.container import Container


class Storage:
    """A list of one element, which is the value of a container."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def __getitem__(self, index: int) -> Any:
        return (self._container.value,)[index]

    def __setitem__(self, index: int, value: Any) -> None:
        self._check(index)
        self._container.value = value

    def __len__(self) -> int:
        return 1

    def _check(self, index: int) -> None:
        if index not in (0, -1):
            raise IndexError(f"the storage of {self._container.name} has one element, not {index}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self._container is other._container

    def __hash__(self) -> int:
        return id(self._container)

    def __repr__(self) -> str:
        return f"[{self._container.value!r}]"


#: Members of containers that are Theano's.
CONTAINER = {
    "data": property(lambda container: container.value, Container.set),
    "storage": property(Storage),
}
