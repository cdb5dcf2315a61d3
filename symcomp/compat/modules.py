"""Theano's modules, built of the tables: which names there are, and what stands behind each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from symcomp.compat.config import read_environment
from symcomp.compat.missing import Missing, never_raised
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
from symcomp.core.node import Apply, Type, Variable
from symcomp.core.op import Op
from symcomp.core.tensor import TensorVariable
from symcomp.ops.elemwise import Elemwise
from symcomp.profiling.stats import ProfileStats

NAMES = TENSOR | OTHERS
# Dtypes that programs count on where floatX is float32. Users' ops may make NaN in Theano. And what
# is passed to a loop that makes no use of it is used there, as here it is not.
DEFAULTS = {"cast_policy": "theano", "nan_guard": "off", "on_unused_input": "warn"}
# What classes of symcomp have beside what is theirs.
PATCHES: dict[type, Mapping[str, Any]] = {
    Apply: {"fgraph": property(graph_of)},
    Container: CONTAINER,
    Elemwise: {"name": property(elemwise_name), "scalar_op": property(lambda op: op.scalar)},
    Function: FUNCTION,
    Maker: MAKER,
    Op: {"applied": staticmethod(note)},
    ProfileStats: PROFILE,
    TensorVariable: {**MEMBERS, "eval": unheard(eval_variable)},
    Type: TYPE,
    Variable: {"clients": property(clients_of), "fgraph": property(graph_of)},
}
# Packages of which programs import everything: submodules, and `theano` itself, are among it.
STARRED = ("theano", "theano.tensor")
# Names that Theano has on machines with a GPU alone: importing them tells programs that there is
# none.
ABSENT = {"theano.sandbox.cuda": {"cuda_ndarray", "CudaNdarray"}}


class TheanoModule(ModuleType):
    """One module of Theano's.

    Names that are not in its table may be there, too: those that Theano's module imports. If it is
    ``open``, it has every name, and those not there are Missing.
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
        return found


def module_names() -> list[str]:
    """The names of all modules, packages before what is in them."""
    found = {*NAMES, *SAME, *OPEN.split(), *OWN}
    for name in list(found):
        while "." in name:
            name = name.rpartition(".")[0]
            found.add(name)
    return sorted(found)


def resolve(module: str, name: str) -> Any:
    """What stands behind a name of a module of Theano's: the thing itself, or Missing."""
    for namespace in _namespaces(module):
        if name in namespace:
            found = namespace[name]
            return BUILDERS.get(found, found) if isinstance(found, FunctionType) else found
    path = f"{module}.{name}"
    return never_raised(path) if name.endswith("Error") else Missing(path)


def _namespaces(module: str) -> Iterator[Namespace]:
    """Where the names of a module are looked up: its own differences, then its sources."""
    for name in (module, SAME.get(module, module)):
        if name in OWN:
            yield OWN[name]
    package = SAME.get(module, module)
    while package not in SOURCES:
        package = package.rpartition(".")[0]
    yield from SOURCES[package]
    yield EVERYWHERE


def public_names(module: str) -> list[str]:
    """The names that Theano's module has, and those that were added here."""
    table = SAME.get(module, module)
    names = NAMES.get(table, "").split()
    if table == "theano.tensor":
        names += CONSTRUCTORS
    return list(dict.fromkeys([*names, *OWN.get(table, {})]))


def build() -> dict[str, ModuleType]:
    """All modules of Theano's by their names; nothing is registered."""
    opened = set(OPEN.split())
    modules = {name: TheanoModule(name, name in opened) for name in module_names()}
    for name, module in modules.items():
        names = public_names(name)
        for word in names:
            setattr(module, word, resolve(name, word))
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

    Options are taken from ``THEANO_FLAGS`` and ``~/.theanorc`` too. Calling it again does nothing.

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
        for name, member in members.items():
            setattr(kind, name, member)
    for option, value in DEFAULTS.items():
        if symcomp_config.origin(option) == "default":
            setattr(symcomp_config, option, value)
    read_environment(os.environ)
    sys.modules.update(build())
