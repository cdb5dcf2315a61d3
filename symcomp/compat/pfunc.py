"""``theano.compile.pfunc``: how ``function`` copies the graph of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from symcomp.compile.arguments import read_pairs
from symcomp.compile.io import In, Out
from symcomp.compile.shared import SharedVariable
from symcomp.core.node import Apply, Variable
from symcomp.core.walk import toposort

__all__ = ["iter_over_pairs", "rebuild_collect_shared"]


def iter_over_pairs(pairs: Any) -> Iterable[tuple[Any, Any]]:
    """Return the pairs of a dict or of a sequence of pairs."""
    return pairs.items() if isinstance(pairs, Mapping) else pairs


class _Copier:
    """Copies variables and their graphs; each variable is copied once."""

    def __init__(self, copies_inputs: bool, strict: bool) -> None:
        self.copies: dict[Variable, Variable] = {}
        self._copies_inputs, self._strict = copies_inputs, strict
        self.shared: list[SharedVariable] = []

    def replace(self, old: Variable, new: Any) -> None:
        """Copy ``new`` wherever ``old`` occurs."""
        new = new if isinstance(new, Variable) else old.type.make_constant(new)
        if self._strict:
            new = old.type.filter_variable(new)
        if old in self.copies:
            raise AssertionError(f"rebuild_collect_shared: {old} is replaced after it was copied")
        self.copies[old] = self.of(new)

    def of(self, variable: Variable) -> Variable:
        """Return the copy of a variable."""
        for node in toposort([variable], self.copies):
            self._add(node)
        return self._leaf(variable)

    def _add(self, node: Apply) -> None:
        inputs = [self._leaf(x) for x in node.inputs]
        twin = node.clone_with_new_inputs(inputs, self._strict)
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            self.copies.setdefault(old, new)

    def _leaf(self, v: Variable) -> Variable:
        """Return the copy of a variable without owner, or of one whose node is copied already."""
        if v not in self.copies:
            if isinstance(v, SharedVariable):
                self.shared.append(v)
            self.copies[v] = v.clone() if self._copies_inputs else v
        return self.copies[v]


def rebuild_collect_shared(
    outputs: Any,
    inputs: Sequence[Any] | None = None,
    replace: Any = None,
    updates: Any = None,
    rebuild_strict: bool = True,
    copy_inputs_over: bool = True,
    no_default_updates: Any = False,
) -> tuple[list[Any], Any, list[Any]]:
    """Copy the graph of some outputs, with replacements, and find its shared variables.

    Parameters
    ----------
    outputs : Variable, Out, list or dict of them, or None
    inputs : list of Variable or In, optional
    replace, updates : pairs or dict, optional
        As ``givens`` and ``updates`` of ``function``.
    rebuild_strict : bool
        See ``function``.
    copy_inputs_over : bool
        Whether the copies have the variables without owner themselves; else copies of these.
    no_default_updates : bool or list of shared variables
        See ``function``.

    Returns
    -------
    input_variables : list
        The inputs, or their copies.
    outputs
        Of the form of ``outputs``.
    others : list
        A dict from variables to their copies; one from shared variables to the copies of their
        updates; the pairs of shared variables and updates, not copied; the shared variables.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.pfunc import rebuild_collect_shared
    >>> x, s = T.dscalar("x"), symcomp.shared(2.0, "s")
    >>> inputs, z, others = rebuild_collect_shared(x * s, [x], updates=[(s, s + 1)])
    >>> others[3], float(z.eval({x: 3.0}))
    ([s], 6.0)
    """
    copier = _Copier(not copy_inputs_over, rebuild_strict)
    given = [x.variable if isinstance(x, In) else x for x in inputs or ()]
    for old, new in read_pairs("replace", replace):
        copier.replace(old, new)
    found_inputs = [_copied_input(x, copier) for x in inputs or ()]
    pairs = [(s, _as_update(s, new)) for s, new in read_pairs("updates", updates)]
    copied = _copied_outputs(outputs, copier)
    new_values: dict[Any, Variable] = {}
    done = 0
    while True:
        _add_default_updates(copier.shared, pairs, no_default_updates, given)
        if done == len(pairs):
            break
        s, new = pairs[done]
        new_values[s] = copier.of(new)
        done += 1
    return found_inputs, copied, [copier.copies, new_values, pairs, copier.shared]


def _as_update(shared: Any, new: Any) -> Variable:
    if not isinstance(shared, SharedVariable):
        raise TypeError(f"rebuild_collect_shared: updates: {shared!r} is no shared variable")
    found: Variable = shared.type.filter_variable(
        new if isinstance(new, Variable) else shared.type.make_constant(new)
    )
    return found


def _add_default_updates(
    shared: Sequence[SharedVariable], pairs: list[Any], excluded: Any, given: Sequence[Variable]
) -> None:
    """Add the default updates of shared variables that have no update."""
    if excluded is True:
        return
    updated = {s for s, _ in pairs} | set(excluded or ()) | set(given)
    for s in shared:
        if s.default_update is not None and s not in updated:
            pairs.append((s, s.default_update))


def _copied_input(item: Any, copier: _Copier) -> Any:
    if not isinstance(item, In):
        return copier.of(item)
    twin = copy(item)
    twin.variable = copier.of(item.variable)
    twin.update = None if item.update is None else copier.of(item.update)
    return twin


def _copied_outputs(outputs: Any, copier: _Copier) -> Any:
    one: Callable[[Any], Any] = lambda item: _copied_output(item, copier)  # noqa: E731
    if outputs is None:
        return []
    if isinstance(outputs, Mapping):
        return {key: one(item) for key, item in outputs.items()}
    return [one(item) for item in outputs] if isinstance(outputs, list | tuple) else one(outputs)


def _copied_output(item: Any, copier: _Copier) -> Any:
    if isinstance(item, Out):
        return Out(copier.of(item.variable), item.borrow)
    if not isinstance(item, Variable):
        raise TypeError(f"rebuild_collect_shared: the output {item!r} is no variable or Out")
    return copier.of(item)
