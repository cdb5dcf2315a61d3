"""Kernels in C files: as many as processors can compile at once, of about the same length."""

from __future__ import annotations

from collections.abc import Iterable

from symcomp.codegen import prebuilt
from symcomp.codegen.c_file import translation_unit
from symcomp.codegen.c_printer import Kernel
from symcomp.codegen.driver import processors
from symcomp.codegen.early import Code, load_codes
from symcomp.core.spans import span

# Starting a compiler, and what all files have in common, take as long as so many characters.
WORTH_A_FILE = 10_000


def load_kernels(kernels: Iterable[Kernel]) -> dict[str, Code]:
    """The functions of kernels by name; without a compiler, of those that were built before."""
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
    """Groups of kernels, at most so many; the same kernels make the same groups in any order."""
    size = {k: sum(map(len, (*k.needs, k.source))) for k in kernels}
    longest_first = sorted(size, key=lambda kernel: (-size[kernel], kernel.name))
    length = sum(size.values())
    count = max(1, min(most, len(longest_first), length // WORTH_A_FILE))
    units: list[list[Kernel]] = [[] for _ in range(count)]
    lengths = [0] * count
    for kernel in longest_first:
        shortest = lengths.index(min(lengths))
        units[shortest].append(kernel)
        lengths[shortest] += size[kernel]
    return units
