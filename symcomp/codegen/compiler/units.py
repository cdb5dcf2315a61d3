"""Divide kernels into C files of about equal length, one for each processor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from symcomp.codegen import prebuilt
from symcomp.codegen.compiler import driver, links
from symcomp.codegen.compiler.driver import Target, processors
from symcomp.codegen.compiler.early import Code, load_codes
from symcomp.codegen.printers.c_file import functions_called, translation_unit
from symcomp.codegen.printers.c_headers import Piece
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.config import config
from symcomp.core.spans import span

# Characters that compile as long as starting a compiler and reading the shared headers take.
WORTH_A_FILE = 10_000

# The functions that this process has loaded, by the compiler with its flags, and by the kernel.
_loaded: dict[tuple[Target, str], Code] = {}


def load_kernels(kernels: Iterable[Kernel]) -> dict[str, Code]:
    """Return the functions of kernels by name; without a compiler, the installed ones.

    Kernels that other programs have, too, are taken from their files.
    """
    nest = "shared" if prebuilt.shares_loops() else "own"
    named = {kernel.name: kernel for kernel in kernels}
    how = driver.target()
    if how is None:
        return _installed(named)
    with span("compiled before") as stage:
        found = {name: code for name in named if (code := _in_process(how, name)) is not None}
        alone = {n: translation_unit([k], nest) for n, k in named.items() if n not in found}
        found |= {
            name: Code(address) for name, text in alone.items()
            if (address := links.find(how, text, name)) is not None
        }  # fmt: skip
        stage.note = f"{len(found)} of {len(named)} kernels"
    with span("print C") as stage:
        units = units_of([k for n, k in named.items() if n not in found], processors())
        files = [(_file_of(unit, nest, alone), [k.name for k in unit]) for unit in units]
        stage.note = f"{sum(text.count(chr(10)) for text, _ in files)} lines"
    with span("C compiler"):
        codes = load_codes(files)
    if codes is None:
        return _installed(named)
    for (text, names), of_file in zip(files, codes, strict=True):
        found.update(zip(names, of_file, strict=True))
        if len(names) > 1:
            links.add(how, text, [alone[name] for name in names])
    _loaded.update({(how, name): code for name, code in found.items()})
    return found


def _file_of(unit: Sequence[Kernel], nest: str, alone: Mapping[str, str]) -> str:
    return translation_unit(unit, nest) if len(unit) > 1 else alone[unit[0].name]


def _in_process(how: Target, name: str) -> Code | None:
    """Return the function of a kernel that this process has loaded, if it is optimized, or will be
    in time.
    """
    code = _loaded.get((how, name))
    if code is not None and code.early and not config.early_code:
        code.wait()
    is_left = code is not None and code.early and (code.job is None or code.job.done.is_set())
    return None if is_left else code


def _installed(names: Iterable[str]) -> dict[str, Code]:
    return {name: Code(address) for name, address in prebuilt.addresses(names).items()}


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
    return [unit for unit in units if unit]


def _needs_of(kernel: Kernel) -> Iterator[tuple[str | Piece, int]]:
    """Yield what the file of a kernel has beside its source, with the lengths."""
    for text in kernel.needs:
        yield text, len(text)
    for piece in functions_called(kernel):
        yield piece, len(piece.text)
