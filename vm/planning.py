"""Planning: facts about an op class for the planner of programs, beside the contract of the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.storage import bound

Entry = TypeVar("Entry")


def _unknown(node: Apply, shapes: Sequence[Any]) -> None:
    """Know no condition."""


def _nothing(node: Apply) -> None:
    """Have no such function."""


def _none_of_them(node: Apply, output: int) -> Sequence[int]:
    """Overwrite no input."""
    return ()


@record
class Planning:
    """How nodes of an op class take part in the plan of memory and in updates in place.

    Attributes
    ----------
    into : callable (node) -> callable or None
        Returns a function like that of ``bind`` that also takes an array for each output to write
        into. Such an array has the dtype and the shape of the output and overlaps with no input,
        except that it may be an input named by ``overwritable``; None stands for an output without
        an array. The function returns its results: the given arrays, or new ones if those do not
        fit.
    overwritable : callable (node, output) -> sequence of int
        Returns the positions of inputs whose arrays that function may overwrite with this output.
    equal_lengths : callable (node, shapes) -> sequence of (length, length), or None
        Returns pairs of lengths, of the ``shapes`` of the inputs, that must be equal for
        ``perform`` to succeed: if they are, only a shortage of memory makes it fail. None if the
        condition is not known. A length may be any object; the second of a pair may be a number.
    check : callable (node) -> callable or None
        Returns a function that raises every error of ``bind`` for the values of the inputs, without
        computing. Only needed where ``equal_lengths`` is not known.
    """

    into: Callable[[Apply], Callable[..., Any] | None] = _nothing
    overwritable: Callable[[Apply, int], Sequence[int]] = _none_of_them
    equal_lengths: Callable[[Apply, Sequence[Any]], Sequence[tuple[Any, Any]] | None] = _unknown
    check: Callable[[Apply], Callable[..., Any] | None] = _nothing

    def checking(self, node: Apply) -> Callable[..., Any] | None:
        """Return the function of ``check``, or one that compares lengths; None if errors are only
        known by computing.
        """
        shapes = [getattr(x.type, "shape", None) for x in node.inputs]
        axes = [s if s is None else [(i, a) for a in range(len(s))] for i, s in enumerate(shapes)]
        pairs = self.equal_lengths(node, axes)
        return self.check(node) if pairs is None else _comparing(pairs, bound(node))


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
#: For ops that are in no table: each result gets a new array, and may fail to be computed.
UNPLANNED = Planning()


def entry_of(op: Op, table: Mapping[type[Op], Entry]) -> Entry | None:
    """Return the entry of the op's class, or of its nearest base class in the table."""
    for kind in type(op).__mro__:
        if kind in table:
            return table[kind]
    return None
