"""The mode "SYMCOMP": PyTensor's rewrites, without rewrites for other linkers."""

from __future__ import annotations

from typing import Any

import pytensor
from pytensor.compile.mode import Mode, predefined_linkers, predefined_modes, register_linker
from pytensor.graph.rewriting.basic import GraphRewriter, get_active_mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from symcomp.compile.c_function import CFunction
from symcomp.compile.callable import Function
from symcomp.core.pause import without_garbage_collection
from symcomp.pytensor_backend.linker import Compiled, SymcompLinker

#: Left out: fusion, which symcomp does itself; a rewrite that reads the lower triangle where
#: ``solve(assume_a="pos", lower=False)`` reads the upper one (wrong numbers in PyTensor 3.3);
#: factors made apart from the systems that are solved with them.
EXCLUDED = (
    "fusion",
    "psd_solve_to_chol_solve",
    "reuse_decomposition_multiple_solves",
    "scan_split_non_sequence_decomposition_and_solve",
)


class Uninterrupted(GraphRewriter):
    """Runs the other rewrites of a mode with the cyclic garbage collector off.

    The rewrites drop few cycles, but allocate enough nodes for the collector to scan all objects of
    the process: several hundred thousand after importing PyMC. PyMC makes modes of its own from the
    linker and the query of a mode. So this rewriter is part of the query, whose
    ``position_cutoff`` leaves all other rewrites to it.
    """

    CUTOFF = -1000.0

    def add_requirements(self, fgraph: Any) -> None:
        """Add nothing: each rewriter that is run adds its own requirements."""

    @without_garbage_collection
    def apply(self, fgraph: Any) -> None:
        """Apply the rewrites of the mode that the graph is compiled in."""
        mode = get_active_mode(fgraph)
        asked = mode.provided_optimizer
        query = RewriteDatabaseQuery(
            asked.include, asked.require, asked.exclude, asked.subquery,
            extra_rewrites=[r for r in asked.extra_rewrites if not isinstance(r[0], Uninterrupted)],
        )  # fmt: skip
        Mode(mode.linker, query).optimizer.rewrite(fgraph)


QUERY = RewriteDatabaseQuery(
    include=["fast_run", "scan_save_mem_no_prealloc"],
    exclude=list(EXCLUDED),
    position_cutoff=Uninterrupted.CUTOFF,
    extra_rewrites=[(Uninterrupted(), Uninterrupted.CUTOFF - 1)],
)
SYMCOMP = Mode(SymcompLinker(), QUERY)


def register() -> None:
    """Make "SYMCOMP" a mode and "symcomp" a linker of PyTensor, which are named by strings."""
    predefined_modes["SYMCOMP"] = SYMCOMP
    if "symcomp" not in predefined_linkers:
        register_linker("symcomp", SYMCOMP.linker)


def compiled_of(f: Any) -> Compiled:
    """Return what a function of PyTensor in this mode runs.

    Parameters
    ----------
    f : pytensor.compile.executor.Function
        Compiled in mode SYMCOMP.

    Raises
    ------
    TypeError
        If it was compiled in another mode.
    """
    found = getattr(getattr(f, "vm", None), "jit_fn", None)
    if not isinstance(found, Compiled):
        raise TypeError(f"{f} is no function of PyTensor compiled in mode SYMCOMP")
    return found


def function_of(f: Any) -> Function:
    """Return the symcomp function in a function of PyTensor: its program, its profile.

    Parameters
    ----------
    f : pytensor.compile.executor.Function
    """
    return compiled_of(f).function


def fallbacks(f: Any) -> dict[str, int]:
    """Return how many nodes of each kind are computed by PyTensor's own ``perform``.

    Parameters
    ----------
    f : pytensor.compile.executor.Function
    """
    return compiled_of(f).fallbacks()


def cfunc(f: Any, *examples: Any) -> CFunction:
    """Return a function of PyTensor as one of C; see ``symcomp.Function.cfunc``.

    Parameters
    ----------
    f : pytensor.compile.executor.Function
        Compiled in mode SYMCOMP, without updates. Shared variables keep the values that they have
        now.
    *examples
        A value for each input, of the shape that it will always have.

    Raises
    ------
    TypeError
        If the function has updates, or inputs and outputs that are no arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> import symcomp.pytensor_backend as backend
    >>> x = pt.dvector("x")
    >>> f = pytensor.function([x], [(x ** 2).sum(), 2 * x], mode="SYMCOMP")
    >>> backend.cfunc(f, np.zeros(3))
    <CFunction (float64[3]) -> (float64[], float64[3])>
    """
    compiled = compiled_of(f)
    if any(spec.update is not None for spec in f.maker.inputs):
        raise TypeError(
            "cfunc: the function has updates, which a caller in C cannot apply: return the new "
            "values as outputs"
        )
    explicit = [i for i, spec in enumerate(f.maker.inputs) if not spec.implicit]
    if len(examples) != len(explicit):
        raise TypeError(f"cfunc: got {len(examples)} examples for {len(explicit)} inputs")
    values = [cell.value for cell in f.input_storage]
    for i, example in zip(explicit, examples, strict=True):
        values[i] = example
    fixed = [i for i in range(len(values)) if i not in explicit]
    return compiled.cfunc(values, fixed)


def profiled(profile: Any = True) -> Mode:
    """Return a mode like SYMCOMP whose functions are measured, instruction by instruction.

    Parameters
    ----------
    profile : bool, str or symcomp.ProfileStats
        As for ``symcomp.function``.
    """
    return Mode(SymcompLinker(profile=profile), QUERY)


__all__ = [
    "SYMCOMP", "cfunc", "compiled_of", "fallbacks", "function_of", "profiled", "pytensor",
    "register",
]  # fmt: skip
