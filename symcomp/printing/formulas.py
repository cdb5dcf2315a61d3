"""Expressions as formulas: how the texts of nodes are combined, in any notation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.op import Op
from symcomp.core.walk import toposort
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.shapes.dimshuffle import DimShuffle

# A shared part gets a name if it is longer than the first; any part, if longer than the second.
LONGEST_SHARED, LONGEST = 60, 2000


class Level(IntEnum):
    """Precedence: an operand that binds looser than its place allows is put in brackets."""

    LOOSE = 0
    COMPARED = 1
    OR = 2
    XOR = 3
    AND = 4
    SHIFT = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    POWER = 9
    ATOM = 10


class Text(NamedTuple):
    """A part of a formula."""

    text: str
    level: Level = Level.ATOM


Rule = Callable[[Apply, Sequence[Text], "Formulas"], Text]


class Formulas:
    """Writes expressions as formulas.

    Parameters
    ----------
    scalars : mapping of str to rule
        For scalar functions, by name. A rule takes the node, the texts of its inputs, and this.
    ops : mapping of type to rule
        For other ops, by class.
    otherwise : rule
        For the rest.
    leaf : callable (variable) -> Text
        For what no node makes, and for named variables.
    named : callable (list of (name, text), list of text) -> str
        Puts together the named parts and the results.
    symbol : callable
        Returns the notation of a name.
    brackets : tuple of str
    """

    def __init__(
        self,
        scalars: Mapping[str, Rule],
        ops: Mapping[type, Rule],
        otherwise: Rule,
        leaf: Callable[[Variable], Text],
        named: Callable[[Sequence[tuple[str, str]], Sequence[str]], str],
        symbol: Callable[[str], str] = str,
        brackets: tuple[str, str] = ("(", ")"),
    ) -> None:
        self._scalars = dict(scalars)
        self._ops = dict(ops)
        self._own: dict[Any, Callable[..., str]] = {}
        self._otherwise = otherwise
        self._leaf = leaf
        self._named = named
        self._symbol = symbol
        self._brackets = brackets

    def assign(self, op: Any, rule: Callable[..., str]) -> None:
        """Set the rule that writes an op.

        Parameters
        ----------
        op : Op or class
        rule : callable (*texts) -> str
            Maps the texts of the inputs, in brackets unless they are single words, to the text of
            the node.
        """
        if not isinstance(op, Op | type):
            raise TypeError(f"assign: {op!r} is no op and no class of ops")
        self._own[op] = rule

    def __call__(self, *outputs: Any) -> str:
        """Return the formulas of the outputs, in one text."""
        texts: dict[Variable, Text] = {}
        names: list[tuple[str, str]] = []
        order = toposort(outputs)
        uses = Counter(x for node in order for x in node.inputs)
        for node in order:
            arguments = [self._argument(x, texts, outputs) for x in node.inputs]
            for out in node.outputs:
                text = self._node(node, out, arguments)
                repeated = uses[out] > 1 and len(text.text) > LONGEST_SHARED
                if (repeated or len(text.text) > LONGEST) and out not in outputs:
                    names.append((self._symbol(f"t{len(names)}"), text.text))
                    text = Text(names[-1][0])
                texts[out] = text
        shown = [texts[y].text if y in texts else self._leaf(y).text for y in outputs]
        return self._named(names, shown)

    def fit(self, part: Text, level: Level) -> str:
        """Return the text, in brackets if it binds looser than ``level``."""
        left, right = self._brackets
        return part.text if part.level >= level else f"{left}{part.text}{right}"

    def _argument(self, x: Variable, texts: Mapping[Variable, Text], roots: Sequence[Any]) -> Text:
        if x not in texts or (x.name is not None and x not in roots):
            return self._leaf(x)
        return texts[x]

    def _node(self, node: Apply, out: Variable, arguments: Sequence[Text]) -> Text:
        own = self._own.get(node.op) or self._own.get(type(node.op))
        if own is not None:
            return Text(own(*[self.fit(part, Level.ATOM) for part in arguments]))
        if only_broadcasts(node):
            return arguments[0]
        if isinstance(node.op, Elemwise):
            rule = self._scalars.get(node.op.scalar.name, self._otherwise)
        else:
            rule = self._ops.get(type(node.op), self._otherwise)
        text = rule(node, arguments, self)
        return Text(f"{text.text}[{out.index}]") if len(node.outputs) > 1 else text


def only_broadcasts(node: Apply) -> bool:
    """Tell whether a node only inserts leading axes, which formulas do not show."""
    op = node.op
    if not isinstance(op, DimShuffle):
        return False
    kept = [a for a in op.order if a != "x"]
    return kept == list(range(op.ndim)) and "x" not in op.order[len(op.order) - len(kept) :]


def is_negative(x: Variable) -> bool:
    """Tell whether a variable is a number below 0, which is written with a sign."""
    return isinstance(x, Constant) and getattr(x.data, "size", 0) == 1 and bool(x.data.real < 0)
