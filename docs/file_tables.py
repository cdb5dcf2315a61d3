"""Tables of the files of a folder, with the first sentence that each file says about itself.

The directive ``files`` takes folders of the repository, or patterns of files, one a line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("*.py", "*.pyx", "*.pxi", "*.h")
C_COMMENT = re.compile(r"\s*(?:/\*(.*?)\*/|((?://[^\n]*\n)+))", re.S)


def files_of(argument: str) -> list[Path]:
    """List the sources that a line of the directive names, without empty packages."""
    if any(c in argument for c in "*."):
        return sorted(ROOT.glob(argument))
    return sorted(path for pattern in SOURCES for path in (ROOT / argument).glob(pattern))


def opening(path: Path) -> str:
    """Return the first comment or docstring of a file, without its marks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    if path.suffix == ".h":
        found = C_COMMENT.match(text)
        comment = (found[1] or found[2]) if found else ""
        return re.sub(r"^\s*(?:\*|//) ?", "", comment, flags=re.M).strip()
    quoted = re.match(r'(?:#[^\n]*\n)*\s*"""(.*?)"""', text, re.S)
    if quoted:
        return quoted[1]
    lines = re.match(r"(?:#[^\n]*\n)+", text)
    return re.sub(r"^# ?", "", lines[0], flags=re.M) if lines else ""


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    found = re.match(r"(.*?[.:])(?: [A-Z`(]|$)", paragraph)
    sentence = found[1] if found else paragraph
    return sentence if sentence.endswith("...") else sentence.rstrip(".:")


class Files(SphinxDirective):
    """A table of files: path and first sentence."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        rows = []
        for line in self.content:
            for path in files_of(line.strip()):
                self.env.note_dependency(str(path))
                sentence = first_sentence(opening(path))
                if sentence:
                    name = nodes.literal("", path.relative_to(ROOT).as_posix())
                    rows.append(([name], inline(sentence)))
        return [table_of(rows, "files")]


def table_of(rows: Sequence[Sequence[list[nodes.Node]]], kind: str) -> nodes.table:
    """Build a table without a head from the contents of its cells."""
    body = nodes.tbody()
    for cells in rows:
        row = nodes.row()
        for cell in cells:
            row += nodes.entry("", nodes.paragraph("", "", *cell))
        body += row
    group = nodes.tgroup("", nodes.colspec(colwidth=35), nodes.colspec(colwidth=65), body, cols=2)
    return nodes.table("", group, classes=[kind])


def inline(sentence: str) -> list[nodes.Node]:
    """Split a sentence into text and literals."""
    parts = re.split(r"``?([^`]+)``?", sentence)
    return [
        nodes.literal("", part) if i % 2 else nodes.Text(part)
        for i, part in enumerate(parts)
        if part
    ]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("files", Files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
