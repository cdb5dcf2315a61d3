"""Files and functions stay small: over 600 lines a file warns, over 800 it fails.

A function fails over 80 lines. Its docstring is not counted: a formula, its source and a worked
example are wanted there.
"""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from symcomp.tests.repository import ROOT, folder_of_package

FILE_WARNS, FILE_FAILS, FUNCTION_FAILS = 600, 800, 80
SUFFIXES = {".py", ".pyx", ".pxi", ".c", ".h", ".cu", ".cuh"}


def source_files() -> list[Path]:
    """List the sources of the packages and of the folders beside them."""
    folders = [*folder_of_package().values(), *(ROOT / n for n in ("benchmarks", "docs"))]
    folders += [ROOT / "examples", ROOT / "tools"]
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return sorted({path for path in found if "_build" not in path.parts})


def is_test(path: Path) -> bool:
    """Tell whether a file is held to the limit of files only."""
    return path.is_relative_to(ROOT / "tests")


def function_sizes(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, first line and number of lines, docstring not counted, of every function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                lines -= first.end_lineno - first.lineno + 1
            yield node.name, node.lineno, lines


def long_functions(source: str, limit: int = FUNCTION_FAILS) -> list[str]:
    """Say which functions have more lines than the limit."""
    return [
        f"line {line}: {name} has {lines} lines, more than {limit}"
        for name, line, lines in function_sizes(source)
        if lines > limit
    ]


def check_file_length(name: str, lines: int) -> None:
    """Warn of a file that grows, fail one that has grown."""
    if lines > FILE_FAILS:
        pytest.fail(f"{name} has {lines} lines, more than {FILE_FAILS}: split it by subject")
    if lines > FILE_WARNS:
        warnings.warn(f"{name} has {lines} lines, more than {FILE_WARNS}", stacklevel=2)


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_size(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    check_file_length(str(path.relative_to(ROOT)), len(source.splitlines()))
    if path.suffix == ".py" and not is_test(path):
        assert not long_functions(source)


def test_file_limits() -> None:
    check_file_length("small.py", FILE_WARNS)
    with pytest.warns(UserWarning, match=r"grown\.py has 601 lines"):
        check_file_length("grown.py", FILE_WARNS + 1)
    with pytest.raises(pytest.fail.Exception, match=r"huge\.py has 801 lines"):
        check_file_length("huge.py", FILE_FAILS + 1)


def test_function_limit_leaves_the_docstring_out() -> None:
    docstring = '    """One.\n\n    Two.\n    """\n'
    body = "    x = 1\n" * (FUNCTION_FAILS - 1)
    assert long_functions(f"def f():\n{docstring}{body}") == []
    assert long_functions(f"def f():\n{docstring}{body}    x = 2\n") == [
        "line 1: f has 81 lines, more than 80"
    ]


def test_function_limit_holds_for_methods() -> None:
    source = "class A:\n    async def f(self):\n" + "        x = 1\n" * FUNCTION_FAILS
    assert long_functions(source) == ["line 2: f has 81 lines, more than 80"]
