"""Modules that are imported when something of them is first used: what `import symcomp` leaves out.

Importing `scipy.linalg` or `scipy.special` takes twice as long as importing NumPy.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

_lock = threading.Lock()


def _begin_anew() -> None:
    """The thread that has the lock does not come along when a process forks."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class LazyModule(ModuleType):
    """Stands for a module; reading an attribute imports it, and keeps the attribute."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what inspects modules does not import this one
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazy_module(name: str) -> ModuleType:
    """The module of this name, imported when an attribute of it is first read.

    Examples
    --------
    >>> special = lazy_module("scipy.special")
    >>> float(special.erf(0.0))
    0.0
    """
    return LazyModule(name)


class LazyMethod:
    """A method of ``owner`` whose module is imported when the method is first used."""

    def __init__(self, owner: type, name: str, module: str, function: str) -> None:
        self.owner, self.name, self.module, self.function = owner, name, module, function

    def __get__(self, instance: Any, owner: type) -> Any:
        method = getattr(import_module(self.module), self.function)
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def lazy_names(
    package: str, names: Sequence[str], module: str, packages: Sequence[str] = ()
) -> tuple[Any, Any]:
    """``__getattr__`` and ``__dir__`` of a package that offers names of ``module`` like its own.

    ``packages`` are those inside it that are imported when one is asked for.
    """

    def get(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def names_of_all() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *packages})

    return get, names_of_all


# Names that modules of higher layers add to packages of lower ones: package -> name -> module.
_offered: dict[str, dict[str, str]] = {}
# What knows the values whose classes are defined in a package: package -> module.
_homes: dict[str, str] = {}


def offer(package: str, names: Sequence[str], module: str) -> None:
    """Add names of ``module`` to a package of a lower layer, which calls ``offered_names``."""
    _offered.setdefault(package, {}).update(dict.fromkeys(names, module))


def offered_names(package: str) -> tuple[Any, list[str]]:
    """Return ``__getattr__`` of a package to which names are offered, and these names."""
    names = _offered.get(package, {})

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(names[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, list(names)


def set_home(package: str, module: str) -> None:
    """Say which module knows the values whose classes are defined in ``package``."""
    _homes[package] = module


def import_home(value: Any) -> None:
    """Import the module that knows a value, if one is known for its class."""
    for kind in type(value).__mro__:
        for package, module in _homes.items():
            if kind.__module__.startswith(package):
                import_module(module)
                return


def import_alone(package: str, folder: str, name: str) -> ModuleType:
    """The extension module ``package.folder.name``, without running ``package.folder`` first.

    It does not stay in ``sys.modules``, so that a later import binds it in its package: the same
    module, since one written in Cython is made once in a process.
    """
    full_name = f"{package}.{folder}.{name}"
    with _lock:
        if full_name in sys.modules:
            return sys.modules[full_name]
        places = [os.path.join(path, folder) for path in import_module(package).__path__]
        spec = PathFinder.find_spec(full_name, places)
        if spec is None or spec.loader is None:
            return import_module(full_name)  # it is where only the package knows
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules.pop(full_name, None)
        return module
