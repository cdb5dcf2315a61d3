"""Tables of functions, and a page for each of them.

The directive ``functions`` on the pages below ``docs/reference`` names a module and public names of
it. It becomes a table with the first line of each docstring. Each name gets a page of its own in
``docs/generated`` with its signature, docstring and example. These pages stand in no table of
contents: a sidebar of several hundred pages would take most of the time of a build. So their
sidebars are equal, and made once.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from file_tables import first_sentence, inline, table_of
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

BLOCK = re.compile(r"^```\{functions\} (\S+)\n(.*?)^```$", re.M | re.S)
SIDEBARS: dict[tuple[tuple[str, Any], ...], str] = {}
TITLE = re.compile(r"^# (.+)$", re.M)


@dataclass(frozen=True)
class Entry:
    """One name of one table: its module, and the page of the table."""

    module: str
    name: str
    topic: str = ""
    title: str = ""

    @property
    def full(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"

    @property
    def member(self) -> Any:
        """The object of this name."""
        return getattr(importlib.import_module(self.module), self.name)


def entries(folder: Path) -> Iterator[Entry]:
    """Yield the names in the tables of all pages of a folder, in order."""
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = TITLE.search(text)
        assert found is not None, f"{page} has no title"
        for module, names in BLOCK.findall(text):
            for name in names.split():
                yield Entry(module, name, page.stem, found[1])


def directive_of(member: Any) -> str:
    """Choose the autodoc directive that documents an object."""
    if inspect.isclass(member):
        return "autoexception" if issubclass(member, BaseException) else "autoclass"
    return "autofunction" if callable(member) and hasattr(member, "__name__") else "autodata"


def function_page(entry: Entry) -> str:
    """Write the page of one name."""
    directive = directive_of(entry.member)
    topic = f":doc:`{entry.title} </reference/{entry.topic}>`"
    lines = [":orphan:", "", entry.full, "=" * len(entry.full), ""]
    lines += [f":doc:`Reference </reference>` / {topic}", "", f".. {directive}:: {entry.full}"]
    if directive == "autoclass":
        lines += ["   :members:"]
    if directive in ("autoclass", "autoexception"):
        lines += ["   :show-inheritance:"]
    if directive == "autoexception":
        lines += ["", f"How to resolve it: :ref:`errors <{entry.name}>`."]
    return "\n".join([*lines, ""])


def write_pages(app: Sphinx) -> None:
    """Write the pages that changed, and delete the pages of names that are in no table any more."""
    source = Path(app.srcdir)
    folder = source / "generated"
    folder.mkdir(exist_ok=True)
    written = set()
    for entry in entries(source / "reference"):
        path = folder / f"{entry.full}.rst"
        text = function_page(entry)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        written.add(path)
    for path in {*folder.glob("*.rst")} - written:
        path.unlink()


class Functions(SphinxDirective):
    """A table of the names in the content, which are names of the module in the argument."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the table: each name as a link to its page, and the first sentence about it."""
        rows = []
        for name in " ".join(self.content).split():
            entry = Entry(self.arguments[0], name)
            link = addnodes.pending_xref(
                "", nodes.literal("", name), refdomain="py", reftype="obj", reftarget=entry.full
            )
            sentence = first_sentence(inspect.getdoc(entry.member) or "")
            rows.append(([link], inline(sentence)))
        return [table_of(rows, "functions")]


def share_sidebar(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Let the theme have one table of contents for all pages in ``generated``.

    It is made for the first page of all, before the processes that write the others are started.
    """
    make = context.get("toctree")
    if make is None:
        return
    pages = sorted(name for name in app.env.found_docs if name.startswith("generated/"))

    def toctree(**options: Any) -> str:
        key = tuple(sorted(options.items()))
        if pages and key not in SIDEBARS:
            SIDEBARS[key] = app.builder._get_local_toctree(pages[0], **options)
        return SIDEBARS[key] if page.startswith("generated/") else make(**options)

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and write the pages before the sources are read."""
    app.add_directive("functions", Functions)
    app.connect("builder-inited", write_pages)
    SIDEBARS.clear()
    app.connect("html-page-context", share_sidebar, priority=400)  # before the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
