from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from symcomp.codegen.compiler.early import Code
from symcomp.cvm.kernels import KernelOf
from symcomp.vm.failure import Failure
from symcomp.vm.program import Instruction, Program
from symcomp.vm.tally import Counted, Event

DRAWS_OF_NUMPY: str
share_address: int
FORKS_WAIT: float
FORKS_TAKE: float

class Lowered:
    name: str
    code: Code | None
    body: NativeMachine | None
    kernel: KernelOf | None
    early_calls: int

def python_call(step: Instruction) -> Lowered: ...
def view(step: Instruction, entries: Any) -> Lowered: ...
def transpose(step: Instruction, ndim: int, order: Any) -> Lowered: ...
def diagonal(step: Instruction, down: int, right: int) -> Lowered: ...
def pieces(step: Instruction, axis: int) -> Lowered: ...
def reshape(step: Instruction, ndim: int) -> Lowered: ...
def lengths(step: Instruction, axis: int) -> Lowered: ...
def passed(step: Instruction, which: int, conditions: Any) -> Lowered: ...
def fill(step: Instruction, ndim: int, stretching: Any) -> Lowered: ...
def copied(step: Instruction, c_order: bool) -> Lowered: ...
def joined(step: Instruction, axis: int, stacked: bool) -> Lowered: ...
def reserve(step: Instruction, axis: int, parts: Any, dtype: Any) -> Lowered: ...
def written(
    step: Instruction, entries: Any, sets: bool, stretching: Any, in_place: bool
) -> Lowered: ...
def rows(step: Instruction, which: str, more: int) -> Lowered: ...
def gather(step: Instruction, entries: Any) -> Lowered: ...
def scatter(
    step: Instruction, entries: Any, sets: bool, stretching: Any, in_place: bool
) -> Lowered: ...
def running(step: Instruction, what: str, axis: int, dtype: Any) -> Lowered: ...
def extreme(step: Instruction, largest: bool, axes: Any) -> Lowered: ...
def first(step: Instruction, axis: int) -> Lowered: ...
def range_of(step: Instruction, dtype: Any) -> Lowered: ...
def sorted_along(step: Instruction, axis: int, positions: bool) -> Lowered: ...
def searched(step: Instruction, right: bool) -> Lowered: ...
def nonzero(step: Instruction) -> Lowered: ...
def distinct(step: Instruction, index: bool, inverse: bool, counts: bool) -> Lowered: ...
def product(
    step: Instruction,
    ndim: int,
    c: int,
    alpha: int,
    a: int,
    b: int,
    beta: int,
    transposed: Any,
    outer: bool,
    destroys: bool,
    dtype: Any,
    threads: int = ...,
) -> Lowered: ...
def chain(step: Instruction, order: Any, dtype: Any, threads: int = ...) -> Lowered: ...
def decomposition(
    step: Instruction,
    name: str,
    order: Any,
    cores: Any,
    shapes: Any,
    square: bool,
    lower: bool,
    option: int,
    rcond: Any,
    wide: bool,
    dtypes: Any,
    threads: int = ...,
    limit: Any = ...,
) -> Lowered: ...
def convolution(
    step: Instruction,
    part: int,
    padding: Any,
    strides: Any,
    dilation: Any,
    groups: int,
    dtype: Any,
    threads: int,
) -> Lowered: ...
def pool(
    step: Instruction,
    what: int,
    ndim: int,
    window: Any,
    strides: Any,
    padding: Any,
    partial: bool,
    dtype: Any,
    threads: int,
    divided: int = 0,
) -> Lowered: ...
def check_windows(count: int, **fields: Any) -> None: ...
def draw(
    step: Instruction,
    distribution: str,
    ndim: int,
    dtype: Any,
    parameters: Sequence[tuple[str, bool, Sequence[bool]]],
    gives_vectors: bool,
) -> Lowered | None: ...
def sparse(
    step: Instruction,
    what: str,
    kind: str = "",
    transposed: bool = False,
    threads: int = 1,
    block: tuple[int, int] = (1, 1),
) -> Lowered: ...

class SparseValues:
    def __init__(
        self, classes: tuple[Any, ...], format: str, dtype: Any, index_dtype: Any, shape: Any
    ) -> None: ...

