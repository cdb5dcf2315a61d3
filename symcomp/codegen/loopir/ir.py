"""LoopIR: the loops of a kernel as data.

A function is a list of statements: loops with a kind, pointers into arrays, accumulators, values
defined once, stores. Lengths and positions are ``Index`` expressions of int64; elements are
``Value`` expressions with a dtype; both are in ``expressions.py``. Every decision about a kernel is
explicit here: unrolled rows, trees of additions, remainder blocks. A printer decides nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from symcomp.codegen.loopir.expressions import Index, Value
from symcomp.core.record import record


class Kind(Enum):
    """How the iterations of a loop are executed."""

    SERIAL = "one after another"
    REDUCE = "one after another, each adding to accumulators"
    INDEPENDENT = "in any order, as the compiler likes"
    VECTOR = "in any order, several at once"
    PARALLEL = "shared by threads"
    GRID = "blocks of a grid"
    BLOCK = "threads of a block, which meet at barriers"
    LANES = "neighbouring threads of warps of a grid, each group by itself"
    COLUMNS = "tiles of a grid: neighbouring threads of a block, and groups of them, which meet"
    THREAD = "threads of a grid, each by itself"
    UNROLLED = "one after another, without a loop: their number is known"


ANY_ORDER = (
    Kind.INDEPENDENT, Kind.VECTOR, Kind.PARALLEL, Kind.GRID, Kind.BLOCK, Kind.LANES, Kind.COLUMNS,
    Kind.THREAD,
)  # fmt: skip

# A kernel has hundreds of these records: an explicit ``__init__`` takes a third of the time.

# -- statements


@record
class Pointer:
    """A pointer to elements of an array.

    Attributes
    ----------
    name : str
    dtype : str
    array : int
        Its number in ``table``.
    offset : Index
        The bytes from the beginning of the array: a sum of products with ``Stride``.
    elements : Index
        The number of elements to advance.
    writes : bool
        If true, elements are written.
    table : str
        The table of addresses of arrays.
    """

    name: str
    dtype: str
    array: int
    offset: Index = 0
    elements: Index = 0
    writes: bool = False
    table: str = "data"

    def __init__(
        self,
        name: str,
        dtype: str,
        array: int,
        offset: Index = 0,
        elements: Index = 0,
        writes: bool = False,
        table: str = "data",
    ) -> None:
        values = self.__dict__
        values["name"] = name
        values["dtype"] = dtype
        values["array"] = array
        values["offset"] = offset
        values["elements"] = elements
        values["writes"] = writes
        values["table"] = table


@record
class Accumulators:
    """Accumulators side by side, one for each lane.

    Attributes
    ----------
    name : str
    dtype : str
    array : int or None
        The array in ``table`` that they are; None: they are the function's own.
    writes : bool
    table : str
    block : bool
        On cards: whether the threads of a block have them together; else each thread has its own.
    lanes : int or None
        How many the function's own are; None: as many as lanes, at most LANES, or on cards one for
        each warp of a block, and one of each thread.
    """

    name: str
    dtype: str
    array: int | None = None
    writes: bool = True
    table: str = "data"
    block: bool = False
    lanes: int | None = None


@record
class Quarters:
    """Four local accumulators, which start at the initial value of the reduction."""

    name: str
    reduction: str
    dtype: str


@record
class Let:
    """Define a value; names are never defined twice in one scope."""

    name: str
    value: Value

    def __init__(self, name: str, value: Value) -> None:
        values = self.__dict__
        values["name"] = name
        values["value"] = value


@record
class Define:
    """Define an index; ``constant`` if the compiler must know its value."""

    name: str
    value: Index
    constant: bool = False


@record
class Counter:
    """Define an index that loops without a start advance one after another."""

    name: str
    start: Index


@record
class Store:
    """Write a value to an array in memory."""

    pointer: str
    index: Index
    value: Value


@record
class Set:
    """Write a value to accumulators."""

    accumulators: str
    index: Index
    value: Value

    def __init__(self, accumulators: str, index: Index, value: Value) -> None:
        values = self.__dict__
        values["accumulators"] = accumulators
        values["index"] = index
        values["value"] = value


@record
class Scatter:
    """Add accumulators to elements of a table at positions, one after the other.

    Attributes
    ----------
    table, positions : str
        Pointers; positions are of int64, checked before the kernel runs.
    first : Index
        The first position, in elements after its pointer.
    values : str
        The accumulators.
    count : Index
        How many are added.
    dtype : str
        Of the table, and of the accumulators.
    """

    table: str
    positions: str
    first: Index
    values: str
    count: Index
    dtype: str


@record
class Loop:
    """Repeat statements.

    Attributes
    ----------
    kind : Kind
    index : str
    start : Index or None
        None: from where the counter ``index`` is; it stays where the loop ends.
    stop : Index
        Before this.
    body : tuple of Statement
    step : Index
    whole : bool
        Whether only whole steps are made: ``index + step <= stop``.
    condition : Index or None
        Must hold, too; it does not depend on ``index``.
    spare : bool
        Whether the statements after it would give the same without it: they start at ``index``. It
        makes code faster, but longer, so that code compiled in a hurry goes without.
    """

    kind: Kind
    index: str
    start: Index | None
    stop: Index
    body: tuple[Statement, ...]
    step: Index = 1
    whole: bool = False
    condition: Index | None = None
    spare: bool = False

    def __init__(
        self,
        kind: Kind,
        index: str,
        start: Index | None,
        stop: Index,
        body: tuple[Statement, ...],
        step: Index = 1,
        whole: bool = False,
        condition: Index | None = None,
        spare: bool = False,
    ) -> None:
        values = self.__dict__
        values["kind"] = kind
        values["index"] = index
        values["start"] = start
        values["stop"] = stop
        values["body"] = body
        values["step"] = step
        values["whole"] = whole
        values["condition"] = condition
        values["spare"] = spare


@record
class If:
    """Execute statements if a condition holds, which is the same for all lanes."""

    condition: Index
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@record
class Guard:
    """Execute statements for the lanes of a vector loop where a condition holds.

    Attributes
    ----------
    condition : Index
    body : tuple of Statement
    results : tuple of (str, Value, Value)
        Values that the guard defines: a name, what it is where the condition holds, in terms of
        ``body``, and what it is elsewhere.
    """

    condition: Index
    body: tuple[Statement, ...]
    results: tuple[tuple[str, Value, Value], ...] = ()


@record
class FunctionCall:
    """Call a function of the same kernel.

    Attributes
    ----------
    function : str
    numbers : tuple of Index
    tables : tuple of str
        The tables of addresses, then those of strides.
    """

    function: str
    numbers: tuple[Index, ...]
    tables: tuple[str, ...]


@record
class MergeSums:
    """Add n totals and their rounding errors to others, by a loop that all kernels share.

    Attributes
    ----------
    dtype : str
    totals : tuple of (str, int)
        Four arrays, as tables and numbers: totals, errors, and the totals and errors to add.
    """

    dtype: str
    totals: tuple[tuple[str, int], ...]


@record
class Prefetch:
    """Prefetch memory: a number of elements, at some distance after a pointer."""

    pointer: str
    elements: Index


@record
class CopyTable:
    """Copy a table of addresses of arrays into a local one."""

    name: str
    source: str
    arrays: int


@record
class MoveTable:
    """Add a row of strides to the addresses of the arrays of a table."""

    name: str
    by: str
    arrays: int


@record
class Pack:
    """On cards: neighbouring elements in registers, ``name.at``; one access reads them.

    Attributes
    ----------
    name, dtype : str
    width : int
    pointer : str or None
        Where they are read; None: they are written later.
    """

    name: str
    dtype: str
    width: int
    pointer: str | None


@record
class WritePack:
    """Write a pack to memory by one access."""

    pointer: str
    pack: str


@record
class AddTo:
    """On cards: add a value to an element in memory, which other threads add to in any order."""

    pointer: str
    index: Index
    value: Value


Statement: TypeAlias = (
    "Pointer | Accumulators | Quarters | Let | Define | Counter | Store | Set | Scatter | Loop | If"
    " | Guard"
    " | FunctionCall | MergeSums | Prefetch | CopyTable | MoveTable"
    " | Pack | WritePack | AddTo"
)

# -- functions


@record
class Signature:
    """The parameters of a kind of function: numbers, tables of addresses, rows of strides."""

    numbers: tuple[str, ...]
    tables: tuple[str, ...]
    strides: tuple[str, ...] = ()


ROWS = Signature(("rows", "n"), ("data",), ("step",))
BOTH = Signature(("rows", "n", "across"), ("data",), ("step",))
LANES = Signature(("added", "count", "rows", "rest"), ("given",), ("step", "next"))
BEGIN = Signature(("n",), ("data",))
MERGE = Signature(("n",), ("data", "other"))
FINISH = Signature(("n", "across"), ("data",))


@record
class KernelFunction:
    """A function of a kernel.

    Attributes
    ----------
    name : str
    signature : Signature
    body : tuple of Statement
    inline : bool
        If true, the function is inlined in its callers.
    once : bool
        If true, the compiler should keep loaded values in registers, not load them again.
    """

    name: str
    signature: Signature
    body: tuple[Statement, ...]
    inline: bool = False
    once: bool = False
