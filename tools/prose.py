"""List sentences that break the rules for plain English: ``python tools/prose.py [PATH ...]``.

The rules are about the subjects of sentences: a subject is a noun of the field, not "what is",
"those that" or "nobody"; the text at a line of code starts with its subject, not with a pronoun;
and the docstring of a function starts with a verb. Checked are comments, docstrings and the
messages of ``raise`` statements in Python and Cython, comments in C, and the text of Markdown.

Without paths, the folders of the repository are read, except for ``pending`` in the table
``tool.prose`` of pyproject.toml. The exit status is 1 if a sentence is listed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PHRASES = re.compile(
    r"\b(what (?:is|was|are|were|has|had)|those (?:that|which|who|whose)|so many|so much"
    r"|somebody|nobody|anybody|everybody|whoever)\b",
    re.IGNORECASE,
)
# A partitive before its noun: "Of several limits, the last decides".
PARTITIVE = re.compile(r"(?:^|[.:;] )(Of [a-z])")
PRONOUNS = frozenset(
    "he hers his it its itself nothing she such that their theirs them these they this those what"
    " whatever which who whom whose".split()
)
# "One" is a number before a noun, and a pronoun before these.
PRONOUN_ONE = re.compile(r"one (?:for|is|may|more|of|that|which|who|whose|with)\b", re.IGNORECASE)
# Function docstrings that begin with one of these are noun phrases or clauses, not instructions.
NOT_VERBS = frozenset("a all an another each every how some the two where whether why".split())

PYTHON = frozenset((".py", ".pyx", ".pxi", ".pxd"))
C = frozenset((".c", ".h", ".cu", ".cuh"))
SUFFIXES = PYTHON | C | {".md"}
SKIPPED = frozenset(("build", "dist", "_build", "generated", "__pycache__", "node_modules"))

_PYTHON_TOKEN = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r'|[rbuf]{0,2}(?:"""(?P<double>(?:\\.|[^\\])*?)"""|\'\'\'(?P<single>(?:\\.|[^\\])*?)\'\'\''
    r'|"(?P<short>(?:\\.|[^"\\\n])*)"|\'(?P<quoted>(?:\\.|[^\'\\\n])*)\')',
    re.IGNORECASE | re.DOTALL,
)
_C_TOKEN = re.compile(
    r'/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_DIRECTIVE = re.compile(r"(?:noqa|type:|fmt:|mypy:|ruff:|cython:|distutils:|pragma:|!|-\*-)")
_HEADER = re.compile(r"\s*(?:async\s+)?(?P<kind>class|def|cdef|cpdef)\b(?P<rest>.*)")
_PROPERTY = re.compile(r"\s*@(?:\w+\.)*(?:cached_)?property\b")
# Keywords whose strings users read: reasons of rewrite rules, help on commands.
_KEYWORD = re.compile(r"\b(?:why|help)\s*=\s*\Z")
# The first word of a text, unless it is code: in quotes, called, indexed or with an attribute.
_FIRST_WORD = re.compile(r"[^\w.(\[]*([A-Za-z]+)(?![\w(.\[])")


@dataclass(frozen=True)
class Text:
    """A paragraph: its sentences joined by spaces, with the line of each of its source lines.

    Attributes
    ----------
    kind : str
        "comment"; "function", "property" or "docstring" for the first paragraph of one; "reason"
        for the strings of some keywords; or "prose", whose first word is not checked.
    lines : tuple of (int, str)
        The number of each source line, counted from 1, and its text without marks.
    """

    kind: str
    lines: tuple[tuple[int, str], ...]

    @property
    def joined(self) -> str:
        """The lines as one string."""
        return " ".join(text for _, text in self.lines)

    def line_at(self, offset: int) -> int:
        """Return the source line of a position in the joined text."""
        starts, position = [], 0
        for _, text in self.lines:
            starts.append(position)
            position += len(text) + 1
        return self.lines[bisect_right(starts, offset) - 1][0]


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule."""

    path: Path
    line: int
    rule: str
    excerpt: str

    def __str__(self) -> str:
        inside = self.path.is_relative_to(ROOT)
        path = self.path.relative_to(ROOT) if inside else self.path
        return f"{path}:{self.line}: {self.rule}: {self.excerpt}"


