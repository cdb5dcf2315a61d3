"""``theano.compat``: names that differ between Python 2 and 3; and ``six.moves``."""

from __future__ import annotations

import builtins
import collections
import collections.abc
import configparser
import functools
import io
import itertools
import operator
import pickle
import queue
import subprocess
import sys
import types
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any


def with_first_named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with another keyword for its first argument."""

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        first = (kwargs.pop(name),) if name in kwargs else ()
        return function(*first, *args, **kwargs)

    return renamed


COMPAT: dict[str, Any] = {
    "BytesIO": io.BytesIO,
    "cmp": lambda a, b: (a > b) - (a < b),
    "decode": lambda text: text.decode("utf-8") if isinstance(text, bytes) else text,
    "decode_iter": lambda texts: (COMPAT["decode"](text) for text in texts),
    "DefaultOrderedDict": collections.defaultdict,
    "exc_message": lambda error: error.args[0] if error.args else "",
    "get_unbound_function": lambda method: getattr(method, "__func__", method),
    "ifilter": filter,
    "imap": map,
    "izip": zip,
    "operator_div": operator.truediv,
    "OrderedDict": collections.OrderedDict,
    "PY3": True,
}

PYTHON2X: dict[str, Any] = {
    "all": all,
    "any": any,
    "combinations": itertools.combinations,
    "Counter": collections.Counter,
    "defaultdict": collections.defaultdict,
    "deque": collections.deque,
    "DictMixin": collections.abc.MutableMapping,
    "maxsize": sys.maxsize,
    "OrderedDict": collections.OrderedDict,
    "partial": functools.partial,
    "product": itertools.product,
}


def reraise(kind: Any, value: Any, traceback: Any = None) -> None:
    """Raise an exception with a traceback."""
    raise (kind() if value is None else value).with_traceback(traceback)


def add_metaclass(meta: Any) -> Callable[[type], type]:
    """Return a decorator that makes a class again, by a metaclass."""

    def decorate(cls: type) -> type:
        kept = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        made: type = meta(cls.__name__, cls.__bases__, kept)
        return made

    return decorate


def _output(command: Any, **options: Any) -> tuple[bytes, bytes, int]:
    """Return the output and the error output of a command, and its exit status."""
    done = subprocess.run(command, check=False, capture_output=True, **options)
    return done.stdout, done.stderr, done.returncode


PROCESSES: dict[str, Any] = {
    "call_subprocess_Popen": subprocess.call,
    "output_subprocess_Popen": _output,
    "subprocess_Popen": subprocess.Popen,
}
SIX: dict[str, Any] = {
    "add_metaclass": add_metaclass,
    "advance_iterator": next,
    "b": lambda text: text.encode("latin-1"),
    "binary_type": bytes,
    "class_types": (type,),
    "integer_types": (int,),
    "iteritems": lambda mapping: iter(mapping.items()),
    "iterkeys": lambda mapping: iter(mapping.keys()),
    "itervalues": lambda mapping: iter(mapping.values()),
    "get_unbound_function": COMPAT["get_unbound_function"],
    "PY2": False,
    "PY3": True,
    "next": next,
    "print_": print,
    "reraise": reraise,
    "string_types": (str,),
    "text_type": str,
    "u": str,
    "StringIO": io.StringIO,
    "BytesIO": io.BytesIO,
    "with_metaclass": lambda meta, *bases: types.new_class("_Base", bases, {"metaclass": meta}),
}

MOVES: dict[str, Any] = {
    "builtins": builtins,
    "configparser": configparser,
    "cPickle": pickle,
    "filter": filter,
    "input": input,
    "map": map,
    "queue": queue,
    "range": range,
    "reduce": functools.reduce,
    "StringIO": io.StringIO,
    "urllib": urllib,
    "xrange": range,
    "zip": zip,
    "zip_longest": itertools.zip_longest,
}