def take_apart_sparse(
    step: Instruction, values: SparseValues, checks: bool = True, threads: int = 1
) -> Lowered: ...
def put_together_sparse(
    step: Instruction, values: SparseValues, make: Callable[..., Any]
) -> Lowered: ...
def native_call(
    step: Instruction, plan: int, run: int, params: bytes = b"", work: float = 1.0
) -> Lowered: ...
def kernel(
    step: Instruction,
    code: Any,
    elementwise: bool,
    stretched: Any,
    dropped: Any,
    dtypes: Any,
    constants: Any,
    steps: int,
    threads: int = 1,
    least: int = 0,
    tables: Sequence[tuple[int, int, int]] = (),
    apart: Any = (),
) -> Lowered: ...
def gate(
    step: Instruction,
    checks_values: bool,
    kernels: Sequence[tuple[Lowered | None, Sequence[int]]],
) -> Lowered: ...
def loop(
    step: Instruction,
    body: NativeMachine,
    depths: Any,
    reads: Any,
    n_carried: int,
    n_sequences: int,
    stacked: Sequence[np.dtype[Any]],
    until: bool,
    name: str,
    without_steps: Callable[..., Any],
) -> Lowered: ...
def graph(step: Instruction, body: NativeMachine) -> Lowered: ...
def ufunc_kernel(
    ufunc: np.ufunc, dtypes: Sequence[Any], axes: int
) -> tuple[int, np.ndarray] | None: ...

def make_all_sections(wanted: bool) -> bool: ...

class NativeMachine:
    program: Program
    lowered: list[Lowered | None]
    kept: list[Any] | None
    failure: Failure | None
    tally: NativeTally | None
    counts: tuple[int, int]
    planning: dict[str, int]

    def __init__(
        self,
        program: Program,
        lowered: list[Lowered | None],
        keep: bool = False,
        nested: bool = False,
        most_segments: int = ...,
        threads: int = ...,
        straight_after: int = ...,
    ) -> None: ...
    def run(self, values: Sequence[Any]) -> list[Any]: ...
    def new_tally(self) -> NativeTally: ...
    def free(self) -> None: ...
    def plan(self) -> str: ...
    def allocated(self, shapes: Sequence[tuple[int, ...] | None]) -> int | None: ...

class CFunctionBase:
    address: int
    density_address: int | None
    map_address: int | None
    data: int
    error: BaseException | None
    _argument_kinds: tuple[tuple[str, tuple[int, ...]], ...]
    _result_kinds: tuple[tuple[str, tuple[int, ...]], ...]

    def __init__(
        self, machine: NativeMachine, values: list[np.ndarray], fixed: frozenset[int]
    ) -> None: ...

class NativeTally:
    machine: NativeMachine
    program: Program
    inner: dict[tuple[int, int], tuple[Any, Any]]
    kinds: tuple[str | None, ...]
    kernels: tuple[Lowered | None, ...]
    runs: int
    timed_runs: int
    without_python: int

    def counted(self) -> list[Counted]: ...
    def events(self) -> list[Event]: ...

class Calls:
    count: int
    timed: int
    seconds: float

    def events(self) -> list[Event]: ...

def aligned_copy(array: np.ndarray) -> np.ndarray: ...

class Cell:
    value: Any

    def read(self) -> Any: ...

class Transaction:
    def __init__(self, cells: list[Cell]) -> None: ...
    def begin(self) -> None: ...
    def taken(self, arrays: Sequence[Any], others: Sequence[int]) -> tuple[Any, ...]: ...
    def end(self) -> None: ...

def _before_fork() -> None: ...
def _after_in_parent() -> None: ...

class BlasLibrary:
    def __init__(self, controller: Any, get: int = 0, set: int = 0) -> None: ...

class BlasLimit:
    threads: int

    def __init__(
        self, threads: int, find_libraries: Callable[[], list[BlasLibrary]]
    ) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *problem: object) -> None: ...

def forget_limits_of_other_threads() -> None: ...

can_flush_denormals: bool

