"""Missing: the stand-in for Theano's names that are not implemented."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn


class StandIn:
    """An object used in place of a class: it works with isinstance, as a base, and when called.

    Parameters
    ----------
    path : str
        Its name, for messages.
    base : type, optional
        The class that programs derive from, and whose methods they call: ``Elemwise.grad(self)``.
    """

    def __init__(self, path: str, base: type | None = None) -> None:
        self._path, self._base = path, base
        if base is not None:
            # Called by the initializers of derived classes.
            self.__dict__["__init__"] = base.__init__  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._base is None:
            raise AttributeError(f"{self._path} has no attribute {name!r}")
        return getattr(self._base, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(self._path)

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self._path}>"


class Adapted(StandIn):
    """A class of symcomp, called with other arguments: ``make`` returns its instances."""

    def __init__(self, path: str, kind: type, make: Callable[..., Any]) -> None:
        super().__init__(path, kind)
        self._kind, self._make = kind, make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._make(*args, **kwargs)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._kind)

    def __subclasscheck__(self, subclass: Any) -> bool:
        return issubclass(subclass, self._kind)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._kind,)


class Described(StandIn):
    """A class that no object is made of: its instances are those of which a condition holds."""

    def __init__(self, path: str, holds: Callable[[Any], bool]) -> None:
        super().__init__(path)
        self._holds = holds

    def __instancecheck__(self, instance: Any) -> bool:
        return self._holds(instance)


class Live:
    """A name of a module whose value is read each time.

    Attributes
    ----------
    read : callable
    """

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


class Missing(StandIn):
    """Stand-in for a function, class or module of Theano that is not implemented.

    It can be imported; no object is an instance of it. Calling it, or reading an attribute,
    raises NotImplementedError; a class can be derived from it, but has no instances.
    """

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(
            f"{self._path} of Theano is not there in symcomp (see docs/theano.md)"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # looked up by protocols of Python: pickle, copy, inspect
            raise AttributeError(name)
        self._refuse()

    def __bool__(self) -> bool:
        self._refuse()

    def __iter__(self) -> Any:
        self._refuse()

    def __getitem__(self, key: Any) -> Any:
        self._refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
            self._refuse()

        return (type(self._path.rpartition(".")[2], (), {"__new__": refuse}),)


@cache
def never_raised(path: str) -> type[Exception]:
    """Return a class for an exception of Theano that is never raised here; ``except`` clauses may
    name it.
    """
    return type(path.rpartition(".")[2], (Exception,), {"__doc__": f"{path}: raised by nothing."})
