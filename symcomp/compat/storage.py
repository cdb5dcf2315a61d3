"""Theano's names for the values that functions and containers hold: ``container.storage[0]``."""

from __future__ import annotations

from typing import Any

from symcomp.compile.container import Container
from symcomp.compile.io import Out
from symcomp.core.node import Type


class Storage:
    """A list of one element, the value of a container."""

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


#: Members that containers have in Theano.
CONTAINER = {
    "data": property(lambda container: container.value, Container.set),
    "storage": property(Storage),
}


def _is_valid_value(kind: Type, value: Any) -> bool:
    """Tell whether a value is of a type without conversion."""
    try:
        kind.filter(value, strict=True)
    except (TypeError, ValueError):
        return False
    return True


#: Members that functions, their makers and types have in Theano.
FUNCTION = {"input_storage": property(lambda function: list(function.container))}
MAKER = {
    "expanded_inputs": property(lambda maker: maker.inputs),
    "outputs": property(lambda maker: [Out(v) for v in maker.fgraph.outputs[: maker.n_outputs]]),
}
TYPE = {"is_valid_value": _is_valid_value}
