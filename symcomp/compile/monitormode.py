"""MonitorMode: call the user's functions before and after every node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.compile.mode import Mode
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.core.tree import Tree, TreeOptions
from symcomp.core.values import describe_contents
from symcomp.vm.guard import has_nan
from symcomp.vm.inspection import Inspector, Work
from symcomp.vm.program import Instruction
from symcomp.vm.replay import as_before, first_bad, step_text


@record(frozen=False)
class Computation:
    """The view of one computation of a node that a monitor gets.

    Attributes
    ----------
    inputs, outputs : list of list
        Each value in a list of its own, as in Theano; the outputs' are None before.
    """

    inputs: list[list[Any]]
    outputs: list[list[Any]]


Monitor = Callable[[int, Apply, Computation], None]


class _Monitors(Inspector):
    def __init__(self, before: Monitor | None, after: Monitor | None) -> None:
        self._before, self._after = before, after

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        node: Any = step.node
        inputs = [[value] for value in as_before(node, values)]
        seen = Computation(inputs, [[None] for _ in node.outputs])
        if self._before is not None:
            self._before(position, node, seen)
        results = work(values)
        if self._after is None:
            return results
        seen.outputs = [[value] for value in results]
        self._after(position, node, seen)
        return [
            result if cell[0] is result else out.type.filter(cell[0])
            for out, result, cell in zip(node.outputs, results, seen.outputs, strict=True)
        ]


class MonitorMode(Mode):
    """A mode that calls ``pre_func`` before every node is computed, and ``post_func`` after it.

    The native machine runs the same program as without it, loops included, whose nodes are seen in
    each step. To see the ops in fused kernels one by one, use ``mode.excluding("fusion")``, which
    reaches into loops, too. As the ``mode`` of a loop, as in ``scan(..., mode=MonitorMode(...))``,
    it sees the steps of this loop, in functions of any mode.

    Parameters
    ----------
    pre_func, post_func : callable (i, node, fn), optional
        ``i`` is the number of the instruction; ``fn.inputs`` and ``fn.outputs`` hold the values,
        each in a list of one element. What ``post_func`` puts into ``fn.outputs`` is used instead.
    optimizer, linker
        As for ``Mode``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compile.monitormode import MonitorMode
    >>> def show(i, node, fn):
    ...     print(i, node.op, [cell[0] for cell in fn.inputs], [cell[0] for cell in fn.outputs])
    >>> x = T.dscalar("x")
    >>> f = symcomp.function([x], x * 3, mode=MonitorMode(post_func=show))
    >>> y = f(2.0)
    0 mul [array(2.), array(3.)] [array(6.)]
    """

    def __init__(
        self,
        pre_func: Monitor | None = None,
        post_func: Monitor | None = None,
        optimizer: Any = "default",
        linker: Any = None,
    ) -> None:
        super().__init__(linker, optimizer)
        self.inspector = _Monitors(pre_func, post_func)


def detect_nan(i: int, node: Apply, fn: Computation) -> None:
    """Print a node that gives NaN, and its values: for ``MonitorMode(post_func=detect_nan)``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compile import MonitorMode, detect_nan
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.log(x), mode=MonitorMode(post_func=detect_nan))
    >>> f([-1.0])
    *** NaN detected ***
    ...
    array([nan])
    """
    results = [cell[0] for cell in fn.outputs]
    if not any(map(has_nan, results)):
        return
    tree = Tree(TreeOptions(print_source=True, depth=4, print_inner_graphs=False))
    tree.add(node.outputs[:1])
    given = [cell[0] for cell in fn.inputs]
    lines = ["*** NaN detected ***", *tree.lines]
    lines += [f"Input {k}: {describe_contents(value)}" for k, value in enumerate(given)]
    lines += [f"Output {k}: {describe_contents(value)}" for k, value in enumerate(results)]
    first = first_bad(node, given, has_nan)
    if first is not None:
        lines.append(f"Of these: {step_text(first)}")
    print("\n".join(lines))
