"""Record the variables that an expression was made of although its value does not depend on them.

The values of ``zeros_like(x)`` and of the gradient of ``3 * x`` do not depend on a scalar ``x``,
but a function that computes them must not report ``x`` as an unused input.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from symcomp.core.node import Variable
from symcomp.core.walk import ancestors

# Weak references, not attributes of the variables: a compiled function that keeps a constant must
# not pickle the variables it mentions.
_models: WeakKeyDictionary[Variable, Variable] = WeakKeyDictionary()


def mention(result: Variable, model: Variable) -> None:
    """Record that ``result`` was made of ``model``."""
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
