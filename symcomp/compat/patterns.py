"""``theano.gof.PatternSub``: a local optimizer given by two patterns, to find and to put in its
place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symcomp.compat.rewriting import LocalOptimizer, clients_of
from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.convert import as_tensor_variable


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
            found: dict[str, Variable] = {}
            fits = self._inputs_match(self.in_pattern, start, found)
            if fits and (self.constraint is None or self.constraint(start.outputs[0])):
                new = self._build(self.out_pattern, found)
                if new.type == start.outputs[0].type or start is not node:
                    return [new] if start is node else {start.outputs[0]: new}
                return [start.outputs[0].type.filter_variable(new)]
        return False

    def _inputs_match(
        self, pattern: Sequence[Any], node: Apply, found: dict[str, Variable]
    ) -> bool:
        return len(pattern) - 1 == len(node.inputs) and all(
            self._matches(part, x, found) for part, x in zip(pattern[1:], node.inputs, strict=True)
        )

    def _matches(self, pattern: Any, x: Variable, found: dict[str, Variable]) -> bool:
        if isinstance(pattern, Mapping):
            matches = self._matches(pattern["pattern"], x, found)
            return matches and bool(pattern.get("constraint", lambda v: True)(x))
        if isinstance(pattern, str):
            return found.setdefault(pattern, x) is x
        if isinstance(pattern, list | tuple):
            if x.owner is None or x.owner.op != pattern[0]:
                return False
            if not self.allow_multiple_clients and len(clients_of(x)) > 1:
                return False
            return self._inputs_match(pattern, x.owner, found)
        if isinstance(pattern, Constant):
            return isinstance(x, Constant) and pattern.signature() == x.signature()
        if isinstance(pattern, int | float | np.ndarray):
            return isinstance(x, Constant) and bool(np.all(x.data == pattern))
        return pattern is x

    def _build(self, pattern: Any, found: Mapping[str, Variable]) -> Variable:
        if isinstance(pattern, Mapping):
            return self._build(pattern["pattern"], found)
        if isinstance(pattern, str):
            return found[pattern]
        if isinstance(pattern, list | tuple):
            return pattern[0](*(self._build(part, found) for part in pattern[1:]))
        return pattern if isinstance(pattern, Variable) else as_tensor_variable(pattern)

    def __str__(self) -> str:
        return self.name or f"{self.in_pattern} -> {self.out_pattern}"
