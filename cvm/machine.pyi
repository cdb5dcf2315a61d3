from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.codegen.early import Code
from symcomp.vm.failure import Failure
from symcomp.vm.machine import Observer
from symcomp.vm.program import Instruction, Program
from symcomp.vm.tally import Counted, Event

DRAWS_OF_NUMPY: str

class Action: ...

class Inspected(Action):
    def __init__(
        self, action: Action, inspector: Any, step: Instruction, position: int
    ) -> None: ...

class Native(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        *rest: Any,
    ) -> None: ...

class PythonCall(Native): ...

class KernelCall(Native):
    code: Code
    early_calls: int

    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        code: Code,
        elementwise: bool,
        n_inputs: int,
        into: Sequence[int],
        stretched: Sequence[Sequence[bool]],
        dropped: Sequence[Sequence[bool]],
        dtypes: Sequence[Any],
        constants: Sequence[Any],
        steps: int,
        threads: int = 1,
        least: int = 0,
    ) -> None: ...

class Transpose(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        ndim: int,
        order: Sequence[int],
    ) -> None: ...

class DiagonalView(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        down: int,
        right: int,
    ) -> None: ...

class Reserve(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        axis: int,
        parts: Sequence[Any],
        dtype: Any,
        into: int,
    ) -> None: ...

def ufunc_kernel(
    ufunc: np.ufunc, dtypes: Sequence[Any], axes: int
) -> tuple[int, np.ndarray] | None: ...

REFINED_CONSTANTS: dict[str, int]

class Decomposition(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        name: str,
        order: Sequence[int],
        cores: Sequence[int],
        shapes: Sequence[str],
        square: bool,
        lower: bool,
        option: int,
        rcond: tuple[float, float],
        wide: bool,
        dtypes: Sequence[Any],
    ) -> None: ...

class RandomDraw(Action):
    def __init__(
        self,
        distribution: str,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        ndim: int,
        into: int,
        dtype: Any,
        single: bool,
    ) -> None: ...

class Convolution(Action):
    def __init__(
        self,
        part: int,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        padding: Sequence[tuple[int, int]],
        strides: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        dtype: Any,
        threads: int,
        alone: Any,
    ) -> None: ...

class _Pool(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        ndim: int,
        window: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        partial: bool,
        dtype: Any,
        threads: int,
        *rest: Any,
    ) -> None: ...

class Largest(_Pool): ...
class Placing(_Pool): ...

class Sums(_Pool):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        ndim: int,
        window: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        partial: bool,
        dtype: Any,
        threads: int,
        divided: int,
        back: bool,
    ) -> None: ...

class Product(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        ndim: int,
        c: int,
        alpha: int,
        a: int,
        b: int,
        beta: int,
        transposed: tuple[bool, bool],
        outer: bool,
        overwritten: int,
        dtype: Any,
    ) -> None: ...

class Multiplied(Product): ...

class Chain(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        written: Sequence[tuple[int, int]],
        dtype: Any,
    ) -> None: ...

class View(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        entries: Sequence[Any],
    ) -> None: ...

class Fill(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        ndim: int,
        stretching: Sequence[bool],
        into: int,
    ) -> None: ...

class Gather(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        entries: Sequence[Any],
    ) -> None: ...

class Scatter(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        entries: Sequence[Any],
        sets: bool,
        stretching: Sequence[bool],
        in_place: bool,
        into: int,
    ) -> None: ...

class GateCall(Action):
    def __init__(
        self,
        gate: Any,
        inputs: Sequence[int],
        outputs: Sequence[int],
        checked: Sequence[tuple[Action, Sequence[int]]] | None = None,
    ) -> None: ...

class NativeMachine:
    program: Program
    kept: list[Any] | None
    failure: Failure | None

    def __init__(
        self,
        program: Program,
        actions: Sequence[Action | None],
        keep: bool = False,
    ) -> None: ...
    def run(self, values: Sequence[Any], observe: Observer | None = None) -> list[Any]: ...
    def new_tally(self) -> Tally: ...
    def free(self) -> None: ...

class Tally:
    program: Program
    inner: dict[tuple[int, int], tuple[Any, Any]]
    kinds: tuple[str | None, ...]
    kernels: tuple[KernelCall | None, ...]
    unattended: int
    runs: int
    timed_runs: int

    def counted(self) -> list[Counted]: ...
    def events(self) -> list[Event]: ...

class Calls:
    count: int
    timed: int
    seconds: float

    def events(self) -> list[Event]: ...

class Cell:
    value: Any

    def read(self) -> Any: ...

FORKS_WAIT: float

def _before_fork() -> None: ...
def _after_in_parent() -> None: ...

class Transaction:
    def __init__(self, cells: list[Cell]) -> None: ...
    def begin(self) -> None: ...
    def taken(self, arrays: Sequence[Any], others: Sequence[int]) -> tuple[Any, ...]: ...
    def end(self) -> None: ...

class Caller:
    replayed: int
    trust_input: bool
    profile: Any
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
        tally: Any = None,
        calls: Calls | None = None,
    ) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def _repeat(self, n_calls: int) -> list[Any]: ...
    def _drop_results(self) -> None: ...

class Loop:
    done: int
    unattended: int
    carried: list[Any]

    def __init__(
        self,
        machine: NativeMachine,
        states: Sequence[Any],
        depths: Sequence[int],
        reads: Sequence[tuple[int, int]],
        carried: list[Any],
        sequences: Sequence[Any],
        captured: Sequence[Any],
        stacks: Sequence[Any],
        until: bool,
    ) -> None: ...
    def run(self, most: int) -> int: ...

class Nonzeros(Native): ...

class Pieces(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        axis: int,
    ) -> None: ...

class Reshaped(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        ndim: int,
    ) -> None: ...

class Lengths(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        axis: int,
    ) -> None: ...

class Passed(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        which: int,
        conditions: Sequence[tuple[str, int, int, int, int]],
    ) -> None: ...

class Copied(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        c_order: bool,
    ) -> None: ...

class Joined(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        n_inputs: int,
        axis: int,
        stacked: bool,
        into: int,
    ) -> None: ...

class Written(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        entries: Sequence[Any],
        sets: bool,
        stretching: Sequence[bool],
        in_place: bool,
        into: int,
    ) -> None: ...

class Running(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        what: str,
        axis: int,
        dtype: Any,
    ) -> None: ...

class Extreme(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        largest: bool,
        axes: Sequence[int],
    ) -> None: ...

class Sorted(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        axis: int,
        positions: bool,
    ) -> None: ...

class Searched(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        right: bool,
    ) -> None: ...

class Range(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        dtype: Any,
    ) -> None: ...

class First(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        axis: int,
    ) -> None: ...

class Distinct(Native):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
        index: bool,
        inverse: bool,
        counts: bool,
    ) -> None: ...
