"""Convert the fields of ops to JSON and back.

Values without a JSON type are objects with one key that names their kind. Classes are written by
name; only those allowed here are loaded, so that a file can describe nothing but graphs.
"""

from __future__ import annotations

import base64
import builtins
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from symcomp.compile.debugmode import DebugMode
from symcomp.compile.mode import Mode
from symcomp.compile.nanguardmode import NanGuardMode
from symcomp.compile.saving.moved import current_name
from symcomp.core import dtype as dtypes
from symcomp.core.closed import ClosedGraph
from symcomp.core.fields import check_of, misfit, plain
from symcomp.core.node import Type
from symcomp.core.op import Op
from symcomp.core.source import Source
from symcomp.core.sparse_values import is_sparse_value, places_of
from symcomp.errors import LoadError, SaveError, ShapeError
from symcomp.lazy import lazy_module
from symcomp.ops.elementwise.elemwise import ROWS, ScalarOp
from symcomp.ops.elementwise.series_remainder import FUNCTIONS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.indexing.index_pattern import Slice
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduction
from symcomp.ops.windows.geometry import Geometry
from symcomp.scan.layout import Layout
from symcomp.scan.run import by_fast_compile, by_nothing
from symcomp.vm.guard import is_users

sparse_values = lazy_module("symcomp.sparse.values")

# Modules with the classes of ops and types; importing them has no other effect.
PLACES = (
    "symcomp.autodiff.", "symcomp.compile.", "symcomp.core.", "symcomp.gpu.", "symcomp.ops.",
    "symcomp.scan.", "symcomp.sparse.",
)  # fmt: skip
# Modules of the types and ops of devices, which are not imported for graphs without any.
DEVICES = ("symcomp.gpu.", "symcomp.compile.device_")
# Modes that can be saved; user-defined ones cannot.
MODES: dict[str, type[Mode]] = {cls.__name__: cls for cls in (Mode, NanGuardMode, DebugMode)}
# The limit of integer parameters of families of scalar functions.
LARGEST_PARAMETER = 1000
# Python's exceptions, and symcomp's exceptions that ops raise.
EXCEPTIONS = {"ShapeError": ShapeError} | {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception) and value.__name__ == name
}
# Functions that select the rewrites of the bodies of loops, besides the default.
SELECTORS = {"fast_compile": by_fast_compile, "nothing": by_nothing}
RECORDS = {cls.__name__: cls for cls in (Formula, Geometry, Layout, Literal, Result, Step)}
Encode = Callable[[Any], Any]


class Encoder:
    """Converts values to JSON. Functions of the caller convert graphs and variables in fields.

    Parameters
    ----------
    graph, variable : callable
        A ClosedGraph, or a shared variable, to JSON.
    array : callable
        An array -> its number.
    """

    def __init__(self, graph: Encode, variable: Encode, array: Callable[[Any], int]) -> None:
        self._graph, self._variable, self._array = graph, variable, array

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return value if abs(value) < 2**53 else {"int": str(value)}
        if isinstance(value, float):
            return {"float": value.hex() if isfinite(value) else str(value)}
        if isinstance(value, complex):
            return {"complex": [self(value.real), self(value.imag)]}
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if isinstance(value, np.ndarray | np.generic):
            name, number = self._numbers(np.asarray(value))
            return {"array": number} if name is None else {"stored": [name, number]}
        if is_sparse_value(value):
            arrays = [self(x) for x in (value.data, *places_of(value))]
            kind = [value.format, sparse_values.container_of(value)]
            return {"sparse": [*kind, [int(n) for n in value.shape], *arrays]}
        if type(value).__module__ == "symcomp.gpu.array":
            name, number = self._numbers(value.get())
            return {"on_device": [value.device, number, *([] if name is None else [name])]}
        return self._composite(value)

    def _numbers(self, array: np.ndarray) -> tuple[str | None, int]:
        """Return the number of an array, and its dtype where the bits are saved as integers."""
        if array.dtype.name not in dtypes.STORAGE:
            return None, self._array(array)
        return array.dtype.name, self._array(array.view(np.uint16))

    def _composite(self, value: Any) -> Any:
        if isinstance(value, Slice):
            return {"slice": [self(part) for part in value]}
        if isinstance(value, Source):
            return {"source": list(value)}
        if isinstance(value, tuple):
            return {"tuple": [self(v) for v in value]}
        if isinstance(value, list):
            return {"list": [self(v) for v in value]}
        if isinstance(value, ScalarOp):
            return {"scalar": value.name, "parameters": [self(p) for p in value.parameters]}
        if isinstance(value, Reduction):
            return {"reduction": value.name}
        if isinstance(value, ClosedGraph):
            return {"graph": self._graph(value)}
        if value in EXCEPTIONS.values():
            return {"exception": value.__name__}
        if type(value) in RECORDS.values():
            return {"record": type(value).__name__, "fields": self._fields(value)}
        if isinstance(value, Op | Type):
            return self._named(value)
        if (mode := mode_of(value)) is not None:
            return {"selects": mode.parts}
        for name, selector in SELECTORS.items():
            if value is selector:
                return {"selector": name}
        return self._variable(value)

    def _named(self, value: Any) -> Any:
        cls = type(value)
        foreign = (
            is_users(value) if isinstance(value, Op) else not cls.__module__.startswith(PLACES)
        )
        if foreign or not hasattr(cls, "__fields__"):
            raise SaveError(
                f"{value} is of the class {cls.__module__}.{cls.__qualname__}, which is not one of "
                "symcomp's: what loads the file would not know it"
            )
        return {"class": f"{cls.__module__}:{cls.__name__}", "fields": self._fields(value)}

    def _fields(self, value: Any) -> dict[str, Any]:
        found = {}
        known = type(value).__fields__
        for name in known.names:
            field = plain(getattr(value, name))
            problem = misfit(type(value), name, field)
            if problem:
                raise SaveError(f"{value}: {problem}")
            if callable(field) and field is known.defaults.get(name):
                continue  # recreated by the program that loads the file
            found[name] = self(field)
        return found


