"""The description of a kernel beside its functions: its arrays, and its passes over them.

The loops around functions are shared by all kernels: ``nest_elementwise`` and ``nest_reduction`` of
the headers, ``sweeps.py`` in the interpreter. They sort axes by stride, copy blocks that are not
contiguous, and divide long loops among threads. A ``Sweep`` describes a kernel to them.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from symcomp.codegen.loopir.ir import KernelFunction
from symcomp.core.record import record

# The most elements copied together, the most adjacent results of one call of a function, and the
# elements between one temporary and the next.
BLOCK, MOST_LANES, GAP = 512, 4096, 24
# More results than FEW_LANES are side by side where their totals take less of the stack.
FEW_LANES, MOST_STACK = 1024, 1 << 20


class Role(IntEnum):
    """The use of an array by a function: ``enum role`` of ``nest.h``.

    READ, WRITE and CHANGE (both): one element for each lane. NUMBER: read, one for each row. LANE:
    one for each lane, the same for all rows. GATHERED and SCATTERED: read, or added to, at
    positions, along no axis.
    """

    UNUSED = 0
    READ = 1
    WRITE = 2
    NUMBER = 3
    LANE = 4
    CHANGE = 5
    GATHERED = 6
    SCATTERED = 7


@record
class RowFunction:
    """A function over rows of elements, by name, and the roles of all arrays in it."""

    function: str
    roles: tuple[Role, ...]


@record
class Stage:
    """A pass over the reduced elements, and the computation that follows it for each result.

    Attributes
    ----------
    along, across : RowFunction
        The pass with results side by side, and with parts of one result side by side.
    section : RowFunction
        The computation on totals; its lanes are results.
    parts : int
        The largest number of parts of one result; 0 for any number.
    chosen : tuple of int
        The temporary arrays of truth values, one for each result, where the pass adds something; it
        is left out where all are false, unless there are none.
    ready : bool
        Whether all of the stage is left out then, as the results are there.
    lanes : str
        The function that computes whole results from ``parts`` parts; empty if there is none.
    totals : tuple of str
        The functions that initialize, merge and finish totals, if there are totals.
    """

    along: RowFunction
    across: RowFunction
    section: RowFunction
    parts: int
    chosen: tuple[int, ...]
    ready: bool
    lanes: str
    totals: tuple[str, ...]


@record
class Sweep:
    """The arrays and passes of a kernel. Arrays by number: inputs, outputs, literals, temporaries.

    Attributes
    ----------
    rank : int
    dtypes : tuple of str
        The dtypes of all arrays.
    temporaries : int
        The number of the first temporary.
    stretched : tuple of tuple of bool
        For each input and output, the axes along which it is one number; all of them, of a table.
    reduced : tuple of bool
        For each axis, whether it is reduced.
    nonempty : bool
        If true, reduced axes must have elements.
    bodies : tuple of RowFunction
        Without reductions: ways to compute the same. The first is taken whose numbers are the same
        along the innermost axis.
    stages : tuple of Stage
        With reductions.
    tables : frozenset of int
        The inputs that are tables, and the outputs that are.
    """

    rank: int
    dtypes: tuple[str, ...]
    temporaries: int
    stretched: tuple[tuple[bool, ...], ...]
    reduced: tuple[bool, ...]
    nonempty: bool
    bodies: tuple[RowFunction, ...] = ()
    stages: tuple[Stage, ...] = ()
    tables: frozenset[int] = frozenset()

    @property
    def in_order(self) -> RowFunction | None:
        """The body that computes all elements at once, without a team, if all arrays are in C
        order: its numbers are the same for all elements.
        """
        return self.bodies[-1] if self.bodies else None

    @property
    def singles(self) -> frozenset[int]:
        """The inputs and outputs that have one element for each result."""
        reduced = [axis for axis, one in enumerate(self.reduced) if one]
        arrays = enumerate(self.stretched)
        return frozenset(a for a, pattern in arrays if all(pattern[axis] for axis in reduced))

    @property
    def sizes(self) -> list[int]:
        """The bytes of an element of each array."""
        return [np.dtype(dtype).itemsize for dtype in self.dtypes]

    @property
    def width(self) -> int:
        """The bytes of the largest elements, 8 at least."""
        return max(8, *self.sizes)

    @property
    def buffer(self) -> int:
        """The bytes that a thread needs for blocks and totals."""
        totals = len(self.dtypes) - self.temporaries if self.stages else 0
        return self.width * (self.temporaries * BLOCK + totals * (self.lanes + GAP))

    @property
    def lanes(self) -> int:
        """How many results are computed side by side, at most."""
        totals = max(1, len(self.dtypes) - self.temporaries)
        room = MOST_STACK // (self.width * totals) // FEW_LANES * FEW_LANES
        return min(MOST_LANES, max(FEW_LANES, room))


@record
class Loops:
    """The kernel of one nest: its functions, which other kernels may share, and its sweep."""

    functions: tuple[KernelFunction, ...]
    sweep: Sweep


@record
class Kept:
    """A temporary array of a kernel of several nests, without gaps.

    Attributes
    ----------
    dtype : str
    stretched : tuple of bool
        The axes along which it is one number.
    positions_of : int or None
        The input whose positions along ``axis``, maybe from the end, it holds from the beginning.
    axis : int or None
        Of these positions; without an input, it holds 0, 1, 2, ... along this axis.
    """

    dtype: str
    stretched: tuple[bool, ...]
    positions_of: int | None = None
    axis: int | None = None


@record
class NestPart:
    """A nest of a kernel of several.

    Attributes
    ----------
    loops : Loops
    arrays : tuple of int
        Its inputs and outputs, as numbers of the whole: given arrays, then temporary ones.
    literals : tuple of int
        Its literals, as numbers of the whole.
    ones : tuple of bool
        The axes that have length 1 in all of its arrays.
    """

    loops: Loops
    arrays: tuple[int, ...]
    literals: tuple[int, ...]
    ones: tuple[bool, ...]


@record
class Nests:
    """A kernel of several nests, run one after another until one fails.

    Attributes
    ----------
    rank : int
    given : int
        The number of inputs and outputs.
    kept : tuple of Kept
    parts : tuple of NestPart
    dtypes : tuple of str
        The dtypes of the inputs and outputs.
    """

    rank: int
    given: int
    kept: tuple[Kept, ...]
    parts: tuple[NestPart, ...]
    dtypes: tuple[str, ...]