def check(text: Text) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the rule and an excerpt for each place where a paragraph breaks a rule."""
    joined = without_code(text.joined)
    for found in PHRASES.finditer(joined):
        excerpt = joined[max(0, found.start() - 30) : found.end() + 30].strip()
        yield text.line_at(found.start()), f'"{found[0].lower()}" is no subject', excerpt
    for found in PARTITIVE.finditer(joined):
        excerpt = joined[found.start(1) : found.end() + 50].strip()
        yield text.line_at(found.start(1)), 'a sentence starts with "Of"', excerpt
    if text.kind == "prose":
        return
    first = _FIRST_WORD.match(joined)
    if first is None:
        return
    word, start = first[1].lower(), joined[first.start(1) :]
    if word in PRONOUNS or PRONOUN_ONE.match(start):
        yield text.line_at(0), f"the {text.kind} starts with a pronoun", start[:60]
    elif text.kind == "function" and word in NOT_VERBS:
        yield text.line_at(0), "the docstring of a function starts with a verb", start[:60]


def without_code(text: str) -> str:
    """Replace code between back quotes and quoted examples by as many dots."""
    return re.sub(r"(`+).+?\1|\"[^\"]*\"", lambda found: "." * len(found[0]), text)


def texts_of(path: Path) -> list[Text]:
    """Read the paragraphs of a file that are written for people."""
    source = path.read_text(encoding="utf-8")
    if path.suffix in C:
        return list(c_texts(source))
    if path.suffix == ".md":
        return list(markdown_texts(source))
    return list(python_texts(source))


def c_texts(source: str) -> Iterator[Text]:
    """Yield the comments of C."""
    comments: list[tuple[int, int, list[str]]] = []
    for found in _C_TOKEN.finditer(source):
        text = found["block"] if found["block"] is not None else found["line"]
        if text is not None:
            first = source.count("\n", 0, found.start()) + 1
            comments.append((first, _column_if_alone(source, found.start()), text.split("\n")))
    pieces = []
    for first, column, lines in comments:
        pieces += [(first + k, column, line) for k, line in enumerate(lines)]
    for paragraph in _joined_comments(pieces):
        yield from _paragraphs("comment", paragraph, lambda line: line.strip(" *"))


def python_texts(source: str) -> Iterator[Text]:
    """Yield the comments, docstrings and messages of Python or Cython."""
    lines, comments, blank = source.split("\n"), [], list(source)
    strings = []
    for found in _PYTHON_TOKEN.finditer(source):
        start, end = found.span()
        blank[start:end] = [" " if c != "\n" else c for c in source[start:end]]
        first = source.count("\n", 0, start) + 1
        if found["comment"] is not None:
            if not _DIRECTIVE.match(found["comment"][1:].lstrip(" :")):
                comments.append((first, _column_if_alone(source, start), found["comment"]))
            continue
        contents = found.group("double", "single", "short", "quoted")
        content = next(inside for inside in contents if inside is not None)
        strings.append((start, first, content))
    code = "".join(blank)
    raised = [found.span() for found in _raise_statements(code)]
    messages: dict[int, list[tuple[int, str]]] = {}
    for start, first, content in strings:
        numbered = [(first + k, line) for k, line in enumerate(content.split("\n"))]
        statement = next((span[0] for span in raised if span[0] <= start < span[1]), None)
        if _KEYWORD.search(code, 0, start):
            yield Text("reason", tuple(numbered))
        elif statement is not None:
            messages.setdefault(statement, []).extend(numbered)
        elif _is_docstring(code, start):
            yield from _docstring(_kind_of(lines, first), numbered)
    for paragraph in _joined_comments(comments):
        yield from _paragraphs("comment", paragraph, lambda line: line.strip(" #:"))
    for numbered in messages.values():
        yield Text("prose", tuple(numbered))


def markdown_texts(source: str) -> Iterator[Text]:
    """Yield the paragraphs of Markdown outside of blocks of code."""
    prose, fence = [], None
    for number, line in enumerate(source.split("\n"), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark[1] if fence is None else None
            line = ""
        prose.append((number, "" if fence else line))
    yield from _paragraphs("prose", prose, str.strip)


def _column_if_alone(source: str, start: int) -> int:
    """Return the column of a comment that is alone on its line; minus the line's number if not."""
    begin = source.rfind("\n", 0, start) + 1
    alone = not source[begin:start].strip()
    return start - begin if alone else -1 - source.count("\n", 0, start)


