"""Names of Theano that are plain Python: ``gof.utils``, ``misc`` and others."""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableSet, Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Variable
from symcomp.core.walk import toposort


class OrderedSet(MutableSet[Any]):
    """A set that iterates in the order of insertion."""

    def __init__(self, iterable: Iterable[Any] = ()) -> None:
        self._elements = dict.fromkeys(iterable)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, value: Any) -> None:
        """Add an element at the end, if it is not there."""
        self._elements.setdefault(value)

    def discard(self, value: Any) -> None:
        """Remove an element, if it is there."""
        self._elements.pop(value, None)

    def update(self, iterable: Iterable[Any]) -> None:
        """Add several."""
        for value in iterable:
            self.add(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OrderedSet):
            return list(self) == list(other)
        return isinstance(other, set | frozenset) and set(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)})"


def memoize(f: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the results of ``f`` by its arguments."""
    return functools.cache(f)


def deprecated(filename: str, msg: str = "") -> Callable[..., Any]:
    """Decorate a function so that its first call warns."""

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def warned(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(f"{filename}.{f.__name__} is deprecated. {msg}", stacklevel=2)
            return f(*args, **kwargs)

        return warned

    return decorate


def uniq(seq: Iterable[Any]) -> list[Any]:
    """Return the elements, each once, in the order of their first occurrence."""
    return list(dict.fromkeys(seq))


def difference(seq1: Iterable[Any], seq2: Iterable[Any]) -> list[Any]:
    """Return the elements of the first that are not in the second."""
    others = set(seq2)
    return [x for x in seq1 if x not in others]


def flatten(a: Any) -> list[Any]:
    """Return the elements of nested lists, tuples and sets."""
    if isinstance(a, list | tuple | set):
        return [x for part in a for x in flatten(part)]
    return [a]


def hist(coll: Iterable[Hashable]) -> dict[Any, int]:
    """Count how often each element occurs."""
    return dict(Counter(coll))


def to_return_values(values: Sequence[Any]) -> Any:
    """Return the only value, or all as a list."""
    return values[0] if len(values) == 1 else values


def from_return_values(values: Any) -> list[Any]:
    """Return a list, given a value or a list of several."""
    return list(values) if isinstance(values, list | tuple) else [values]


def give_variables_names(variables: Sequence[Variable]) -> list[str]:
    """Give each variable a unique name, including variables that have names."""
    names = [v.name or "" for v in variables]
    often = Counter(names)
    for i, (v, name) in enumerate(zip(variables, names, strict=True)):
        if not name or often[name] > 1:
            v.name = f"{name}_{i}"
    return [str(v.name) for v in variables]


def general_toposort(
    outputs: Iterable[Any],
    deps: Callable[[Any], Iterable[Any] | None],
    debug_print: bool = False,
    compute_deps_cache: Callable[[Any], Iterable[Any] | None] | None = None,
    deps_cache: dict[Any, Any] | None = None,
    clients: dict[Any, list[Any]] | None = None,
) -> list[Any]:
    """Return ``outputs`` and all that they depend on, in topological order.

    In Theano's order: first elements without dependencies, found depth first from the last output
    and the last dependency on; then each element as soon as its last dependency is listed.

    Parameters
    ----------
    outputs : iterable
    deps : callable
        An element -> what it depends on.
    debug_print, deps_cache
        Accepted as Theano has them.
    compute_deps_cache : callable, optional
        Used in the place of ``deps``.
    clients : dict, optional
        Is given: element -> the elements that depend on it.
    """
    needed: dict[Any, list[Any]] = {}
    users: dict[Any, list[Any]] = {}
    waiting = list(outputs)
    while waiting:
        x = waiting.pop()
        if x in needed:
            continue
        needed[x] = list((compute_deps_cache or deps)(x) or ())
        waiting += needed[x]
        for y in needed[x]:
            users.setdefault(y, []).append(x)
    if clients is not None:
        clients.update(users)
    missing = {x: len(set(needs)) for x, needs in needed.items()}
    found = deque(x for x, number in missing.items() if not number)
    order: list[Any] = []
    while found:
        order.append(x := found.popleft())
        for user in dict.fromkeys(users.get(x, ())):
            missing[user] -= 1
            if not missing[user]:
                found.append(user)
    if len(order) < len(needed):
        raise ValueError("general_toposort: the graph contains cycles")
    return order


def io_connection_pattern(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> list[list[bool]]:
    """Return, for each input and each output, whether the gradient flows between them."""
    reached: dict[Variable, set[Variable]] = {v: {v} for v in inputs}
    for node in toposort(outputs, inputs):
        pattern = node.op.connection_pattern(node)
        for k, out in enumerate(node.outputs):
            found = reached.setdefault(out, set())
            for i, x in enumerate(node.inputs):
                if pattern[i][k]:
                    found |= reached.get(x, set())
    return [[x in reached.get(out, ()) for out in outputs] for x in inputs]


def always_equal(a: Any, b: Any) -> bool:
    """Return True, as ``values_eq_approx_always_true``."""
    return True


def nearly_equal(
    a: Any,
    b: Any,
    allow_remove_inf: bool = False,
    allow_remove_nan: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """Compare as ``values_eq_approx``: equal up to rounding errors of the dtype; NaN equals NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    keep = np.ones(a.shape, bool)
    if allow_remove_inf:
        keep &= ~(np.isinf(a) | np.isinf(b))
    if allow_remove_nan:
        keep &= ~(np.isnan(a) | np.isnan(b))
    loose = a.dtype.name in ("float16", "float32", "complex64")
    rtol = rtol if rtol is not None else 1e-4 if loose else 1e-5
    atol = atol if atol is not None else 1e-5 if loose else 1e-8
    return bool(np.allclose(a[keep], b[keep], rtol, atol, equal_nan=True))


def all_close(a: Any, b: Any, rtol: float | None = None, atol: float | None = None) -> bool:
    """Compare as ``theano.tensor.basic._allclose``: equal up to rounding errors of their dtypes."""
    narrow = any(np.asarray(v).dtype.name in ("float16", "float32", "complex64") for v in (a, b))
    rtol = rtol if rtol is not None else 1e-3 if narrow else 1e-5
    atol = atol if atol is not None else 1e-5 if narrow else 1e-8
    return bool(np.allclose(a, b, rtol, atol))


def hex_digest(x: np.ndarray) -> str:
    """Return a text that is equal for arrays with equal bytes, strides and shapes."""
    lengths = ",".join(map(str, x.shape))
    strides = ",".join(map(str, x.strides))
    return f"{hashlib.md5(x.tobytes()).hexdigest()}|strides=[{strides}]|shape=[{lengths}]"


def cpu_count() -> int:
    """Return how many processors there are."""
    return os.cpu_count() or 1


UTILS: Mapping[str, Any] = {
    function.__name__: function
    for function in (
        deprecated, difference, flatten, from_return_values, give_variables_names, hist, memoize,
        to_return_values, uniq,
    )
} | {
    "MetaObject": type, "object2": object, "PY3": True, "unique": lambda x: len(set(x)) == len(x),
}  # fmt: skip
VALUES_EQUAL: Mapping[str, Any] = {
    "values_eq_approx": nearly_equal,
    "values_eq_approx_always_true": always_equal,
    "values_eq_approx_remove_inf": functools.partial(nearly_equal, allow_remove_inf=True),
    "values_eq_approx_remove_inf_nan": functools.partial(
        nearly_equal, allow_remove_inf=True, allow_remove_nan=True
    ),
    "values_eq_approx_remove_nan": functools.partial(nearly_equal, allow_remove_nan=True),
}
