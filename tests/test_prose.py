"""`tools/prose.py` finds the sentences that break the rules, by line, and no others."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from symcomp.tests.repository import ROOT


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["prose"]


def found(prose: ModuleType, folder: Path, name: str, source: str) -> list[tuple[int, str]]:
    """Return the line and the rule of each finding in a file with this text."""
    path = folder / name
    path.write_text(source)
    return [(finding.line, finding.rule) for finding in prose.findings_of([path])]


def rules(prose: ModuleType, folder: Path, name: str, source: str) -> list[str]:
    """Return the rules broken by a file with this text."""
    return [rule for _, rule in found(prose, folder, name, source)]


PHRASES = (
    "what is", "what was", "those that", "those who", "so many", "somebody", "nobody", "whoever"
)  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases(prose: ModuleType, tmp_path: Path, phrase: str) -> None:
    rule = f'"{phrase}" is no subject'
    text = f"The code keeps {phrase} needed."
    assert found(prose, tmp_path, "a.py", f"x = 1\n# {text}\n") == [(2, rule)]
    assert found(prose, tmp_path, "a.pyx", f"cdef int x = 1  # {text}\n") == [(1, rule)]
    assert found(prose, tmp_path, "a.h", f"int x;\n\n/* {text} */\n") == [(3, rule)]
    assert found(prose, tmp_path, "a.h", f"int x; // {text}\n") == [(1, rule)]
    assert found(prose, tmp_path, "a.md", f"# Title\n\n{text}\n") == [(3, rule)]
    assert found(prose, tmp_path, "a.py", f'"""Module.\n\n{text}\n"""\n') == [(3, rule)]
    assert found(prose, tmp_path, "a.py", f'raise ValueError("{text}")\n') == [(1, rule)]


def test_partitives(prose: ModuleType, tmp_path: Path) -> None:
    rule = 'a sentence starts with "Of"'
    assert found(prose, tmp_path, "a.py", "# Of several limits, the last decides.\n") == [(1, rule)]
    assert found(prose, tmp_path, "a.h", "/* The loop ends. Of two, one. */\n") == [(1, rule)]
    assert found(prose, tmp_path, "a.md", "Text.\nOf two, one.\n") == [(2, rule)]
    assert found(prose, tmp_path, "a.py", "# The last of several limits decides.\n") == []


def test_phrase_across_lines(prose: ModuleType, tmp_path: Path) -> None:
    rule = '"what is" is no subject'
    assert found(prose, tmp_path, "a.py", "x = 1\n# Keep what\n# is needed.\n") == [(2, rule)]
    assert found(prose, tmp_path, "a.h", "/* Keep what\n   is needed. */\n") == [(1, rule)]
    source = 'if x:\n    raise ValueError(\n        f"{x} is"\n        "what is wanted"\n    )\n'
    assert found(prose, tmp_path, "a.py", source) == [(4, rule)]


def test_code_is_not_prose(prose: ModuleType, tmp_path: Path) -> None:
    assert not rules(prose, tmp_path, "a.py", 'x = "what is this"\n# The flag ``what is``.\n')
    assert not rules(prose, tmp_path, "a.md", "```python\n# what is this\n```\n\nThe `what is`.\n")
    assert not rules(prose, tmp_path, "a.h", 'char *s = "/* what is this */";\n')
    source = '"""Module.\n\n>>> print("a")\nwhat is printed\n"""\n'
    assert not rules(prose, tmp_path, "a.py", source)
    assert not rules(prose, tmp_path, "a.py", "x = 1  # noqa: E501 what is this\n")


@pytest.mark.parametrize("word", ["It", "They", "This", "These", "What", "Those", "Its", "One of"])
def test_first_words(prose: ModuleType, tmp_path: Path, word: str) -> None:
    text = f"{word} the rows."
    assert found(prose, tmp_path, "a.py", f"x = 1  # {text}\n") == [
        (1, "the comment starts with a pronoun")
    ]
    assert found(prose, tmp_path, "a.py", f'def f():\n    """{text}"""\n') == [
        (2, "the function starts with a pronoun")
    ]
    assert found(prose, tmp_path, "a.pyx", f'cdef class A:\n    """{text}"""\n') == [
        (2, "the docstring starts with a pronoun")
    ]
    assert found(prose, tmp_path, "a.h", f"int x; /* {text} */\n") == [
        (1, "the comment starts with a pronoun")
    ]


def test_only_the_first_word_of_a_comment_counts(prose: ModuleType, tmp_path: Path) -> None:
    assert not rules(prose, tmp_path, "a.py", "# Rows are sorted.\n# They are unique.\n")
    assert not rules(prose, tmp_path, "a.h", "/* Rows are sorted.\n   They are unique. */\n")
    assert rules(prose, tmp_path, "a.py", "x = 1  # rows\ny = 2  # they are\n") == [
        "the comment starts with a pronoun"
    ]
    assert not rules(prose, tmp_path, "a.py", "# One row for each image.\n")
    assert not rules(prose, tmp_path, "a.py", '"""``Mode``, whose rules differ."""\n')


VERB = "the docstring of a function starts with a verb"


@pytest.mark.parametrize(
    ("header", "first", "broken"),
    [
        ("def f(x):", "The length of x.", [VERB]),
        ("async def f(x):", "A list.", [VERB]),
        ("def f(\n    x,\n) -> int:", "Whether x is sorted.", [VERB]),
        ("def f(x):", "Return the length of x.", []),
        ("def f(x):", "exp(x) - 1.", []),
        ("class A:", "The rows of a table.", []),
        ("class A:\n    @property\n    def n(self):", "The number of rows.", []),
        ("class A:\n    @functools.cached_property\n    def n(self):", "The rows.", []),
        ("def test_rows():", "The rows are sorted.", []),
    ],
)
def test_verb_first(
    prose: ModuleType, tmp_path: Path, header: str, first: str, broken: list[str]
) -> None:
    assert rules(prose, tmp_path, "a.py", f'{header}\n        """{first}"""\n') == broken


def test_verb_first_in_cython(prose: ModuleType, tmp_path: Path) -> None:
    assert rules(prose, tmp_path, "a.pyx", 'cdef int f(int x):\n    """The x."""\n') == [VERB]
    assert not rules(prose, tmp_path, "a.pyx", 'cdef class A:\n    """The x."""\n')


def test_reasons(prose: ModuleType, tmp_path: Path) -> None:
    assert found(prose, tmp_path, "a.py", 'rule("f",\n    why="what is the same")\n') == [
        (2, "the reason starts with a pronoun"),
        (2, '"what is" is no subject'),
    ][::-1]
    assert not rules(prose, tmp_path, "a.py", 'rule("f", why="equal terms cancel")\n')


def test_exit_status(
    prose: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("# Rows are sorted.\n")
    bad.write_text("\n# What is sorted.\n")
    assert prose.main([str(good)]) == 0
    assert capsys.readouterr().out == ""
    assert prose.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(f"{bad}:2: ")[1] for line in lines[:2]] == [f"{bad}:2: "] * 2
    assert lines[2:] == ["2 places to rewrite"]


def test_pending_folders_exist_and_are_left_out(prose: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    for name in ("rows/a.py", "b.py"):
        (tmp_path / name).write_text("# What is sorted.\n")
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[tool.prose]\npending = ["rows"]\n')
    assert prose.default_paths(tmp_path) == [tmp_path / "b.py"]
    pyproject.write_text('[tool.prose]\npending = ["columns"]\n')
    with pytest.raises(FileNotFoundError, match="columns"):
        prose.default_paths(tmp_path)
