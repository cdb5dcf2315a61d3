"""LoopIR as CUDA C: what differs from C are loops that threads share, and where totals lie."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache

from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.codegen.loopir.ir import (
    Accumulators,
    AddTo,
    KernelFunction,
    Kind,
    Loop,
    Pack,
    WritePack,
)
from symcomp.codegen.printers.c_file import FUNCTIONS
from symcomp.codegen.printers.c_headers import Headers, header, words_of
from symcomp.codegen.printers.c_text import Add, Lines, index_text, value_text
from symcomp.core.record import record

# Threads that run together, and read one another's registers.
WARP = 32
# Text that is none for cards, as it has complex numbers.
_LACKING = re.compile(r"\b(?:c_\w+|creal|cimag|conj|_Complex|complex_of)\b")
# Threads of a block that registers suffice for: a multiprocessor has 65,536, a thread at most 255.
ALWAYS_RUN = 256
#: The dtypes that atomics add.
ADDED = ("float32", "float64", "int32", "int64", "uint32", "uint64")


@record
class CudaKernel:
    """A kernel in CUDA C.

    Attributes
    ----------
    name, text : str
        The text has no headers: ``file_of`` puts them before the texts of some kernels.
    numbers : tuple of str
        The names of the integers that it takes first.
    arrays, literals : int
        How many addresses, and numbers of the formula, it takes then.
    axes : int
        For how many axes it takes the steps of all arrays.
    wide : bool
        Whether integers and steps have 64 bits, else 32.
    threads : int
        Of a block.
    barriers : bool
        Whether the threads of a block, or of a warp, wait for one another.
    """

    name: str
    text: str
    numbers: tuple[str, ...]
    arrays: int
    literals: int
    axes: int
    wide: bool
    threads: int
    barriers: bool


class _Lines(Lines):
    def __init__(
        self, prefix: str, threads: int, lanes: int, columns: int, integer: str
    ) -> None:
        super().__init__(prefix)
        self.threads, self.lanes, self.columns, self.integer = threads, lanes, columns, integer

    def loop(self, s: Loop, indent: str, add: Add) -> None:
        if s.kind is Kind.BLOCK:
            assert (s.start, s.stop, s.step) == (0, self.threads // self.columns, 1)
            number = f"threadIdx.x / {self.columns}" if self.columns > 1 else "threadIdx.x"
            add(f"{indent}{{")
            add(f"{indent}    const int {s.index} = {number};")
            self._inside(s.body, indent, add)
            add(f"{indent}}}")
            add(f"{indent}__syncthreads();")
            return
        groups = self.threads // self.lanes
        first = {
            Kind.GRID: ("blockIdx.x", "gridDim.x"),
            Kind.LANES: (
                f"({self.integer})blockIdx.x * {groups} + threadIdx.x / {self.lanes}",
                f"({self.integer})gridDim.x * {groups}",
            ),
            Kind.COLUMNS: (
                f"({self.integer})blockIdx.x * {self.columns}",
                f"({self.integer})gridDim.x * {self.columns}",
            ),
            Kind.THREAD: (
                f"({self.integer})blockIdx.x * {self.threads} + threadIdx.x",
                f"({self.integer})gridDim.x * {self.threads}",
            ),
        }
        if s.kind not in first:
            super().loop(s, indent, add)
            return
        start, step = first[s.kind]
        i = "tile" if s.kind is Kind.COLUMNS else s.index
        add(f"{indent}for ({self.integer} {i} = {start}; {i} < {index_text(s.stop, 4)};")
        add(f"{indent}     {i} += {step}) {{")
        if s.kind is Kind.LANES:
            add(f"{indent}    const int t = threadIdx.x % {self.lanes};")
        if s.kind is Kind.COLUMNS:
            add(f"{indent}    const int column = threadIdx.x % {self.columns};")
            add(f"{indent}    const {self.integer} {s.index} = tile + column;")
        self._inside(s.body, indent, add)
        add(f"{indent}}}")

    def accumulators(self, s: Accumulators, indent: str, add: Add) -> None:
        if s.array is not None:
            super().accumulators(s, indent, add)
        elif s.block:
            count = s.lanes or self.threads // WARP
            add(f"{indent}__shared__ {C_TYPES[s.dtype]} {s.name}[{count}];")
        else:
            add(f"{indent}{C_TYPES[s.dtype]} {s.name}[{s.lanes or 1}];")

    def pack(self, s: Pack, indent: str, add: Add) -> None:
        stored = self.stored[f"{s.name}.at"] = self.types[s.dtype]
        kind = f"pack<{stored}, {s.width}>"
        if s.pointer is None:
            add(f"{indent}{kind} {s.name};")
        else:
            add(f"{indent}const {kind} {s.name} = read_pack<{s.width}>({s.pointer});")

    def write_pack(self, s: WritePack, indent: str, add: Add) -> None:
        add(f"{indent}write_pack({s.pointer}, {s.pack});")

    def add_to(self, s: AddTo, indent: str, add: Add) -> None:
        add(f"{indent}add_to({s.pointer} + {index_text(s.index, 5)}, {value_text(s.value)});")


def print_function(
    function: KernelFunction,
    arrays: int,
    literals: int,
    threads: int,
    wide: bool,
    blocks: int = 1,
    lanes: int = WARP,
    columns: int = 1,
) -> CudaKernel:
    """Return the kernel of a function.

    Parameters
    ----------
    function : KernelFunction
        Its tables are ``data`` and ``literals``; its rows of strides have one entry per array.
    arrays, literals : int
        The entries of the tables.
    threads : int
        Of a block.
    wide : bool
        Whether integers have 64 bits.
    blocks : int
        How many blocks the registers of a multiprocessor have to suffice for.
    lanes : int
        Of a warp, in loops over groups of lanes.
    columns : int
        Of a tile, in loops over tiles.
    """
    integer = "int64_t" if wide else "int32_t"
    signature = function.signature
    parameters = [f"const {integer} {name}" for name in signature.numbers]
    parameters.append(f"const addresses<{arrays}> data")
    parameters += [f"const literals<{literals}> literals"] if literals else []
    parameters += [f"const steps<{integer}, {arrays}> {row}" for row in signature.strides]
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        *_Lines("NAME", threads, lanes, columns, integer).block(function.body, "    "),
        "}",
    ]
    name, text = named(lines, threads, blocks)
    return CudaKernel(
        name, text, signature.numbers, arrays, literals, len(signature.strides), wide, threads,
        waits(text),
    )  # fmt: skip


def waits(text: str) -> bool:
    """Tell whether threads of a kernel wait for one another."""
    return "__syncthreads" in text or "from_lane<" in text


def named(lines: Sequence[str], threads: int, blocks: int = 1) -> tuple[str, str]:
    """Return a name that differs for different lines, and the text with it.

    Compilers are told of the threads of a block where registers may not suffice for them, or have
    to suffice for several blocks: else they spill registers to make room for one block more.
    """
    text = "\n".join(lines) + "\n"
    name = f"kernel_{hashlib.sha256(f'{threads} {text}'.encode()).hexdigest()[:16]}"
    if blocks > 1 or threads > ALWAYS_RUN:
        least = f", BLOCKS({blocks})" if blocks > 1 else ""
        bounds = f"__global__ void __launch_bounds__({threads}{least}) NAME("
        text = text.replace("__global__ void NAME(", bounds)
    return name, text.replace("NAME", name)


def file_of(texts: Sequence[str]) -> str:
    """Return a source of kernels: their texts, and before them what they need."""
    headers = _headers()
    needed = headers.pieces(words_of(*texts))
    return "\n".join([header("cuda/prelude.h"), *headers.text(needed), *texts])


@cache
def _headers() -> Headers:
    return Headers(FUNCTIONS)


def has_text(text: str) -> bool:
    """Return whether the C of a scalar function is CUDA C as well."""
    return _LACKING.search(text) is None
