"""The mode "SYMCOMP": PyTensor's rewrites, without rewrites for other linkers."""

from __future__ import annotations

from typing import Any

import pytensor
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import (
    Mode,
    optdb,
    predefined_linkers,
    predefined_modes,
    register_linker,
)
from pytensor.graph.rewriting.basic import GraphRewriter, SequentialGraphRewriter
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.basic import ExtractDiag

from symcomp.compile.c_function import CFunction
from symcomp.compile.callable import Function
from symcomp.core.pause import without_garbage_collection
from symcomp.pytensor_backend.linker import Compiled, SymcompLinker

#: Left out: fusion and all rewrites of loops, which symcomp does itself; a rewrite that reads the
#: lower triangle where ``solve(assume_a="pos", lower=False)`` reads the upper one (wrong numbers in
#: PyTensor 3.3); factors made apart from the systems that are solved with them.
EXCLUDED = (
    "fusion",
    "scan",
    "psd_solve_to_chol_solve",
    "reuse_decomposition_multiple_solves",
)

#: Left out, as symcomp computes the same numbers as fast without them: passes over the whole graph
#: that choose among forms of sums, products and axes, a search for proofs that a matrix is
#: symmetric, to save a transpose, which is a view; rewrites that try most elementwise nodes.
REDONE = (
    "uncanonicalize",
    "add_mul_fusion",
    "useless_symmetric_transpose",
    "local_mul_to_sqr",
    "local_div_to_reciprocal",
    "local_add_remove_zeros",
    "local_upcast_elemwise_constant_inputs",
    "local_useless_elemwise_comparison",
)

#: Rewrites of products and systems that ask for proofs that a matrix is diagonal, orthogonal or
#: selects rows. PyTensor has them in two databases. In the first one, they would ask again after
#: every change of the graph; there they are left out.
PROVING = (
    "cholesky_ldotlt",
    "cholesky_of_diag",
    "diagonal_solve_to_division",
    "dot_diag_to_elemwise",
    "orthogonal_dot_transpose_to_eye",
    "orthogonal_solve_to_transpose_matmul",
    "selection_dot_to_indexing",
)
FIRST = "canonicalize"

#: A rewrite that passes over the whole graph twice whenever something has changed, in search of
#: diagonals; its other parts are rewrites by themselves, too. Where a diagonal is taken it is
#: applied once, before the rewrites of the database that it is in; among them only where one is
#: taken in a graph that they may write into this one.
OF_DIAGONALS = "extract_diag_lift_pass"
DATABASE, BEFORE = "specialize", 1.99


class Uninterrupted(GraphRewriter):
    """Applies the rewrites of a query with the cyclic garbage collector off.

    The rewrites drop few cycles, but allocate enough nodes for the collector to scan all objects of
    the process: several hundred thousand after importing PyMC.
    """

    def __init__(self, query: RewriteDatabaseQuery) -> None:
        self.query = query

    def add_requirements(self, fgraph: Any) -> None:
        """Add nothing: the rewriters that are run add their own requirements."""

    @without_garbage_collection
    def apply(self, fgraph: Any) -> None:
        """Apply the rewrites to a graph."""
        query, ops = self.query, [node.op for node in fgraph.apply_nodes]
        if not any(isinstance(op, OpFromGraph) and _has_diagonals(op.fgraph) for op in ops):
            query = query.excluding(OF_DIAGONALS)
            if _has_diagonals(fgraph):
                found = optdb[DATABASE].query(self.query).global_rewriters
                once = [r for r in found if r.name == OF_DIAGONALS]
                # A rewriter of its own: registering one gives it another name.
                query = query.register((SequentialGraphRewriter(*once), BEFORE))
        optdb.query(_proving_once(query)).rewrite(fgraph)


def _proving_once(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Return a query that leaves the rewrites that ask for proofs out of the first database."""
    without = {FIRST: query.excluding(*PROVING)}
    return RewriteDatabaseQuery(
        query.include, query.require, query.exclude, {**without, **query.subquery},
        query.position_cutoff, query.extra_rewrites,
    )  # fmt: skip


def _has_diagonals(fgraph: Any) -> bool:
    """Tell whether a diagonal is taken in a graph, or in one that may be written into it."""
    ops = [node.op for node in fgraph.apply_nodes]
    return any(
        isinstance(op, ExtractDiag) or (isinstance(op, OpFromGraph) and _has_diagonals(op.fgraph))
        for op in ops
    )


class Query(RewriteDatabaseQuery):
    """A query whose rewrites are applied by ``Uninterrupted``.

    PyMC, and PyTensor for graphs in graphs, make modes of their own from the query of a mode, with
    more or fewer rewrites. So the query decides how rewrites run, and is asked for others like it.

    Attributes
    ----------
    wanted : RewriteDatabaseQuery
        The rewrites. All of them come after the cutoff of this query.
    """

    CUTOFF = -1000.0

    def __init__(self, wanted: RewriteDatabaseQuery) -> None:
        super().__init__(
            wanted.include, wanted.require, wanted.exclude, wanted.subquery, self.CUTOFF,
            [(Uninterrupted(wanted), self.CUTOFF - 1)],
        )  # fmt: skip
        self.wanted = wanted

    def including(self, *tags: str) -> Query:
        """Return a query that adds the rewrites with these tags."""
        return Query(self.wanted.including(*tags))

    def excluding(self, *tags: str) -> Query:
        """Return a query without the rewrites with these tags."""
        return Query(self.wanted.excluding(*tags))

    def requiring(self, *tags: str) -> Query:
        """Return a query for those of the rewrites that have these tags."""
        return Query(self.wanted.requiring(*tags))

    def register(self, *rewrites: Any) -> Query:
        """Return a query with further rewriters, given with their positions."""
        return Query(self.wanted.register(*rewrites))


QUERY = Query(RewriteDatabaseQuery(include=["fast_run"], exclude=[*EXCLUDED, *REDONE]))
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