class Decoder:
    """Converts JSON to values.

    Parameters
    ----------
    graph, variable : callable
        Map results of the encoder's functions to a ClosedGraph, or a shared variable.
    arrays : sequence of array
    placement : callable
        Returns the ``symcomp.gpu.placement.Placement`` of values and work on devices.
    """

    def __init__(
        self, graph: Encode, variable: Encode, arrays: Any, placement: Callable[[], Any]
    ) -> None:
        self._arrays, self._placement = arrays, placement
        self._by_key: Mapping[str, Encode] = {
            "int": lambda x: int(_string(x, 5000)),
            "float": lambda x: float.fromhex(x) if "x" in x else float(x),
            "complex": lambda x: complex(self(x[0]), self(x[1])),
            "bytes": lambda x: base64.b64decode(_string(x), validate=True),
            "dtype": lambda x: np.dtype(dtypes.canonical(_string(x))),
            "array": self._array,
            "stored": lambda x: self._stored(*x),
            "on_device": self._on_device,
            "sparse": self._sparse,
            "slice": lambda x: Slice(*(self(part) for part in x)),
            "source": _source,
            "tuple": lambda x: tuple(self(v) for v in x),
            "list": lambda x: [self(v) for v in x],
            "reduction": lambda x: REDUCTIONS[x],
            "graph": graph,
            "variable": variable,
            "exception": lambda x: EXCEPTIONS[x],
            "selects": lambda x: mode_from(x).selects,
            "selector": lambda x: SELECTORS[x],
        }

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, str):
            return text_of(value)
        if not isinstance(value, dict):
            raise LoadError(f"{_short(value)} stands where a value is expected")
        try:
            if "scalar" in value:
                return _row(value["scalar"], [self(p) for p in value["parameters"]])
            if "record" in value:
                cls = RECORDS[value["record"]]
                return cls(**self._fields(cls, value))
            if "class" in value:
                return self._named(value)
            (key,) = value
            return self._by_key[key](value[key])
        except LoadError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
            raise LoadError(f"{_short(value)} cannot be read: {problem!r}") from None

    def op(self, value: Any) -> Op:
        """Return an op; refuse other values."""
        found = self(value)
        if not isinstance(found, Op):
            raise LoadError(f"{_short(value)} is no op")
        return found

    def type(self, value: Any) -> Type:
        """Return the type of a variable; refuse other values."""
        found = self(value)
        if not isinstance(found, Type):
            raise LoadError(f"{_short(value)} is no type of variables")
        return found

    def _fields(self, cls: Any, value: Any) -> dict[str, Any]:
        """Return the fields given by the file, each checked to be of its type."""
        known, given = cls.__fields__, value["fields"]
        unknown = [name for name in given if name not in known.names]
        absent = [n for n in known.names if n not in given and n not in known.defaults]
        absent = [n for n in absent if n not in known.factories]
        if unknown or absent:
            raise LoadError(
                f"{cls.__name__}: this version of symcomp has the fields {list(known.names)}; "
                f"unknown are {unknown}, missing {absent}"
            )
        found = {name: self(field) for name, field in given.items()}
        for name, field in found.items():
            problem = misfit(cls, name, field)
            if problem:
                raise LoadError(problem)
        return found

    def _named(self, value: Any) -> Any:
        cls = named_class(value["class"], Op, Type)
        known: Any = getattr(cls, "__fields__", None)
        if known is None or cls.__name__.startswith("_"):
            raise LoadError(f"{value['class']} is no op by itself")
        given = self._fields(cls, value)
        if issubclass(cls, Type):
            kind = cls(**given)
            return self._placement().type(kind) if cls.__module__.startswith(DEVICES) else kind
        made = cls.__new__(cls)
        for name in known.names:
            if name not in given:
                default = known.defaults.get(name)
                given[name] = known.factories[name]() if name in known.factories else default
            object.__setattr__(made, name, given[name])
        check = getattr(made, "__post_init__", None)
        if check is not None:
            check()
        return made

    def _array(self, number: Any) -> np.ndarray:
        if not isinstance(number, int) or not 0 <= number < len(self._arrays):
            raise LoadError(f"there is no array {number}")
        found: np.ndarray = self._arrays[number]
        return found

    def _stored(self, name: Any, number: Any) -> np.ndarray:
        """Return the array of a storage dtype whose bits an array of integers holds."""
        array = self._array(number)
        if name not in dtypes.STORAGE or array.dtype != np.uint16:
            raise LoadError(f"an array of {array.dtype} cannot hold {ascii(name):.80}")
        return array.view(dtypes.numpy_dtype(name))

    def _on_device(self, text: Any) -> Any:
        device, number, *name = text
        array = self._stored(name[0], number) if name else self._array(number)
        return self._placement().array(_string(device), array)

    def _sparse(self, text: Any) -> Any:
        format, container, shape, *arrays = text
        if len(shape) != 2 or not all(check_of(int)(n) and n >= 0 for n in shape):
            raise LoadError(f"{_short(shape)} is no shape of a sparse matrix")
        arrays = [self(x) for x in arrays]
        return sparse_values.from_arrays(_string(format), _string(container), shape, arrays)


