"""Every example in a docstring and on a documentation page runs and answers what it says."""

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symcomp.codegen.functions.c_scalars import TEMPLATES
from symcomp.compat.modules import PATCHES
from symcomp.compile.shared import _constructors
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.tests.pages import run_module, run_page
from symcomp.tests.repository import ROOT, modules_without_extras

# The examples of docs/pymc.md need PyMC: tests/pymc/test_docs.py runs them.
ELSEWHERE = {ROOT / "docs" / "pymc.md"}
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md",
    *sorted({*(ROOT / "docs").glob("*.md")} - ELSEWHERE),
]  # fmt: skip


@pytest.fixture(scope="module")
def all_modules() -> None:
    """Import all modules, so that a page adds nothing to the tables of functions but its own."""
    for name in modules_without_extras():
        importlib.import_module(name)


@pytest.fixture(autouse=True)
def in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_modules: None
) -> Iterator[None]:
    """Run examples in an empty folder, and undo what they install."""
    monkeypatch.chdir(tmp_path)
    constructors = [*_constructors]
    tables: list[dict[str, Any]] = [ROWS, TEMPLATES]
    functions = [{**table} for table in tables]
    for kind, members in PATCHES.items():
        for name, member in members.items():
            monkeypatch.setattr(kind, name, member, raising=False)
    with config.change_flags(**config.values):
        for name in config._options:
            monkeypatch.setitem(config._origins, name, "default")
        yield
    _constructors[:] = constructors
    for table, before in zip(tables, functions, strict=True):
        for name in table.keys() - before.keys():
            del table[name]
    for name in [name for name in sys.modules if name.partition(".")[0] == "theano"]:
        del sys.modules[name]


@pytest.mark.parametrize("name", modules_without_extras())
def test_docstrings(name: str) -> None:
    run_module(importlib.import_module(name))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page(page: Path) -> None:
    run_page(page)


def write_page(folder: Path, text: str) -> Path:
    """Write a page with the text."""
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_share_one_namespace(tmp_path: Path) -> None:
    page = write_page(
        tmp_path,
        "```python\nx = 3\n```\n```pycon\n>>> y = x + 1\n>>> y\n4\n```\n"
        "1. in a list\n\n   ```python\n   assert y == 4\n   ```\n"
        "```\n>>> y\n4\n```\n~~~python\nassert x == 3\n~~~\n",
    )
    assert run_page(page) == 5


def test_other_languages_are_not_run(tmp_path: Path) -> None:
    blocks = ["text\n>>> 1 / 0", "console\n$ rm", "\nno code", "{note}\n1 /", "c\nint x;"]
    text = "".join(f"```{block}\n```\n" for block in blocks)
    assert run_page(write_page(tmp_path, text)) == 0


def test_wrong_answer_is_told_with_its_line(tmp_path: Path) -> None:
    page = write_page(tmp_path, "# Title\n\n```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match=r"(?s)page\.md.*line 4.*Expected:\s+3\nGot:\s+2"):
        run_page(page)


def test_lines_of_earlier_blocks_are_quoted(tmp_path: Path) -> None:
    """Each block has its own name, so a line is not taken from the block that runs."""
    page = write_page(
        tmp_path,
        "```python\n>>> import symcomp.tensor as T\n>>> x = T.dvector('x')\n"
        ">>> y = T.exp(x)  # the first\n```\n"
        "```python\n>>> 1\n1\n>>> 2\n2\n>>> 'none of these'\n'none of these'\n"
        ">>> y.owner.source.text\n'y = T.exp(x)  # the first'\n```\n",
    )
    assert run_page(page) == 2


def test_plain_block_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    page = write_page(tmp_path, "# Title\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page)
    assert caught.traceback[-1].lineno + 1 == 5


def test_wrong_answer_in_a_docstring() -> None:
    module = types.ModuleType("planted", "Planted.\n\n>>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match=r"Expected:\s+3\nGot:\s+2"):
        run_module(module)
