"""Slow tasks of `beside.py`: compile times, with and without a filled cache, and cold starts."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from beside_changes import instructions, small_network
from beside_registry import Work, add
from cold import DATA, OURS, run, settle

import symcomp
import symcomp.tensor as T


def _network() -> Any:
    inputs, loss, updates = small_network()
    return lambda: symcomp.function(inputs, loss, updates=updates)


def _loop_gradient() -> Any:
    x, w = T.dmatrices("x", "w")
    states = symcomp.scan(lambda v, h: T.tanh(T.dot(h, w) + v), x, T.zeros(4), return_updates=False)
    slope = symcomp.grad((states[-1] ** 2).sum(), w)
    return lambda: symcomp.function([x, w], slope)


def _softmax() -> Any:
    x = T.fmatrix("x")
    outputs = [T.nnet.softmax(x), x.var(axis=0), x.max(axis=1)]
    return lambda: symcomp.function([x], outputs)


def _instructions() -> Any:
    ends = instructions()
    return lambda: symcomp.function(*ends)


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "network": _network, "loop_gradient": _loop_gradient, "softmax": _softmax,
    "instructions": _instructions,
}  # fmt: skip


def _cached(build: Callable[[], Any]) -> Work:
    """Compile a function whose kernels are in the cache and are loaded."""
    build()()
    return build()


def _compiled(build: Callable[[], Any]) -> Work:
    """Compile a function, kernels included, into an empty cache."""
    compile_it = build()

    def work() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            symcomp.config.change_flags(compiledir=folder),
        ):
            compile_it()

    return work


for _name, _build in FUNCTIONS.items():
    add(f"slow/function/{_name}", partial(_cached, _build), fresh=1)
    add(f"slow/compile/{_name}", partial(_compiled, _build), fresh=1, children=True)


# -- processes

# The caches of programs that may still be optimizing in the background.
_caches: list[tempfile.TemporaryDirectory[str]] = []


def _first_result() -> Work:
    """Train one step in a new process, with an empty cache."""
    while _caches:
        with _caches.pop() as folder:
            settle(Path(folder))
    _caches.append(tempfile.TemporaryDirectory())
    flags = {"SYMCOMP_FLAGS": f"compiledir={_caches[-1].name}"}
    return partial(run, sys.executable, DATA + OURS, flags)


def _next_result() -> Work:
    """Train one step in a new process, with a filled cache."""
    work = partial(run, sys.executable, DATA + OURS, {})
    work()
    return work


def _import() -> Work:
    """Import symcomp in a new process."""
    return partial(run, sys.executable, "import symcomp.tensor", {})


add("slow/start/import", _import, children=True)
add("slow/start/empty_cache", _first_result, fresh=1, children=True)
add("slow/start/filled_cache", _next_result, children=True)
