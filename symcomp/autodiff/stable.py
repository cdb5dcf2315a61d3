"""Stabilize a copy of a graph before it is differentiated, by the rules of stabilization.

The derivative of ``log(1 + exp(x))`` as written is ``exp(x) / (1 + exp(x))``, inf / inf for large
x, and no later rewrite can recover the lost value. The derivative of its stable form,
``softplus(x)``, is ``sigmoid(x)``.

The results are expressions of the variables of the user's graph again: replacing one of these (by
``givens`` or ``clone_replace``) replaces it in the derivatives, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Type, Variable
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.walk import rebuild, toposort
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import STABILIZE
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.views import applicable, forget


@record
class Pin(Op):
    """z = x: a variable that rules neither replace nor look through."""

    number: int

    view_map = {0: (0,)}

    def output_types(self, x: Variable) -> list[Type]:
        return [x.type]

    def perform(self, x: Any) -> Any:
        return x

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[0]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return list(output_grads)

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return list(tangents)


class StableForm:
    """The graph of some variables, stabilized.

    Parameters
    ----------
    outputs : iterable of Variable
        The variables to differentiate.
    fixed : iterable of Variable
        Intermediate variables that the stable form must keep, as derivatives are taken with
        respect to them or stop there.
    """

    def __init__(self, outputs: Iterable[Variable], fixed: Iterable[Variable]) -> None:
        self._image: dict[Variable, Variable] = {}
        self._back: dict[Variable, Variable] = {}
        outputs = list(outputs)
        order = toposort(outputs)
        rules = _rules()
        if rules and _applicable(rules, order):
            self._stabilize(order, outputs, {*outputs, *fixed}, rules)

    def image(self, variable: Variable) -> Variable:
        """Return the stable form of an output or a fixed variable; itself if no rule applied."""
        return self._image.get(variable, variable)

    def original(self, results: Sequence[Any]) -> list[Any]:
        """Return results in terms of the variables of the original graph; None stays."""
        if not self._back:
            return list(results)
        some = [r for r in results if r is not None]
        rebuilt = iter(rebuild(some, self._back))
        return [None if r is None else next(rebuilt) for r in results]

    def _stabilize(
        self, order: list[Apply], outputs: list[Variable], fixed: set[Variable], rules: RuleSet
    ) -> None:
        # Pinned: rules must not fold a constant that derivatives are taken with respect to.
        images: dict[Variable, Variable] = {
            v: v.type() for n in order for v in n.inputs if isinstance(v, Constant) and v in fixed
        }
        self._image.update(images)
        self._back.update({new: old for old, new in images.items()})
        for node in order:
            twin = node.clone_with_new_inputs([images.get(v, v) for v in node.inputs])
            for old, new in zip(node.outputs, twin.outputs, strict=True):
                if old in fixed:
                    new = Pin(len(self._image))(new)
                    new.name, new.source = old.name, old.source
                    self._image[old] = new
                    self._back[new] = old
                images[old] = new
        leaves = {images.get(x, x): None for node in order for x in node.inputs if x.owner is None}
        pins = [*self._image.values(), *(v for v in outputs if v.owner is None)]
        inputs = [x for x in leaves if not isinstance(x, Constant)]
        inputs += [v for v in outputs if v.owner is None and v not in leaves]
        graph = FunctionGraph(inputs, pins, clone=False)
        engine = Engine(graph, rules, "differentiate", on_error=config.on_opt_error)
        engine.run()
        for old, new in images.items():
            while new in engine.became:
                new = engine.became[new]
            if new.owner is not None and new.type.is_super(old.type):
                self._back.setdefault(new, old)


def _rules() -> RuleSet:
    """Return the rules that the configuration does not exclude."""
    if config.optimizer in ("None", "merge"):
        return RuleSet([])
    excluded = {tag for tag in config.optimizer_excluding.split(":") if tag}
    return STABILIZE.selected(lambda tags: not tags & excluded) if excluded else STABILIZE


def _applicable(rules: RuleSet, order: Sequence[Apply]) -> bool:
    """Tell whether a rule applies somewhere, or might once equal nodes are merged."""
    facts = SimpleNamespace(facts={})
    seen: dict[Any, Variable] = {}
    for node in order:
        key = (node.op, *(_identity(x) for x in node.inputs))
        if seen.setdefault(key, node.outputs[0]) is not node.outputs[0]:
            return True
        forget()
        for rule in applicable(rules, node):
            try:
                if rule.function(node, facts) is not None:
                    return True
            except Exception:  # noqa: BLE001  (the engine says what failed, and where)
                return True
    return False


def _identity(x: Variable) -> Any:
    return x.signature() if isinstance(x, Constant) else x
