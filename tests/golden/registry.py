"""The functions that have golden files, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symcomp.core.node import Variable


@dataclass(frozen=True)
class Golden:
    """Arguments of ``symcomp.function``, and of one call of it.

    Attributes
    ----------
    inputs : sequence of Variable or In
    outputs : Variable, Out, or list of them
    arguments : sequence of numpy.ndarray
        Of the call, one for each input.
    updates : mapping of shared variable to Variable
    whole_kernels : bool
        Show the C of kernels in full.
    """

    inputs: Sequence[Any]
    outputs: Any
    arguments: Sequence[Any]
    updates: Mapping[Any, Variable] = field(default_factory=dict)
    whole_kernels: bool = False


Builder = Callable[[], Golden]
BUILDERS: dict[str, Builder] = {}


def golden(build: Builder) -> Builder:
    """Register a builder under its own name."""
    name = build.__name__
    if name in BUILDERS:
        raise ValueError(f"there are two golden functions called {name}")
    BUILDERS[name] = build
    return build