def named_class(name: Any, *bases: type) -> Any:
    """Return the class with this name, derived from one of ``bases``."""
    module, _, short = current_name(_string(name)).partition(":")
    words = [*module.split("."), short]
    if not module.startswith(PLACES) or not all(word.isidentifier() for word in words):
        raise LoadError(f"{name!r} is nothing that symcomp has")
    try:
        cls = getattr(sys.modules.get(module) or import_module(module), short, None)
    except ImportError:
        cls = None
    if not isinstance(cls, type) or not issubclass(cls, bases) or cls.__module__ != module:
        raise LoadError(
            f"{name!r} is nothing that this version of symcomp has: the file may be of a newer one"
        )
    return cls


def mode_of(value: Any) -> Mode | None:
    """Return the mode whose ``selects`` method this is."""
    owner = getattr(value, "__self__", None)
    return owner if isinstance(owner, Mode) and value == owner.selects else None


def mode_to(mode: Mode) -> Any:
    """Return a mode as JSON: its parts, and for one that checks its class and options, too."""
    if type(mode) is Mode:
        return mode.parts
    if MODES.get(type(mode).__name__) is not type(mode):
        raise SaveError(
            f"{mode} cannot be saved: what loads the file would not have what it does to values. "
            f"Compile the function with one of {', '.join(MODES)} to save it"
        )
    return {"mode": type(mode).__name__, "parts": mode.parts, "options": mode.options}


def mode_from(text: Any) -> Mode:
    """Return the mode that ``mode_to`` described."""
    name, parts, options = "Mode", text, {}
    try:
        if isinstance(text, dict):
            name, parts, options = text["mode"], text["parts"], text["options"]
        linker, optimizer, included, excluded = parts
        made: Mode = MODES[name].of_parts(
            _string(linker), _string(optimizer), [*map(_string, included)],
            [*map(_string, excluded)], **options,
        )  # fmt: skip
        return made
    except (KeyError, TypeError, ValueError) as problem:
        raise LoadError(f"{_short(text)} is no mode: {problem}") from None


def _row(name: Any, parameters: list[Any]) -> ScalarOp:
    """Return a scalar function; the parameters of families are names of dtypes and of functions,
    and small numbers.
    """
    if name == "cast":
        (dtype,) = parameters
        if dtypes.canonical(_string(dtype)) != dtype:
            raise LoadError(f"{_short(dtype)} is no dtype")
        return ROWS[name](dtype)
    numbers = parameters
    of_functions = name in ("series_remainder", "product_remainder")
    if of_functions and parameters and parameters[0] in FUNCTIONS:
        numbers = parameters[1:]
    if any(type(n) is not int or not 0 <= n <= LARGEST_PARAMETER for n in numbers):
        raise LoadError(f"{_short(parameters)} are no parameters of {name}")
    return ROWS[name](*parameters)


def _source(value: Any) -> Source:
    file, line, function = value
    return Source(_string(file), int(line), _string(function))


def _string(value: Any, longest: int = 1 << 20) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise LoadError(f"{_short(value)} stands where a text is expected")
    return text_of(value)


def text_of(value: str) -> str:
    """Return a text that UTF-8 can encode: JSON may contain lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise LoadError(f"{_short(value)} is no text: it has half of a surrogate pair") from None
    return value


def name_of(value: Any) -> str | None:
    """Return a name; None where there is none."""
    return None if value is None else _string(value)


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) < 80 else text[:77] + "..."
