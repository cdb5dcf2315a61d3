from collections.abc import Callable, Sequence
from typing import Any

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

class PythonCall(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        several: bool,
    ) -> None: ...

class KernelCall(Action):
    def __init__(
        self,
        address: int,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
        into: Sequence[int],
        stretched: Sequence[Sequence[bool]],
        dropped: Sequence[Sequence[bool]],
        dtypes: Sequence[Any],
        constants: Sequence[Any],
        steps: int,
    ) -> None: ...

class Transpose(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        input: int,
        output: int,
        ndim: int,
        order: Sequence[int],
    ) -> None: ...

class Part(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        input: int,
        output: int,
        ndim: int,
        entries: Sequence[int | tuple[Any, Any, Any] | None],
    ) -> None: ...

class Reserve(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        outputs: Sequence[int],
        axis: int,
        parts: Sequence[Sequence[int | tuple[int, int]]],
        dtype: Any,
        into: int,
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
    ) -> None: ...

class Largest(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        input: int,
        outputs: Sequence[int],
        ndim: int,
        window: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        partial: bool,
        dtype: Any,
    ) -> None: ...

class Placing(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        ndim: int,
        spatial: int,
        dtype: Any,
    ) -> None: ...

class Join(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        count: int,
        output: int,
        axis: int,
        ndim: int,
        dtype: Any,
        into: int,
    ) -> None: ...

class Product(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
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

class Length(Action):
    def __init__(
        self, compute: Callable[..., Any] | None, input: int, output: int, axis: int
    ) -> None: ...

class View(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        entries: Sequence[Any],
    ) -> None: ...

class PartWrite(View):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        entries: Sequence[Any],
        stretched: Sequence[bool],
        set: bool,
        into: int,
    ) -> None: ...

class Fill(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        ndim: int,
        into: int,
        dtype: Any,
    ) -> None: ...

class Gather(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        count: int,
    ) -> None: ...

class Scatter(Action):
    def __init__(
        self,
        compute: Callable[..., Any] | None,
        arguments: Sequence[int],
        output: int,
        count: int,
        set: bool,
        into: int,
    ) -> None: ...

class GateCall(Action):
    def __init__(self, gate: Any, inputs: Sequence[int], outputs: Sequence[int]) -> None: ...

class NativeMachine:
    program: Program
    kept: list[Any] | None
    failure: Failure | None

    def __init__(
        self,
        program: Program,
        actions: Sequence[Action | None],
        keep: bool = False,
        python: bool = True,
    ) -> None: ...
    def run(self, values: Sequence[Any], observe: Observer | None = None) -> list[Any]: ...
    def new_tally(self) -> Tally: ...
    def free(self) -> None: ...

class Tally:
    program: Program
    inner: dict[tuple[int, int], tuple[Any, Any]]
    kinds: tuple[str | None, ...]
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

class Transaction:
    def __init__(self, cells: list[Cell]) -> None: ...
    def begin(self) -> None: ...
    def taken(self, arrays: Sequence[Any], others: Sequence[int]) -> tuple[Any, ...]: ...
    def end(self) -> None: ...

class Caller:
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