class Caller:
    trust_input: bool
    profile: Any
    repeated: int
    _machine: Any

    def __init__(
        self,
        machine: Any,
        inputs: Sequence[Any],
        updated: Sequence[int],
        n_outputs: int,
        structure: Any,
        trust_input: bool,
        profile: Any,
        calls: Calls | None = None,
        blas_limit: BlasLimit | None = None,
        flushes: bool = False,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def _repeat(self, n_calls: int) -> list[Any]: ...

WIDEST: int

def is_aligned(address: int) -> bool: ...
def rounded(nbytes: int) -> int: ...

class DeviceCounters:
    launches: int
    waits: int
    allocations: int
    pinned: int
    to_device: int
    to_host: int
    within: int
    from_peers: int
    compiled: int
    graphs: int
    recorded: int
    def clear(self) -> None: ...

class DeviceLibrary:
    def __init__(self, addresses: dict[str, int], context: int = 0) -> None: ...

def library_caller() -> int: ...

class LibraryHandle:
    address: int
    workspace_bytes: int
    def __init__(
        self,
        handle: int,
        set_stream: int,
        set_workspace: int = 0,
        workspace: int = 0,
        nbytes: int = 0,
    ) -> None: ...

class DescribedCall:
    function: int
    address: int
    def __init__(
        self, arrays: Sequence[tuple[int, int, int]], function: int, words: Sequence[int]
    ) -> None: ...

class DeviceMemory:
    address: int
    nbytes: int
    is_pooled: bool
    size: int
    def __init__(self, address: int, nbytes: int) -> None: ...

class DevicePool:
    library: DeviceLibrary
    counters: DeviceCounters
    used: int
    cached: int
    limit: int
    peak: int
    def __init__(
        self,
        library: DeviceLibrary,
        counters: DeviceCounters,
        refuse: Callable[[DevicePool, int, str, int], Any],
        keeps_blocks: bool = True,
    ) -> None: ...
    def allocate(self, nbytes: int, what: str = "an array") -> DeviceMemory: ...
    def share(self, user: DeviceRegion) -> None: ...
    def empty(self) -> None: ...

class DeviceValues:
    def __init__(
        self, device: str, dtype: np.dtype, shape: tuple[int | None, ...]
    ) -> None: ...

class DeviceArrayBase:
    driver: Any
    device: str
    memory: DeviceMemory
    offset: int
    address: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    def __init__(
        self,
        driver: Any,
        memory: DeviceMemory,
        offset: int,
        dtype: Any,
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> None: ...

class DevicePlan:
    launches: int
    copied: int
    pieces: int
    is_recordable: bool
    def __init__(
        self,
        calls: list[tuple[Any, ...]],
        origins: list[tuple[int, int]],
        bases: int,
        totals: tuple[int, int, int] = (0, 0, 0),
        is_recordable: bool = True,
        parts: list[tuple[int, list[int], int]] = [],
    ) -> None: ...
    def enqueue(
        self, functions: tuple[int, ...], stream: int, bases: list[int]
    ) -> tuple[int, int]: ...

DEVICE_TIMELINE: ContextVar[Any]

class Recorded:
    def __init__(self, compute: Callable[..., Any], timeline: Any) -> None: ...
    def __call__(self, *values: Any) -> Any: ...

MOST_PIECES: int

class PinnedMemory:
    sent: int
    def empty(self) -> None: ...

class DeviceStream:
    library: DeviceLibrary
    counters: DeviceCounters
    pool: DevicePool
    pinned: PinnedMemory
    driver: Any
    device: str
    address: int
    recorder: int
    fault: int
    log: deque[tuple[int, int, Any, list[DeviceMemory]]]
    has_times: bool
    timed: deque[tuple[int, Any]]
    def __init__(
        self,
        driver: Any,
        library: DeviceLibrary,
        counters: DeviceCounters,
        pool: DevicePool,
        is_recorded: bool = False,
    ) -> None: ...
    def begin_anew(self) -> None: ...
    def to_device(self, target: DeviceMemory, offset: int, source: np.ndarray) -> None: ...
    def within(
        self, target: DeviceMemory, to: int, source: DeviceMemory, start: int, nbytes: int
    ) -> None: ...
    def wait(self) -> None: ...

DEVICE_STREAMS: dict[str, DeviceStream]

class CopyToDevice:
    def __init__(
        self, device: str, dtype: np.dtype, array_type: type, start: Callable[[str], Any]
    ) -> None: ...
    def __call__(self, x: Any) -> Any: ...

class CopyToHost:
    def __init__(self, several: bool) -> None: ...
    def __call__(self, *arrays: Any) -> Any: ...

class PartOnDevice:
    def __init__(self, pattern: tuple[Any, ...]) -> None: ...
    def __call__(self, x: Any, *numbers: Any) -> Any: ...

class FirstOnDevice:
    def __init__(self, refuse: Callable[[Any, Any], Any]) -> None: ...
    def __call__(self, x: Any, n: Any) -> Any: ...

class LengthOnDevice:
    def __init__(self, axis: int) -> None: ...
    def __call__(self, x: Any) -> np.ndarray: ...

class ObjectLoop:
    def __init__(
        self,
        op: Any,
        body: Any,
        states: Sequence[Any],
        stacks: Sequence[Any],
        carried: Sequence[Callable[[Any], Any] | None],
        first_rows: int,
    ) -> None: ...
    def __call__(self, *values: Any) -> tuple[Any, ...]: ...

def part_of(x: DeviceArrayBase, key: tuple[Any, ...]) -> Any: ...
def copy_within(x: DeviceArrayBase) -> Any: ...
def copies_on_host(arrays: tuple[DeviceArrayBase, ...]) -> list[np.ndarray]: ...

class PatternBase:
    indices: Any
    indptr: Any
    shape: tuple[int, int]
    n_minor: int
    transpose: tuple[Any, ...] | None
    products: Any
    def __init__(
        self, indices: Any, indptr: Any, shape: tuple[int, int], n_minor: int
    ) -> None: ...

class MatrixBase:
    kind: Any
    data: Any
    pattern: Any
    transposed_entries: Any
    def __init__(self, kind: Any, data: Any, pattern: Any) -> None: ...

class MatrixParts:
    def __call__(self, x: Any) -> tuple[Any, ...]: ...

class MatrixOfEntries:
    def __init__(self, refuse: Callable[[Any, Any], Any]) -> None: ...
    def __call__(self, x: Any, data: Any) -> Any: ...

class MatrixOfParts:
    def __init__(
        self,
        kind: Any,
        minor_axis: int,
        matrix_type: type,
        pattern_type: type,
        refuse: Callable[..., Any],
    ) -> None: ...
    def __call__(self, data: Any, indices: Any, indptr: Any, shape: Any) -> Any: ...

class MatrixTransposed:
    def __init__(self, of_entries: bool, compute: Callable[[Any], Any]) -> None: ...
    def __call__(self, x: Any) -> Any: ...

class RegionPlan:
    plan: Any
    inputs: list[Any]
    can_fail: bool
    staged_bytes: int
    def __init__(
        self,
        plan: Any,
        stream: DeviceStream,
        pool: DevicePool,
        array_type: type,
        inputs: list[Any],
        outputs: list[Any],
        what: str,
    ) -> None: ...
    def fits(self, values: tuple[Any, ...]) -> bool: ...

class DeviceRegion:
    plans: list[RegionPlan]
    made: int
    repeated: int
    def __init__(self, has_arrays: bool) -> None: ...
    def __call__(self, *values: Any) -> tuple[Any, ...]: ...
    def drop_arena(self) -> None: ...

class UntilLoop:
    chunks: DeviceRegion
    memory: dict[Any, tuple[int, int]]
    def __init__(
        self,
        chunks: DeviceRegion,
        device: str,
        depths: list[int],
        counts: tuple[int, int, int],
        longest: int,
        inputs: list[tuple[int, Any, CopyToDevice | None]],
        outputs: list[int],
    ) -> None: ...
    def constants(self) -> list[Any]: ...
    def __call__(self, *values: Any) -> tuple[Any, ...]: ...

def to_dlpack(
    owner: object,
    address: int,
    device: tuple[int, int],
    dtype: tuple[int, int],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    versioned: bool,
    read_only: bool,
    copied: bool,
) -> Any: ...

class ForeignArray:
    address: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    read_only: bool

    def __init__(self, capsule: Any) -> None: ...
