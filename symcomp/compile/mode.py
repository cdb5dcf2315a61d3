"""Mode: the machine that runs a function, and the rewrites applied to it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from symcomp.compile import features
from symcomp.config import config
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.phases import rewrite
from symcomp.rewrite.registry import extended
from symcomp.rewrite.trace import Trace
from symcomp.vm.inspection import Inspector, Selects
from symcomp.vm.policy import Policy

LINKERS = ("cvm", "cvm_nogc", "vm", "vm_nogc", "py", "c", "c|py", "c|py_nogc")
# The optimizers: the level of rewriting (see rewrite/phases.py), and additional tags.
OPTIMIZERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fast_run": ("fast_run", ()),
    "stabilize": ("up_to_stabilize", ()),
    "fast_compile": ("fast_compile", ()),
    "merge": ("merge_only", ()),
    "None": ("no rewriting", ()),
    "unsafe": ("fast_run", ("unsafe",)),
    "o4": ("fast_run", ()),
    "o3": ("fast_run", ()),
    "o2": ("up_to_stabilize", ()),
    "o1": ("fast_compile", ()),
}


class Mode:
    """Options of compiling.

    Parameters
    ----------
    linker : str, optional
        ``"cvm"``: the native machine; ``"vm"``: the Python machine, which gives the same results;
        ``"cvm_nogc"``, ``"vm_nogc"``: the same, keeping intermediate values until the next call.
        Theano's ``"c"`` and ``"c|py"`` are ``cvm``, ``"py"`` is ``vm``. None: ``config.linker``.
    optimizer : str, optional
        The rewrites to apply: ``"fast_run"`` (all safe ones), ``"stabilize"`` (up to the
        numerically stable forms, nothing for speed), ``"fast_compile"`` (the cheap ones),
        ``"merge"``, ``"None"``; ``"unsafe"`` is ``fast_run`` and rewrites that may turn NaN into
        numbers or hide a shape error. Theano's ``"o1"`` to ``"o4"`` are understood. ``"default"``:
        ``config.optimizer``.

    Examples
    --------
    >>> import symcomp
    >>> symcomp.Mode(linker="py", optimizer="fast_run").excluding("constant_folding")
    Mode(linker='py', optimizer='fast_run', excluding=('constant_folding',))
    """

    # The inspector of the values of all nodes, in modes that check.
    inspector: Inspector | None = None

    def __init__(self, linker: Any = None, optimizer: Any = "default") -> None:
        self.linker: str = config.linker if linker is None else linker
        self.optimizer: str = config.optimizer if optimizer == "default" else str(optimizer)
        self._included: tuple[str, ...] = _tags(config.optimizer_including)
        self._excluded: tuple[str, ...] = _tags(config.optimizer_excluding)
        if self.linker not in LINKERS:
            raise ValueError(
                f"Mode: linker {linker!r} does not exist; there are {', '.join(LINKERS)}"
            )
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(
                f"Mode: optimizer {optimizer!r} does not exist; there are {', '.join(OPTIMIZERS)}"
            )

    @property
    def parts(self) -> list[Any]:
        """Linker, optimizer, tags included and excluded: the arguments of ``of_parts``."""
        return [self.linker, self.optimizer, list(self._included), list(self._excluded)]

    @property
    def options(self) -> dict[str, Any]:
        """Other arguments of the constructor, by name: numbers, texts and None."""
        return {}

    @classmethod
    def of_parts(
        cls,
        linker: str,
        optimizer: str,
        included: Iterable[str],
        excluded: Iterable[str],
        **options: Any,
    ) -> Mode:
        """Make the mode of these parts, independent of the configuration."""
        mode = cls(linker=linker, optimizer=optimizer, **options)
        mode._included, mode._excluded = tuple(included), tuple(excluded)
        return mode

    def clone(self, linker: Any = None, optimizer: Any = None) -> Mode:
        """Return a copy, with another linker or optimizer."""
        named = Mode(linker or self.linker, optimizer or self.optimizer)
        twin = copy.copy(self)
        twin.linker, twin.optimizer = named.linker, named.optimizer
        return twin

    def including(self, *tags: str) -> Mode:
        """Return a copy that also applies the rewrites with one of ``tags``."""
        twin = self.clone()
        twin._included += tags
        twin._excluded = tuple(t for t in twin._excluded if t not in tags)
        return twin

    def excluding(self, *tags: str) -> Mode:
        """Return a copy without the rewrites that have one of ``tags``."""
        twin = self.clone()
        twin._excluded += tags
        return twin

    def selects(self, tags: Any) -> bool:
        """Tell whether a rewrite with ``tags`` is applied."""
        wanted, unwanted = _wanted(self.optimizer, self._included, self._excluded)
        return unwanted.isdisjoint(tags) and not wanted.isdisjoint(tags)

    def apply_rules(self, graph: FunctionGraph) -> Trace:
        """Rewrite a graph in place."""
        return self._rewrite(graph, None)

    def _rewrite(self, graph: FunctionGraph, selects: Selects | None) -> Trace:
        chosen = self.selects if selects is None else selects
        return rewrite(graph, chosen, config.on_opt_error, extended(features.phases()))

    def policy(self, nan_guard: str, inspector: Inspector | None) -> Policy:
        """Return how a function of this mode, and all graphs in its ops, are compiled."""
        return Policy(
            self.native, features.lowerings("cpu"), features.kernels(), features.planning(),
            features.bodies(), self._rewrite, nan_guard, inspector,
        )  # fmt: skip

    def rewrite(self, graph: FunctionGraph) -> Trace:
        """Rewrite a graph in place, reporting to the inspector."""
        if self.inspector is None:
            return self.apply_rules(graph)
        return self.inspector.rewrite(graph, self.apply_rules)

    @property
    def native(self) -> bool:
        """True if the native machine runs the program."""
        return self.linker.startswith("c")

    @property
    def keeps_values(self) -> bool:
        """True if intermediate values stay until the next call."""
        return self.linker.endswith("_nogc") or not config.allow_gc

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.linker, self.optimizer, self._included, self._excluded))

    def __repr__(self) -> str:
        extra = "".join(
            f", {word}={tags!r}"
            for word, tags in (("including", self._included), ("excluding", self._excluded))
            if tags
        )
        return f"{type(self).__name__}(linker={self.linker!r}, optimizer={self.optimizer!r}{extra})"


@lru_cache
def _wanted(
    optimizer: str, included: tuple[str, ...], excluded: tuple[str, ...]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the tags one of which a rewrite needs, and those it may not have."""
    level, more = OPTIMIZERS[optimizer]
    return frozenset([level, *more, *included]), frozenset(excluded)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag for tag in text.split(":") if tag)