def _joined_comments(
    comments: Sequence[tuple[int, int, str]],
) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of adjacent comments in the same column together."""
    # Lines one below the other have the same difference of number and position in the list.
    numbered = list(enumerate(comments))
    for _, group in groupby(numbered, key=lambda item: (item[1][0] - item[0], item[1][1])):
        yield [(number, text) for _, (number, _, text) in group]


def _paragraphs(
    kind: str, lines: Sequence[tuple[int, str]], clean: Callable[[str], str]
) -> Iterator[Text]:
    """Split lines at empty ones; the first paragraph is of the given kind, the others are prose."""
    cleaned = [(number, clean(line)) for number, line in lines]
    for filled, group in groupby(cleaned, key=lambda item: bool(item[1])):
        if filled:
            yield Text(kind, tuple(group))
            kind = "prose"


def _docstring(kind: str, lines: Sequence[tuple[int, str]]) -> Iterator[Text]:
    """Yield the paragraphs of a docstring, without its examples and their output."""
    prose, example = [], False
    for number, line in lines:
        example = line.strip().startswith(">>>") or (example and bool(line.strip()))
        prose.append((number, "" if example else line))
    yield from _paragraphs(kind, prose, str.strip)


def _is_docstring(code: str, start: int) -> bool:
    """Tell whether a string begins a block, or the file; ``code`` is without comments."""
    before = code[:start].rstrip()
    begins = code.rfind("\n", 0, start) + 1
    return not code[begins:start].strip() and (not before or before.endswith(":"))


def _kind_of(lines: Sequence[str], first: int) -> str:
    """Return "function", "property" or "docstring" by the header above a docstring."""
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    for k in range(first - 2, -1, -1):
        header = _HEADER.match(lines[k])
        if not header or len(lines[k]) - len(lines[k].lstrip()) >= indent:
            continue
        if header["kind"] == "class" or re.match(r"\s+(?:packed\s+)?class\b", header["rest"]):
            return "docstring"
        above = k - 1
        while above >= 0 and lines[above].strip().startswith(("@", "#")):
            if _PROPERTY.match(lines[above]):
                return "property"
            above -= 1
        # The docstring of a test states the fact that it tests.
        return "docstring" if re.match(r"\s*test_", header["rest"]) else "function"
    return "docstring"


def _raise_statements(code: str) -> Iterator[re.Match[str]]:
    """Find ``raise`` statements in code without strings: to the end of the line and of brackets."""
    nested = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
    return re.finditer(rf"^[ \t]*(?:.*:\s)?raise\b(?:{nested}|[^\n(])*", code, re.MULTILINE)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """List the files to read: the given ones, and all of these kinds below given folders."""
    found = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [
            file
            for file in inside
            if file.suffix in SUFFIXES
            and not any(p in SKIPPED or p.startswith(".") for p in file.relative_to(path).parts)
        ]
    return found


def default_paths(root: Path) -> list[Path]:
    """List the files of a repository that are held to the rules: all but ``pending``."""
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["prose"]
    pending = [root / name for name in table["pending"]]
    missing = [str(path) for path in pending if not path.exists()]
    if missing:
        raise FileNotFoundError(f"tool.prose.pending names files that are gone: {missing}")
    tops = [path for path in sorted(root.iterdir()) if not path.name.endswith(".egg-info")]
    files = files_of([p for p in tops if p.name not in SKIPPED and not p.name.startswith(".")])
    return [file for file in files if not any(file.is_relative_to(p) for p in pending)]


def findings_of(files: Sequence[Path]) -> Iterator[Finding]:
    """Yield every place in the files that breaks a rule."""
    for path in files:
        found = [place for text in texts_of(path) for place in check(text)]
        yield from (Finding(path, *place) for place in sorted(found))


def main(arguments: Sequence[str]) -> int:
    """Print the places found, and return 1 if there are any."""
    files = files_of([Path(a) for a in arguments]) if arguments else default_paths(ROOT)
    found = list(findings_of(files))
    print(*found, sep="\n", end="\n" if found else "")
    if found:
        print(f"{len(found)} places to rewrite")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
