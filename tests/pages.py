"""Run the Python of a documentation page: its sessions (`>>>`) and its plain blocks, in order.

A page is one namespace, so that a later block uses names defined in an earlier one. Blocks fenced
as anything but Python (`text`, `console`, `c` ...) are not run.
"""

import doctest
import linecache
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^([ ]*)(```+|~~~+)[ ]*(\{[\w-]+\}|[\w+-]*)[^\n]*\n(.*?)^\1\2[ ]*$", re.M | re.S
)
LANGUAGES = {"python", "pycon"}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """The text of one block and the line of the page before it."""

    source: str
    line: int

    @property
    def is_session(self) -> bool:
        """True if the block shows a prompt and the answers."""
        return re.search(r"^\s*>>>", self.source, re.M) is not None


def python_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that are Python, or a session that names no language."""
    for match in FENCE.finditer(text):
        language, source = match[3], textwrap.dedent(match[4])
        block = Block(source, text.count("\n", 0, match.start(4)))
        if language in LANGUAGES or (not language and block.is_session):
            yield block


def run_page(path: Path) -> int:
    """Run a page and return how many blocks it has; a wrong answer raises AssertionError."""
    namespace: dict[str, Any] = {"__name__": path.stem}
    blocks = list(python_blocks(path.read_text(encoding="utf-8")))
    for block in blocks:
        if block.is_session:
            run_session(block, namespace, path)
        else:
            # As many empty lines as stand above the block: a traceback then shows the page's line.
            exec(compile("\n" * block.line + block.source, str(path), "exec"), namespace)
    return len(blocks)


def run_session(block: Block, namespace: dict[str, Any], path: Path) -> None:
    """Compare what a session answers with what the page says."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    # Tracebacks find lines by the name of the block.
    name = f"{path.name}:{block.line}"
    session = parser.get_doctest(block.source, namespace, name, str(path), block.line)
    report: list[str] = []
    runner.run(session, out=report.append, clear_globs=False)
    namespace.update(session.globs)
    for number, example in enumerate(session.examples):
        # Later blocks may quote these lines.
        lines = example.source.splitlines(keepends=True)
        entry = (len(example.source), None, lines, f"<doctest {name}[{number}]>")
        linecache.cache[entry[-1]] = entry
    assert not runner.failures, "".join(report)


def run_module(module: Any) -> int:
    """Run the examples in a module's docstrings and return how many there are."""
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report: list[str] = []
    for session in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__):
        runner.run(session, out=report.append)
    assert not runner.failures, "".join(report)
    return runner.tries
