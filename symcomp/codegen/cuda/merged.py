"""Several kernels of one block as one kernel: their texts as functions, which it calls one after
another, in the order that its parameters tell.

The text follows from the set of the kernels alone, so equal kernels have one function, and another
order, or more calls, need no other text. Shared memory is that of the kernel with the most.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import cache

from symcomp.codegen.cuda.text import ALWAYS_RUN, CudaKernel, named
from symcomp.core.record import record

#: How many words of 8 bytes the parameters have: few numbers, as there is a kernel for each.
WORDS = (32, 64, 128, 256, 480)
_HEAD = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([\d, ]+\) )?\w+\(([^()]*)\)')
_PARAMETER = re.compile(r"(?:const ([\w ]+(?:<[^<>]*>)?)|(fault \*)const) (\w+)")
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


def can_be_called(kernel: CudaKernel) -> bool:
    """Tell whether a kernel can be a function of another one, whose blocks may have more threads.
    """
    fits = kernel.threads <= ALWAYS_RUN and kernel.threads % 32 == 0
    return fits and "__syncthreads_" not in kernel.text and _parts_of(kernel.text) is not None


@cache
def calling_kernel(kernels: tuple[CudaKernel, ...], words: int) -> CudaKernel:
    """Return the kernel that calls kernels, by their numbers, as the words tell.

    Parameters
    ----------
    kernels : tuple of CudaKernel
        Which can be called.
    words : int
        Of its parameters.
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
            f"            const auto given = read_given<{function}_given>(words, place);",
            f"            {function}({', '.join(given)});",
            "        } break;",
        ]
    memory = ["    __shared__ union {", *shared, "    } shared;"] if shared else []
    lines = [
        "namespace NAME_functions {",
        *functions,
        "}",
        f'extern "C" __global__ void __launch_bounds__({threads}, 1) NAME(const int n,',
        f"    const given_words<{words}> words)",
        "{",
        *memory,
        "    for (int i = 0; i < n; i++) {",
        "        const unsigned long long call = words[i];",
        "        const int place = (int)(call >> 32);",
        "        if (call >> 16 & 1)",
        "            __syncthreads();",
        "        switch ((int)(call & 0xffff)) {",
        *cases,
        "        }",
        "    }",
        "}",
    ]
    name, text = named(lines, threads)
    return CudaKernel(name, text, ("n",), 0, 0, 0, False, threads, True)


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


def merge(calls: Sequence[CalledKernel]) -> tuple[CudaKernel, bytearray, list[int]]:
    """Return the kernel of calls, its parameters, and where in them those of each call begin.

    Parameters
    ----------
    calls : sequence of CalledKernel
        Of at most ``WORDS[-1]`` words.
    """
    kernels = sorted({call.kernel for call in calls}, key=lambda kernel: kernel.name)
    words = next(n for n in WORDS if n >= words_of(calls))
    table, given, places = [], bytearray(), []
    for call in calls:
        at = len(calls) + len(given) // 8
        table.append(kernels.index(call.kernel) | call.waits << 16 | at << 32)
        places.append(8 + 8 * at)
        given += call.parameters + bytes(-len(call.parameters) % 8)
    found = bytearray(struct.pack(f"i4x{len(table)}Q", len(calls), *table)) + given
    found += bytes(8 + 8 * words - len(found))
    return calling_kernel(tuple(kernels), words), found, places
