"""``theano.Mode``, whose optimizer may be one of the user's program, or a query."""

from __future__ import annotations

import copy
from typing import Any

from symcomp.compat.missing import Adapted
from symcomp.compat.optdb import Chosen, Query, optdb
from symcomp.compat.rewriting import Optimizer
from symcomp.compile.mode import OPTIMIZERS, Mode
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.trace import Trace
from symcomp.vm.inspection import Selects


class ModeOfOptimizer(Mode):
    """A mode that rewrites by an optimizer of the user's program."""

    def __init__(self, linker: Any, own: Optimizer) -> None:
        super().__init__(linker, "None")
        self.own = own

    def apply_rules(self, graph: FunctionGraph, selects: Selects | None = None) -> Trace:
        """Rewrite a graph in place; the optimizer has no tags to select by."""
        return self.own.optimize(graph) or Trace()

    def selects(self, tags: Any) -> bool:
        """Tell whether the query selects ``tags``; false without a query."""
        return isinstance(self.own, Chosen) and self.own.chosen_by.selects(tags)

    def including(self, *tags: str) -> Mode:
        """Return a copy that also applies the rewrites with one of ``tags``."""
        return self._asking(lambda query: query.including(*tags))

    def excluding(self, *tags: str) -> Mode:
        """Return a copy without the rewrites that have one of ``tags``."""
        return self._asking(lambda query: query.excluding(*tags))

    def clone(self, linker: Any = None, optimizer: Any = None) -> Mode:
        """Return a copy, with another linker or optimizer."""
        return _made(linker or self.linker, optimizer or self.own)

    def _asking(self, change: Any) -> Mode:
        if not isinstance(self.own, Chosen):
            raise TypeError(f"{self.own} is an optimizer, which has no tags to choose by")
        twin = copy.copy(self)
        twin.own = Chosen(change(self.own.chosen_by))
        return twin


def _made(linker: Any = None, optimizer: Any = "default") -> Mode:
    if isinstance(optimizer, str) and optimizer not in OPTIMIZERS:
        optimizer = PREDEFINED.get(optimizer, optimizer)
    if isinstance(optimizer, Query):
        return ModeOfOptimizer(linker, optdb.query(optimizer))
    if isinstance(optimizer, Optimizer):
        return ModeOfOptimizer(linker, optimizer)
    return Mode(linker, optimizer)


AnyMode = Adapted("theano.compile.Mode", Mode, _made)


def register_optimizer(name: str, opt: Any) -> None:
    """Register an optimizer, or a query, for ``Mode(optimizer=name)``."""
    if name in PREDEFINED:
        raise ValueError(f"register_optimizer: the name {name!r} is taken")
    PREDEFINED[name] = opt


#: ``predefined_optimizers``: the queries behind the optimizers' names.
PREDEFINED: dict[str | None, Any] = {
    name: Query([level, *more]) for name, (level, more) in OPTIMIZERS.items()
}
PREDEFINED |= {None: PREDEFINED["None"], "fast_run_stable": PREDEFINED["stabilize"]}
#: The same queries by Theano's names: ``OPT_FAST_RUN`` and others.
QUERIES = {f"OPT_{name}".upper(): query for name, query in PREDEFINED.items()}
