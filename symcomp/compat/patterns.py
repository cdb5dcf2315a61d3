"""``theano.gof.PatternSub``: a local optimizer given by two patterns, to find and to put in its
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.compat.rewriting import LocalOptimizer, clients_of
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.ops.convert import as_tensor_variable
from symcomp.rewrite.matching import Anything, Application, Bound, Pattern


@record
class Checked(Pattern):
    """A pattern with a condition on the variable that matches it."""

    pattern: Pattern
    condition: Callable[[Variable], Any]

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        yield from (found for found in self.pattern.matches(x, bound) if self.condition(x))

    def build(self, bound: Bound) -> Any:
        return self.pattern.build(bound)

    def names(self) -> Iterator[str]:
        return self.pattern.names()


@record(eq=False)
class Exactly(Pattern):
    """A variable, or a constant of equal elements."""

    value: Any

    def matches(self, x: Any, bound: Bound) -> Iterator[Bound]:
        value = self.value
        if isinstance(value, Constant):
            same = isinstance(x, Constant) and value.signature() == x.signature()
        elif isinstance(value, int | float | np.ndarray):
            same = isinstance(x, Constant) and bool(np.all(x.data == value))
        else:
            same = value is x
        if same:
            yield bound

    def build(self, bound: Bound) -> Any:
        return self.value if isinstance(self.value, Variable) else as_tensor_variable(self.value)

    def names(self) -> Iterator[str]:
        return iter(())


def _op_of(function: Any) -> Any:
    """Return the op of a function such as ``T.add``, which equals its op."""
    return function if isinstance(function, Op) else getattr(function, "op", function)


def _always(x: Variable) -> bool:
    return True


def _has_one_client(x: Variable) -> bool:
    return len(clients_of(x)) <= 1


class PatternSub(LocalOptimizer):
    """Replaces a part of a graph; both parts are given by patterns.

    Parameters
    ----------
    in_pattern : tuple
        An op and the patterns of its inputs. A string stands for any variable, and the same string
        for the same variable; a number or constant for itself; a dict has a ``"pattern"`` and a
        ``"constraint"``, a function of the variable.
    out_pattern : tuple or str
        Of the same form.
    allow_multiple_clients : bool
        Whether what the inner parts compute may be used elsewhere, too.
    skip_identities_fn, name, tracks, get_nodes
        As in Theano.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.patterns import PatternSub
    >>> from symcomp.compat.rewriting import FunctionGraph, TopoOptimizer
    >>> x = T.dvector("x")
    >>> graph = FunctionGraph([x], [T.log(T.exp(x))])
    >>> TopoOptimizer(PatternSub((T.log.op, (T.exp.op, "x")), "x")).optimize(graph)
    >>> graph.outputs
    [x]
    """

    def __init__(
        self,
        in_pattern: Sequence[Any] | Mapping[str, Any],
        out_pattern: Any,
        allow_multiple_clients: bool = False,
        skip_identities_fn: Any = None,
        name: str | None = None,
        tracks: Sequence[Any] = (),
        get_nodes: Any = None,
    ) -> None:
        self.constraint: Any = None
        if isinstance(in_pattern, Mapping):
            self.constraint, in_pattern = in_pattern.get("constraint"), in_pattern["pattern"]
        if not isinstance(in_pattern, list | tuple):
            raise TypeError(f"PatternSub: in_pattern={in_pattern!r} must start with an op")
        self.in_pattern, self.out_pattern = in_pattern, out_pattern
        self.allow_multiple_clients = allow_multiple_clients
        self.skip_identities_fn = skip_identities_fn
        self.op = in_pattern[0]
        self._before = Application(
            _op_of(self.op), tuple(self._read(part) for part in in_pattern[1:])
        )
        self._after = self._read(out_pattern)
        self._tracks, self.get_nodes = list(tracks), get_nodes
        self.name = name

    def tracks(self) -> Sequence[Any]:
        """Return the op at the root of the pattern."""
        return self._tracks or [self.op]

    def transform(self, node: Apply) -> Any:
        """Return the replacement where the pattern matches."""
        starts = self.get_nodes(node) if self.get_nodes is not None else [node]
        for start in starts:
            if start is False or not isinstance(start, Apply) or start.op != self.op:
                continue
            found = next((bound for bound, _ in self._before.met(start, {})), None)
            if found is not None and (self.constraint is None or self.constraint(start.outputs[0])):
                new = self._after.build(found)
                if new.type == start.outputs[0].type or start is not node:
                    return [new] if start is node else {start.outputs[0]: new}
                return [start.outputs[0].type.filter_variable(new)]
        return False

    def _read(self, pattern: Any) -> Pattern:
        """Return a pattern in Theano's form as one of symcomp's."""
        if isinstance(pattern, Mapping):
            return Checked(self._read(pattern["pattern"]), pattern.get("constraint", _always))
        if isinstance(pattern, str):
            return Anything(pattern)
        if isinstance(pattern, list | tuple):
            call = Application(_op_of(pattern[0]), tuple(self._read(part) for part in pattern[1:]))
            return call if self.allow_multiple_clients else Checked(call, _has_one_client)
        return Exactly(pattern)

    def __str__(self) -> str:
        return self.name or f"{self.in_pattern} -> {self.out_pattern}"
