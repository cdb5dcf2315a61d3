"""Build Theano's modules from the tables of names and of their implementations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from symcomp.compat.config import read_environment
from symcomp.compat.missing import Live, Missing, never_raised
from symcomp.compat.names import CONSTRUCTORS, OPEN, OTHERS, SAME, TENSOR
from symcomp.compat.op_functions import elemwise_name
from symcomp.compat.profiles import PROFILE
from symcomp.compat.rewriting import clients_of, graph_of
from symcomp.compat.sources import BUILDERS, EVERYWHERE, OWN, SOURCES, Namespace
from symcomp.compat.storage import CONTAINER, FUNCTION, MAKER, TYPE
from symcomp.compat.tensor import MEMBERS
from symcomp.compat.test_values import note, unheard
from symcomp.compile.callable import Function
from symcomp.compile.container import Container
from symcomp.compile.evaluation import eval_variable
from symcomp.compile.maker import Maker
from symcomp.config import config as symcomp_config
from symcomp.core.applications import observe_applications
from symcomp.core.members import add_members
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.tensor import TensorVariable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.profiling.stats import ProfileStats

NAMES = TENSOR | OTHERS
# Defaults of Theano that programs rely on: dtypes where floatX is float32; ops of users that return
# NaN; unused inputs of loops count as used.
DEFAULTS = {"cast_policy": "theano", "nan_guard": "off", "on_unused_input": "warn"}
# Members that classes of symcomp get in addition; those of tensors may replace symcomp's.
PATCHES: dict[type, Mapping[str, Any]] = {
    Apply: {"fgraph": property(graph_of)},
    Container: CONTAINER,
    Elemwise: {"name": property(elemwise_name), "scalar_op": property(lambda op: op.scalar)},
    Function: FUNCTION,
    Maker: MAKER,
    ProfileStats: PROFILE,
    TensorVariable: {**MEMBERS, "eval": unheard(eval_variable)},
    Type: TYPE,
    Variable: {"clients": property(clients_of), "fgraph": property(graph_of)},
}
# Packages from which programs import everything: `*` includes submodules, and `theano` itself.
STARRED = ("theano", "theano.tensor")
# Names that Theano has only on machines with a GPU: importing them must fail without one.
ABSENT = {"theano.sandbox.cuda": {"cuda_ndarray", "CudaNdarray"}}


class TheanoModule(ModuleType):
    """A module of Theano.

    Names that Theano's module imports are there too, besides those in its table. If it is ``open``,
    it has every name; names without an implementation are Missing.
    """

    def __init__(self, name: str, open: bool) -> None:
        super().__init__(name, f"The module {name} of Theano, on symcomp.")
        self.__path__: list[str] = []
        self.__file__ = __file__
        self.__spec__ = ModuleSpec(name, None, is_package=True)
        self.__all__: list[str] = []
        self._open = open

    def __getattr__(self, name: str) -> Any:
        absent = name.startswith("_") or name in ABSENT.get(self.__name__, ())
        found = Missing("") if absent else resolve(self.__name__, name)
        if isinstance(found, Missing) and (absent or not self._open):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return found.read() if isinstance(found, Live) else found


def module_names() -> list[str]:
    """Return the names of all modules, packages before their members."""
    found = {*NAMES, *SAME, *OPEN.split(), *OWN}
    for name in list(found):
        while "." in name:
            name = name.rpartition(".")[0]
            found.add(name)
    return sorted(found)


def resolve(module: str, name: str) -> Any:
    """Return the implementation of a name in a module of Theano, or Missing."""
    for namespace in _namespaces(module):
        if name in namespace:
            found = namespace[name]
            return BUILDERS.get(found, found) if isinstance(found, FunctionType) else found
    path = f"{module}.{name}"
    return never_raised(path) if name.endswith("Error") else Missing(path)


def _namespaces(module: str) -> Iterator[Namespace]:
    """Yield the namespaces in which the names of a module are looked up: its own differences, then
    its sources.
    """
    for name in (module, SAME.get(module, module)):
        if name in OWN:
            yield OWN[name]
    package = SAME.get(module, module)
    while package not in SOURCES:
        package = package.rpartition(".")[0]
    yield from SOURCES[package]
    yield EVERYWHERE


def public_names(module: str) -> list[str]:
    """Return the names that Theano's module has, and those added here."""
    table = SAME.get(module, module)
    names = NAMES.get(table, "").split()
    if table == "theano.tensor":
        names += CONSTRUCTORS
    return list(dict.fromkeys([*names, *OWN.get(table, {})]))


def build() -> dict[str, ModuleType]:
    """Build all modules of Theano, by name; none is registered."""
    opened = set(OPEN.split())
    modules = {name: TheanoModule(name, name in opened) for name in module_names()}
    for name, module in modules.items():
        names = public_names(name)
        for word in names:
            found = resolve(name, word)
            if not isinstance(found, Live):
                setattr(module, word, found)
        if name not in opened:
            module.__all__ = [word for word in names if not word.startswith("_")]
    for package in STARRED:
        vars(modules[package])["theano"] = modules["theano"]
        modules[package].__all__ += ["theano", "np"]
    for name in ("theano.tensor", "theano.tensor.basic", "theano.tensor.elemwise"):
        vars(modules[name])["scal"] = modules["theano.scalar"]
    for name in ("theano.sparse", "theano.sparse.basic"):
        for leaf in ("scalar", "tensor"):
            vars(modules[name])[leaf] = modules[f"theano.{leaf}"]
    for name, module in modules.items():
        package, _, leaf = name.rpartition(".")
        # A function of the same name hides the module, as `theano.compile.function` does.
        if package and isinstance(vars(modules[package]).get(leaf, Missing("")), Missing):
            setattr(modules[package], leaf, module)
            if package in STARRED:
                modules[package].__all__.append(leaf)
    return dict(modules)


def install_as_theano() -> None:
    """Make ``import theano`` give symcomp, in this process, to programs written for Theano.

    Options are read from ``THEANO_FLAGS`` and ``~/.theanorc``. Repeated calls have no effect.

    Raises
    ------
    RuntimeError
        If Theano itself has been imported already.

    Examples
    --------
    >>> import symcomp.compat
    >>> symcomp.compat.install_as_theano()
    >>> import theano
    >>> import theano.tensor as T
    >>> x = T.dscalar("x")
    >>> float(theano.function([x], T.grad(x ** 2, x))(3.0))
    6.0
    """
    present = sys.modules.get("theano")
    if isinstance(present, TheanoModule):
        return
    if present is not None:
        raise RuntimeError(
            f"install_as_theano: another theano has been imported, from {present.__file__}; call "
            "install_as_theano before that"
        )
    for kind, members in PATCHES.items():
        add_members(kind, members, replace=members if kind is TensorVariable else ())
    observe_applications(note)
    for option, value in DEFAULTS.items():
        if symcomp_config.origin(option) == "default":
            setattr(symcomp_config, option, value)
    read_environment(os.environ)
    sys.modules.update(build())
