"""Several kernels of one block as one kernel: their texts as functions, which it calls one after
another, in the order that its parameters tell.

The text follows from the set of the kernels alone, so equal kernels have one function, and another
order, or more calls, need no other text. Shared memory is that of the kernel with the most.

The calls of all steps of a loop can be one kernel, too: it then has its parameters in shared
memory, where it sets the addresses that are others in each step.

Values between the kernels may lie in shared memory, which is read sooner: their addresses are
offsets there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache
from math import prod

from symcomp.codegen.cuda.text import ALWAYS_RUN, CudaKernel, named
from symcomp.core.record import record

#: Marks an offset in the memory of the block among the parameters, where an address goes.
IN_BLOCK = 1 << 63
#: How many bytes that memory has: few numbers, as there is a kernel for each.
BLOCK_BYTES = (0, 2048, 16384)
#: How many words of 8 bytes the parameters have: few numbers, as there is a kernel for each.
WORDS = (32, 64, 128, 256, 480)
_HEAD = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(.+?\) )?\w+\(([^()]*)\)')
_PARAMETER = re.compile(r"(?:const ([\w ]+(?:<[^<>]*>)?)|(fault \*)const) (\w+)")
# Numbers of twice the width, and functions of the gamma and error families.
_LONG = re.compile(r"\bdouble\b|\bWIDER\b|\b[ge]_\w+\(")
# Types without constructors, which shared memory of several functions may hold by turns.
_SHARED = re.compile(
    r"__shared__ ((?:u?int\d*(?:_t)?|float|double|bool|complex_number<\w+>)) (\w+)((?:\[\d+\])*);"
)


@record
class CalledKernel:
    """A kernel with the parameters of one call.

    Attributes
    ----------
    kernel : CudaKernel
    parameters : bytes
    waits : bool
        Whether threads wait for one another before it.
    """

    kernel: CudaKernel
    parameters: bytes
    waits: bool


@record
class MovingAddress:
    """An address among the parameters of a call that is another one in each step of a loop.

    Attributes
    ----------
    call : int
        The number of the call.
    place : int
        Where it is in the parameters of the call.
    stride : int
        Bytes from one step to the next, but for what turns with even and odd steps.
    """

    call: int
    place: int
    stride: int


@record
class MergedCall:
    """The call of a kernel that calls others.

    Attributes
    ----------
    kernel : CudaKernel
    parameters : bytearray
    begins : list of int
        Where in them the parameters of each call begin.
    moving : list of int
        Where in them the address for even steps goes of each one that moves; behind it that for odd
        steps.
    """

    kernel: CudaKernel
    parameters: bytearray
    begins: list[int]
    moving: list[int]


@record
class _Parts:
    """The text of a kernel, taken apart."""

    fields: tuple[tuple[str, str], ...]
    shared: tuple[tuple[str, str, str], ...]
    body: str


@cache
def _parts_of(text: str) -> _Parts | None:
    head = _HEAD.match(text)
    if head is None:
        return None
    given = re.split(r",(?![^<]*>)", " ".join(head[1].split()))
    fields = [_PARAMETER.fullmatch(one.strip()) for one in given]
    shared = _SHARED.findall(text)
    body = _SHARED.sub(r"auto &\2 = shared.\2;", text[head.end() :])
    if None in fields or "__shared__" in body or len({name for _, name, _ in shared}) < len(shared):
        return None
    pairs = [(one[1] or one[2], one[3]) for one in fields if one is not None]
    return _Parts(tuple(pairs), tuple(shared), body)


@cache
def can_be_called(kernel: CudaKernel) -> bool:
    """Tell whether a kernel can be a function of another one, whose blocks may have more threads.
    """
    fits = kernel.threads <= ALWAYS_RUN and kernel.threads % 32 == 0
    return fits and "__syncthreads_" not in kernel.text and _parts_of(kernel.text) is not None


@cache
def can_take_turns(kernel: CudaKernel) -> bool:
    """Tell whether one block can do the work of few blocks, which takes it little longer: loops
    over the grid without barriers, of formulas that call no long functions.
    """
    is_loop = "gridDim.x" in kernel.text and not kernel.barriers
    return is_loop and _LONG.search(kernel.text) is None


@cache
def shared_bytes(kernel: CudaKernel) -> int:
    """Return how much shared memory a kernel has that can be called."""
    parts = _parts_of(kernel.text)
    assert parts is not None
    return sum(_bytes(kind, lengths) for kind, _, lengths in parts.shared)


def _bytes(kind: str, lengths: str) -> int:
    """Return the bytes of an array, and of a gap before it, at most."""
    wide = 8 if "64" in kind or "double" in kind else 4
    size = wide * (2 if "complex" in kind else 1)
    return 16 + size * prod(map(int, re.findall(r"\d+", lengths)))


@cache
def calling_kernel(
    kernels: tuple[CudaKernel, ...], words: int, values: int, has_steps: bool
) -> CudaKernel:
    """Return the kernel that calls kernels, by their numbers, as the words tell.

    Parameters
    ----------
    kernels : tuple of CudaKernel
        Which can be called.
    words : int
        Of its parameters.
    values : int
        Bytes of the memory of the block.
    has_steps : bool
        Whether it does so for several steps.
    """
    threads = max(kernel.threads for kernel in kernels)
    functions, cases, shared = [], [], []
    for number, kernel in enumerate(kernels):
        parts = _parts_of(kernel.text)
        assert parts is not None
        functions += _function(kernel, parts, threads)
        given = [f"given.at{i}" for i in range(len(parts.fields))]
        if parts.shared:
            shared.append(f"        NAME_functions::{kernel.name}_shared of{number};")
            given.append(f"shared.of{number}")
        function = f"NAME_functions::{kernel.name}"
        only = f"if (threadIdx.x < {kernel.threads}) " if kernel.threads < threads else ""
        cases += [
            f"        case {number}: {only}{{",
            f"            auto given = read_given<{function}_given>(words, place);",
            *(
                f"            given.at{i}.settle(values);"
                for i, (kind, _) in enumerate(parts.fields)
                if values and kind.startswith("addresses<")
            ),
            f"            {function}({', '.join(given)});",
            "        } break;",
        ]
    numbers = "const int n, const int steps, const int moving," if has_steps else "const int n,"
    memory = ["    __shared__ union {", *shared, "    } shared;"] if shared else []
    memory += [f"    __shared__ __align__(16) char values[{values}];"] if values else []
    lines = [
        "namespace NAME_functions {",
        *functions,
        "}",
        f'extern "C" __global__ void __launch_bounds__({threads}, 1) NAME({numbers}',
        f"    const given_words<{words}> {'given' if has_steps else 'words'})",
        "{",
        *memory,
        *(_steps(words, threads) if has_steps else []),
        "    for (int i = 0; i < n; i++) {",
        "        const unsigned long long call = words[i];",
        "        const int place = (int)(call >> 32);",
        "        if (call >> 16 & 1)",
        "            __syncthreads();",
        "        switch ((int)(call & 0xffff)) {",
        *cases,
        "        }",
        "    }",
        *(["    }"] if has_steps else []),
        "}",
    ]
    name, text = named(lines, threads)
    return CudaKernel(name, text, ("n",), 0, 0, 0, False, threads, True)


def _steps(words: int, threads: int) -> list[str]:
    """Return the beginning of the loop over steps, where addresses are set that move."""
    return [
        f"    __shared__ given_words<{words}> words;",
        f"    for (int i = threadIdx.x; i < {words}; i += {threads})",
        "        words.at[i] = given[i];",
        "    for (int step = 0; step < steps; step++) {",
        "    __syncthreads();",
        f"    for (int i = threadIdx.x; i < moving; i += {threads}) {{",
        "        const int at = n + 4 * i;",
        "        words.at[words[at]] = words[at + 1 + step % 2] + step * words[at + 3];",
        "    }",
        "    __syncthreads();",
    ]


def _function(kernel: CudaKernel, parts: _Parts, threads: int) -> list[str]:
    """Return the function of a kernel, and the structures of what it is given."""
    parameters = [f"{kind} {name}" for kind, name in parts.fields]
    found = [
        f"struct {kernel.name}_given {{",
        *(f"    {kind} at{i};" for i, (kind, _) in enumerate(parts.fields)),
        "};",
    ]
    if parts.shared:
        found += [
            f"struct {kernel.name}_shared {{",
            *(f"    {kind} {name}{lengths};" for kind, name, lengths in parts.shared),
            "};",
        ]
        parameters.append(f"{kernel.name}_shared &shared")
    body = parts.body
    if kernel.threads < threads:
        body = body.replace("__syncthreads()", f"wait_for_first({kernel.threads})")
    head = f"INLINE void {kernel.name}({', '.join(parameters)})"
    return [*found, *(head + body).rstrip("\n").split("\n")]


def words_of(calls: Sequence[CalledKernel]) -> int:
    """Return how many words of parameters a merged kernel takes for calls, at least."""
    return sum(1 + -(-len(call.parameters) // 8) for call in calls)


def merge(
    calls: Sequence[CalledKernel],
    values: int = 0,
    steps: int = 1,
    moving: Sequence[MovingAddress] = (),
) -> MergedCall:
    """Return the call of a kernel that calls others.

    Parameters
    ----------
    calls : sequence of CalledKernel
        Of each step.
    values : int
        Bytes of values that lie in the memory of the block, at most ``BLOCK_BYTES[-1]``.
    steps : int
    moving : sequence of MovingAddress
        With ``calls``, of at most ``WORDS[-1]`` words, where each of these takes four.
    """
    kernels = sorted({call.kernel for call in calls}, key=lambda kernel: kernel.name)
    has_steps = steps > 1
    words = next(n for n in WORDS if n >= words_of(calls) + 4 * len(moving))
    first, begins, given = len(calls) + 4 * len(moving), [], bytearray()
    for call in calls:
        begins.append(first + len(given) // 8)
        given += call.parameters + bytes(-len(call.parameters) % 8)
    table = [
        kernels.index(call.kernel) | call.waits << 16 | begin << 32
        for call, begin in zip(calls, begins, strict=True)
    ]
    for one in moving:
        table += [begins[one.call] + one.place // 8, 0, 0, one.stride % 2**64]
    numbers = (len(calls), steps, len(moving), 0) if has_steps else (len(calls), 0)
    head = struct.pack(f"{len(numbers)}i", *numbers)
    found = bytearray(head + struct.pack(f"{len(table)}Q", *table)) + given
    found += bytes(len(head) + 8 * words - len(found))
    return MergedCall(
        calling_kernel(
            tuple(kernels), words, next(n for n in BLOCK_BYTES if n >= values), has_steps
        ),
        found,
        [len(head) + 8 * begin for begin in begins],
        [len(head) + 8 * (len(calls) + 4 * i + 1) for i in range(len(moving))],
    )  # fmt: skip
