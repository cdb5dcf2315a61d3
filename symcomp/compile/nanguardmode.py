"""NanGuardMode: raise at the first NaN, infinity or huge number, naming the node that computed it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.compile.mode import Mode
from symcomp.core.dtype import kind
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Variable
from symcomp.core.sparse_values import numbers_of
from symcomp.core.values import describe_contents
from symcomp.vm.guard import NaNError
from symcomp.vm.inspection import Inspector, Work
from symcomp.vm.program import Instruction
from symcomp.vm.replay import as_before, first_bad, step_text

# Numbers of a larger magnitude are big.
BIG = 1e10
ACTIONS = ("raise", "warn", "pdb")


class NanGuardError(NaNError, AssertionError):
    """A value is NaN, infinite or huge."""


class NanGuard(Inspector):
    """The inspector of NanGuardMode."""

    def __init__(self, nan: bool, inf: bool, big: bool, action: str) -> None:
        self._tests: list[tuple[str, Callable[[Any], Any]]] = []
        if nan:
            self._tests.append(("NaN", np.isnan))
        if inf:
            self._tests.append(("infinite numbers", np.isinf))
        if big:
            self._tests.append((f"numbers beyond {BIG:.0e}", _is_big))
        self._action = action

    def begin(self, graph: FunctionGraph, values: Sequence[Any], inner: bool) -> None:
        if inner:
            return
        for x, value in zip(graph.inputs, values, strict=False):
            kinds = self._found(value) if _is_checked(x) else []
            if kinds:
                made = f", made at {x.source}" if x.source is not None else ""
                self._act(
                    f"{_words(kinds)} in the input {x} ({x.type}{made}): {describe_contents(value)}"
                )

    def call(
        self, position: int, step: Instruction, values: Sequence[Any], work: Work
    ) -> Sequence[Any]:
        node: Any = step.node
        given = as_before(node, values)
        results = work(values)
        for position, (out, value) in enumerate(zip(node.outputs, results, strict=True)):
            kinds = self._found(value) if _is_checked(out) else []
            if not kinds:
                continue
            place = f"output {position} of " if len(node.outputs) > 1 else ""
            message = f"{_words(kinds)} in {place}{node.op}: {describe_contents(value)}"
            if node.source is not None:
                message += f"; the expression was made at {node.source}"
            first = first_bad(node, given, lambda v: bool(self._found(v)))
            self._act(message if first is None else f"{message}; {step_text(first)}")
        return results

    def _found(self, value: Any) -> list[tuple[str, int]]:
        """Return the kinds of bad elements of a value, and how many there are of each."""
        numbers = numbers_of(value)
        if numbers is None or kind(numbers.dtype) not in "fc":
            return []
        counts = [(word, int(np.count_nonzero(test(numbers)))) for word, test in self._tests]
        return [(word, n) for word, n in counts if n]

    def _act(self, message: str) -> None:
        if self._action == "raise":
            raise NanGuardError(message)
        if self._action == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        else:
            print(message)
            sys.breakpointhook()


class NanGuardMode(Mode):
    """A mode in which NaN, infinite and huge numbers are errors, wherever they arise.

    The native machine runs the same program as without it. Loops are checked step by step,
    and fused kernels are computed again, op by op, to name the op that made the value. A variable
    with ``x.tag.nan_guard_mode_check = False`` is not checked.

    Parameters
    ----------
    nan_is_error, inf_is_error, big_is_error : bool
        The kinds of numbers that raise; a finite number is big beyond 1e10. None means true.
    optimizer, linker
        As for ``Mode``.
    action : {"raise", "warn", "pdb"}
        The reaction: raise NanGuardError (which is an AssertionError and a FloatingPointError),
        warn, or start the debugger.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compile.nanguardmode import NanGuardMode
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.log(x) * 2, mode=NanGuardMode())
    >>> f([-1.0])
    Traceback (most recent call last):
        ...
    symcomp.compile.nanguardmode.NanGuardError: 1 NaN in ...; in it, the step log, made at ...
    """

    def __init__(
        self,
        nan_is_error: bool | None = None,
        inf_is_error: bool | None = None,
        big_is_error: bool | None = None,
        optimizer: Any = "default",
        linker: Any = None,
        action: str = "raise",
    ) -> None:
        super().__init__(linker, optimizer)
        if action not in ACTIONS:
            known = ", ".join(map(repr, ACTIONS))
            raise ValueError(f"NanGuardMode: there is no action {action!r}; there are {known}")
        nan, inf, big = (
            flag is None or bool(flag) for flag in (nan_is_error, inf_is_error, big_is_error)
        )
        if not (nan or inf or big):
            raise ValueError("NanGuardMode: nothing is an error: one of the three must be true")
        self._checks = (nan, inf, big, action)
        self.inspector = NanGuard(nan, inf, big, action)

    @property
    def options(self) -> dict[str, Any]:
        names = ("nan_is_error", "inf_is_error", "big_is_error", "action")
        return dict(zip(names, self._checks, strict=True))


def _is_big(value: Any) -> Any:
    magnitude = np.abs(value)
    return (magnitude > BIG) & np.isfinite(magnitude)


def _is_checked(x: Variable) -> bool:
    return bool(getattr(x.tag, "nan_guard_mode_check", True))


def _words(kinds: Sequence[tuple[str, int]]) -> str:
    return " and ".join(f"{n} {word}" for word, n in kinds)
