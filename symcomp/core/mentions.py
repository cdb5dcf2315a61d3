"""Mentions: variables that an expression was made of although its value does not depend on them.

``zeros_like(x)`` of a scalar does not need ``x``, nor does the gradient of ``3 * x``; but it is no
unused input of a function that computes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from symcomp.core.node import Variable
from symcomp.core.walk import ancestors

# Not attributes of the variables: compiled functions that keep a constant must not pickle these.
_models: WeakKeyDictionary[Variable, Variable] = WeakKeyDictionary()


def mention(result: Variable, model: Variable) -> None:
    """Note that ``result`` was made of ``model``."""
    _models[result] = model


def mentioned(outputs: Iterable[Variable]) -> set[Variable]:
    """Return the variables that the graphs of ``outputs``, or what these mention, contain."""
    found: set[Variable] = set()
    waiting = list(outputs)
    while waiting:
        new = [x for x in ancestors(waiting) if x not in found]
        found.update(new)
        waiting = [_models[x] for x in new if x in _models]
    return found
