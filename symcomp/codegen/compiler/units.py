"""Divide kernels into C files of about equal length, one for each processor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symcomp.codegen import prebuilt
from symcomp.codegen.compiler.driver import processors
from symcomp.codegen.compiler.early import Code, load_codes
from symcomp.codegen.printers.c_file import functions_called, translation_unit
from symcomp.codegen.printers.c_headers import Piece
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.core.spans import span

# Characters that compile as long as starting a compiler and reading the shared headers take.
WORTH_A_FILE = 10_000


def load_kernels(kernels: Iterable[Kernel]) -> dict[str, Code]:
    """Return the functions of kernels by name; without a compiler, the installed ones."""
    units = units_of({kernel.name: kernel for kernel in kernels}.values(), processors())
    with span("print C") as stage:
        nest = "shared" if prebuilt.shares_loops() else "own"
        files = [(translation_unit(unit, nest), [kernel.name for kernel in unit]) for unit in units]
        stage.note = f"{sum(text.count(chr(10)) for text, _ in files)} lines"
    with span("C compiler"):
        codes = load_codes(files)
    if codes is None:
        found = prebuilt.addresses(kernel.name for unit in units for kernel in unit)
        return {name: Code(address) for name, address in found.items()}
    return {
        name: code
        for (_, names), of_file in zip(files, codes, strict=True)
        for name, code in zip(names, of_file, strict=True)
    }


def units_of(kernels: Iterable[Kernel], most: int) -> list[list[Kernel]]:
    """Divide kernels into at most ``most`` groups; the order of the kernels does not matter.

    A file has what several of its kernels need once, so kernels with long functions in common come
    together: each goes where the length of the group then, and what it adds, are least together.
    """
    needs = {k: dict(_needs_of(k)) for k in kernels}
    size = {k: len(k.source) + sum(map(len, k.needs)) for k in needs}
    longest_first = sorted(size, key=lambda k: (-len(k.source) - sum(needs[k].values()), k.name))
    count = max(1, min(most, len(longest_first), sum(size.values()) // WORTH_A_FILE))
    units: list[list[Kernel]] = [[] for _ in range(count)]
    there: list[set[str | Piece]] = [set() for _ in range(count)]
    lengths = [0] * count
    for kernel in longest_first:
        added = [
            len(kernel.source) + sum(n for need, n in needs[kernel].items() if need not in has)
            for has in there
        ]
        best = min(range(count), key=lambda unit: lengths[unit] + 2 * added[unit])
        units[best].append(kernel)
        there[best] |= needs[kernel].keys()
        lengths[best] += added[best]
    return units


def _needs_of(kernel: Kernel) -> Iterator[tuple[str | Piece, int]]:
    """Yield what the file of a kernel has beside its source, with the lengths."""
    for text in kernel.needs:
        yield text, len(text)
    for piece in functions_called(kernel):
        yield piece, len(piece.text)
