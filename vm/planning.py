"""Planning: what the planner of programs knows of an op class, beside the contract of the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symcomp.core.node import Apply
from symcomp.core.op import Op


def _unknown(node: Apply, shapes: Sequence[Any]) -> None:
    """Know no condition."""


def _nothing(node: Apply) -> None:
    """Have no such function."""


@dataclass(frozen=True)
class Planning:
    """How nodes of an op class take part in updates in place.

    Attributes
    ----------
    equal_lengths : callable (node, shapes) -> sequence of (length, length), or None
        Returns pairs of lengths, of the ``shapes`` of the inputs, that must be equal for
        ``perform`` to succeed: if they are, only a shortage of memory makes it fail. None if the
        condition is not known. A length may be any object; the second of a pair may be a number.
    check : callable (node) -> callable or None
        Returns a function that raises every error of ``bind`` for the values of the inputs, without
        computing. Only needed where ``equal_lengths`` is not known.
    """

    equal_lengths: Callable[[Apply, Sequence[Any]], Sequence[tuple[Any, Any]] | None] = _unknown
    check: Callable[[Apply], Callable[..., Any] | None] = _nothing

    def checking(self, node: Apply) -> Callable[..., Any] | None:
        """Return the function of ``check``, or one that compares lengths; None if errors are only
        known by computing.
        """
        shapes = [getattr(x.type, "shape", None) for x in node.inputs]
        axes = [s if s is None else [(i, a) for a in range(len(s))] for i, s in enumerate(shapes)]
        pairs = self.equal_lengths(node, axes)
        return self.check(node) if pairs is None else _comparing(pairs, node.op.bind(node))


def _comparing(
    pairs: Sequence[tuple[Any, Any]], compute: Callable[..., Any]
) -> Callable[..., None]:
    """Return a function that calls ``compute``, which raises an error, if two lengths differ."""

    def check(*values: Any) -> None:
        for m, n in pairs:
            length = n if isinstance(n, int) else values[n[0]].shape[n[1]]
            if values[m[0]].shape[m[1]] != length:
                compute(*values)
                return

    return check


#: By the class of the op; subclasses are planned as their base class.
Plannings = Mapping[type[Op], Planning]
#: Of ops that are in no table: nothing proves that they succeed.
UNPLANNED = Planning()


def planning_of(op: Op, plannings: Plannings) -> Planning:
    """Return the planning of an op, by its class or the nearest base class in the table."""
    return next((plannings[kind] for kind in type(op).__mro__ if kind in plannings), UNPLANNED)