# By lower-case name: the name as registered, and the function that makes the mode.
_modes: dict[str, tuple[str, Callable[[], Mode]]] = {
    "mode": ("Mode", lambda: Mode()),
    "fast_run": ("FAST_RUN", lambda: Mode(optimizer="fast_run")),
    "fast_compile": ("FAST_COMPILE", lambda: Mode(optimizer="fast_compile")),
}


def register_mode(name: str, mode: Mode | Callable[[], Mode]) -> None:
    """Make ``mode``, or what it returns when it is called, available by name.

    Raises
    ------
    ValueError
        If the name is taken.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp.compile import Mode, function, register_mode
    >>> register_mode("python only", Mode(linker="py"))
    >>> function([], T.constant(1.0) + 1.0, mode="python only")()
    array(2.)
    """
    if name.lower() in _modes:
        raise ValueError(f"register_mode: there is a mode {name!r} already")
    make = (lambda: mode) if isinstance(mode, Mode) else mode
    _modes[name.lower()] = name, make


def get_mode(mode: Any) -> Mode:
    """Return the Mode named by ``mode``: a Mode, a name in any case, or None for ``config.mode``.

    Raises
    ------
    ValueError
        If there is none of that name.

    Examples
    --------
    >>> import symcomp
    >>> symcomp.compile.get_mode("FAST_COMPILE")
    Mode(linker='cvm', optimizer='fast_compile')
    """
    if isinstance(mode, Mode):
        return mode
    name = config.mode if mode is None else mode
    if not isinstance(name, str) or name.lower() not in _modes:
        known = ", ".join(sorted(written for written, _ in _modes.values()))
        raise ValueError(f"mode {name!r} does not exist; there are {known}, or pass a Mode")
    return _modes[name.lower()][1]()


def get_default_mode() -> Mode:
    """Return the mode of functions compiled without one.

    Examples
    --------
    >>> from symcomp.compile import get_default_mode
    >>> get_default_mode().linker
    'cvm'
    """
    return get_mode(None)
