"""The text of a golden file: one function in sections, from the rewritten graph to the kernels.

``SECTIONS`` has them in their order. To add one, write a function from a ``Compiled`` to text, put
it into the list, and run ``make golden``. The text must be the same in every process, on every
processor, with every version of Python, NumPy and LAPACK: constants are rounded, because folded
ones may differ in their last digits, kernels, whose names are hashes, are numbered, and sizes that
LAPACK decides are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import symcomp
from symcomp.codegen.printers.c_printer import Kernel
from symcomp.config import OPTIONS, config
from symcomp.core.tree import Tree, TreeOptions
from symcomp.cvm.kernels import printed_kernels
from symcomp.tests.golden import functions  # noqa: F401 - registers the builders
from symcomp.tests.golden.registry import BUILDERS, Golden
from symcomp.vm.program import Program

# The defaults, whatever the configuration says; but no kernel is compiled, and errors are errors.
FLAGS = {option.name: option.default for option in OPTIONS} | {
    "kernels": False, "on_opt_error": "raise",
}  # fmt: skip

_HASHED_NAME = re.compile(r"\b([a-z]+)_[0-9a-f]{16}")
_LONG_FRACTION = re.compile(r"\d+\.\d{9,}(?:e[-+]\d+)?")
# Memory of decompositions is as large as LAPACK asks for, and so is the arena in which it lies.
_MEMORY_OF_LAPACK = re.compile(r"( decompose\(.*)uint8\[\d+\]")
_ARENA = re.compile(r"arena of \d+ bytes")
# The body of a pass over elements: the part of the C of a kernel that all files show.
_BODY = re.compile(r"(?:INLINE|static) void loops_[0-9a-f]{16}_body\d+\(.*\n    for \(", re.DOTALL)


@dataclass(frozen=True)
class Compiled:
    """A golden function after one call.

    Attributes
    ----------
    golden : Golden
    function : symcomp.Function
    results : list
        Of the call.
    """

    golden: Golden
    function: Any
    results: list[Any]

    def programs(self) -> Iterator[tuple[str, Program]]:
        """Yield the programs of the function and of all bodies that it runs, with their titles."""
        waiting = [("the function", self.function.program)]
        for title, one in waiting:
            yield title, one
            for position, step in enumerate(one.instructions):
                whose = "" if one is self.function.program else f" of {title}"
                for number, body in enumerate(step.bodies, 1):
                    which = f"body {number}" if len(step.bodies) > 1 else "the body"
                    waiting.append((f"{which} of instruction {position}{whose}", body.program))


def graph(compiled: Compiled) -> str:
    """Print the rewritten graphs as trees."""
    return _of_each_program(compiled, _trees)


def _trees(one: Program) -> str:
    tree = Tree(TreeOptions(print_type=True))
    tree.add([one.variables[slot] for slot in one.outputs])
    return "\n".join(tree.lines)


def program(compiled: Compiled) -> str:
    """List the instructions."""
    return _of_each_program(compiled, Program.listing)


def _of_each_program(compiled: Compiled, text_of: Callable[[Program], str]) -> str:
    parts = [f"-- {title}\n{text_of(one)}" for title, one in compiled.programs()]
    return _LONG_FRACTION.sub(lambda found: f"{float(found[0]):.8g}", "\n\n".join(parts))


def call(compiled: Compiled) -> str:
    """Tell dtypes and shapes of the arguments and results of the call."""
    ends = [("argument", compiled.golden.arguments), ("result", compiled.results)]
    return "\n".join(f"{kind} {_described(value)}" for kind, values in ends for value in values)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {value.shape}"
    return type(value).__name__


def plan(compiled: Compiled) -> str:
    """Print the plan of the call, in which what would be generated kernels are calls of Python."""
    text, found = _MEMORY_OF_LAPACK.subn(r"\1memory", str(compiled.function.plan()))
    return _ARENA.sub("an arena", text) if found else text


def kernels(compiled: Compiled) -> str:
    """Print the C of the kernels: the bodies of loops, or all of it but the headers."""
    parts: list[str] = []
    seen: set[str] = set()
    for title, one in compiled.programs():
        for position, (_, whole) in printed_kernels(one.instructions).items():
            parts.append(f"-- {title}, instruction {position}: {whole.kernel.name}")
            parts += _parts_of_kernel(whole.kernel, seen, compiled.golden.whole_kernels)
    return _numbered("\n\n".join(parts))


def _parts_of_kernel(kernel: Kernel, seen: set[str], in_full: bool) -> Iterator[str]:
    """Yield the bodies that were not seen yet, and a digest of everything else; or the text."""
    if kernel.name in seen:
        return
    seen.add(kernel.name)
    lines = "\n".join((*kernel.needs, kernel.source)).split("\n")
    if in_full:
        yield "\n".join(lines)
        return
    rest: list[str] = []
    for text in _top_level(lines):
        if not _BODY.match(text):
            rest.append(text)
        elif text not in seen:
            seen.add(text)
            yield text
    yield _digest("\n".join(rest))


def _top_level(lines: Sequence[str]) -> Iterator[str]:
    """Yield the functions of C, and the declarations between them."""
    part: list[str] = []
    for line in lines:
        part.append(line)
        if line in ("", "}") or line.endswith(";") and not line.startswith(" "):
            yield "\n".join(part)
            part = []


def _digest(text: str) -> str:
    plain = _HASHED_NAME.sub(r"\1", text).encode()
    return f"... and {text.count(chr(10)) + 1} lines, {hashlib.sha256(plain).hexdigest()[:16]}"


def _numbered(text: str) -> str:
    """Replace hashes in names by numbers, in the order in which they appear."""
    numbers: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"{found[1]}{len(numbers) + 1}")

    return re.sub(r"\n{3,}", "\n\n", _HASHED_NAME.sub(name, text)).strip("\n")


SECTIONS: list[Callable[[Compiled], str]] = [graph, program, call, plan, kernels]


def text_of(name: str) -> str:
    """Build the golden function ``name``, call it once, and return the text of its file."""
    with config.change_flags(**FLAGS):
        golden = BUILDERS[name]()
        function = symcomp.function(
            golden.inputs, golden.outputs, updates=golden.updates, name=name
        )
        results = function(*golden.arguments)
        results = results if isinstance(results, list) else [results]
        compiled = Compiled(golden, function, results)
        parts = [f"==== {section.__name__} ====\n\n{section(compiled)}\n" for section in SECTIONS]
    return "\n".join(parts)
