"""The C functions that kernels may call, in pieces: a file gets the ones that it needs.

A header is divided into its functions and tables, each of which is a piece, and into its frame:
structures, macros, conditions, which go together. A piece needs the pieces whose names are in its
text, and the frame of its header.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from symcomp.core.record import record

# The folder `codegen`.
_FOLDER = Path(__file__).parent.parent
# The macros of headers that are included for double and for float.
_REAL = {
    "double": ("name", "((double)(x))", "0x1p-52", "134217729.0", "1e-300"),
    "float": ("name##f", "((float)(x))", "0x1p-23f", "4097.0f", "0"),
}
_REAL_MACROS = ("REAL", "F(name)", "C(x)", "EPSILON", "SPLITTER", "SMALL")

_COMMENT, _WORD = re.compile(r"^/\*.*?\*/\n+|/\*.*?\*/", re.M | re.S), re.compile(r"\w+")
_OF_REAL = re.compile(r"\bF\((\w+)\)")
# The head of a function or table, up to its name; or a macro that defines a function.
_HEAD = re.compile(
    r"^(?:#pragma omp declare .*\n)?(?:INLINE|HELPER|RARE|SLOW|TABLE|NEST|static|extern)\b"
    r"[^({=;]*?(?:__attribute__\(\(.*?\)\)[^({=;]*?)?(?:\bF\((\w+)\)|(\w+))\s*[\[(=;]"
    r"|^([A-Z_]+)\((\w+)\b.*\)$",
    re.M,
)
_MACRO = re.compile(r"^#define (\w+)(?:\((\w+)[^)]*\))?((?:.*\\\n)*.*\n)", re.M)
_UNDEFINED = re.compile(r"^#undef (\w+)", re.M)
_ENUM, _CONSTANT = re.compile(r"\benum(?: \w+)? \{(.*?)\}", re.S), re.compile(r"\b[A-Z]\w*")


@record
class Header:
    """A part of the C that files may have.

    Attributes
    ----------
    name : str
        The file's, from the folder `codegen`; or any, where the text is printed.
    real : {None, "double", "float"}
        The numbers of a header that is included once for each kind.
    print : callable, optional
        Gives the text, where that is no file.
    tables : tuple of str
        Printed headers that this one reads. They are printed when a piece of this one is needed.
    always : bool
        Whether every file has the frame.
    words : tuple of str
        Types: texts with these words need the frame, as those with its macros and constants do.
    asked_by : tuple of str
        Words, or the beginnings of words up to an underscore, all texts that need a piece of the
        header have one of. It is divided when the first such text comes; at once, if there are
        none.
    """

    name: str
    real: str | None = None
    print: Callable[[], str] | None = None
    tables: tuple[str, ...] = ()
    always: bool = False
    words: tuple[str, ...] = ()
    asked_by: tuple[str, ...] = ()


# Headers are read when they are needed, by any thread.
_lock = threading.RLock()


def _begin_anew() -> None:
    """Replace the lock, which another thread may have held when the process was forked."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


class Piece:
    """A part of a header that a file has as a whole.

    Parameters
    ----------
    text : str
    names : iterable of str
        The names that it defines.
    header : Header
    frame : Piece, optional
        None for a frame itself.
    """

    __slots__ = ("frame", "header", "names", "text", "words")

    def __init__(self, text: str, names: Iterable[str], header: Header, frame: Piece | None):
        self.text, self.names, self.header, self.frame = text, tuple(names), header, frame
        self.words: frozenset[str] | None = None

    def mentions(self, ends: Mapping[str, Iterable[str]]) -> frozenset[str]:
        """Return the words of the text.

        Parameters
        ----------
        ends : dict of str to iterable of str
            By macro, what it puts after the name that it is called with.
        """
        if self.words is None:
            text = _of_kind(self.text, self.header)
            words = words_of(text)
            for macro in words & ends.keys():
                called = re.findall(rf"\b{macro}\((\w+)", text)
                words |= {name + end for name in called for end in ends[macro]}
            self.words = frozenset(words)
        return self.words


class Headers:
    """Headers in the order in which a file has them.

    Parameters
    ----------
    headers : sequence of Header
    """

    def __init__(self, headers: Sequence[Header]):
        self._headers = {(header.name, header.real): header for header in headers}
        self._parts: dict[Header, list[tuple[str, Piece]]] = {}
        self._named: dict[str, list[Piece]] = {}
        self._needs: dict[Piece, list[Piece]] = {}
        self._ends: dict[str, set[str]] = {}
        self._unread: dict[str, list[Header]] = {}
        tables = {name for header in headers for name in header.tables}
        for header in headers:
            for word in header.asked_by:
                self._unread.setdefault(word, []).append(header)
            if header.name not in tables and not header.asked_by:
                self._read(header)

    def pieces(self, words: Collection[str]) -> set[Piece]:
        """Return what a text with these words needs."""
        with _lock:
            return self._all_needed(words)

    def _all_needed(self, words: Collection[str]) -> set[Piece]:
        waiting = [*self._asked_for(words)]
        waiting += [
            parts[0][1]
            for header, parts in self._parts.items() if header.always and parts
        ]  # fmt: skip
        found: set[Piece] = set()
        while waiting:
            piece = waiting.pop()
            if piece in found:
                continue
            found.add(piece)
            waiting += self._needed_by(piece)
        return found

    def _needed_by(self, piece: Piece) -> list[Piece]:
        """Return the pieces that a piece names, and its frame."""
        needs = self._needs.get(piece)
        if needs is None:
            for name in piece.header.tables:
                self._read(self._headers[name, None])
            needs = self._needs[piece] = [*self._asked_for(piece.mentions(self._ends))]
            if piece.frame is not None:
                needs.append(piece.frame)
        return needs

    def _asked_for(self, words: Collection[str]) -> Iterator[Piece]:
        """Yield the pieces that these words name."""
        if self._unread:
            beginnings = {word.partition("_")[0] for word in words}
            for word in self._unread.keys() & beginnings.union(words):
                for header in self._unread[word]:
                    self._read(header)
                del self._unread[word]
        for word in words:
            yield from self._named.get(word, ())

    def text(self, pieces: set[Piece]) -> Iterator[str]:
        """Yield the text of these pieces, header by header."""
        for header in self._headers.values():
            parts = self._parts.get(header, ())
            if found := "".join(text for text, piece in parts if piece in pieces):
                before, after = _around(header.real)
                yield f"{before}{found}{after}"

    def everything(self) -> Iterator[str]:
        """Yield the text of all headers."""
        with _lock:
            for header in self._headers.values():
                self._read(header)
        yield from self.text({piece for parts in self._parts.values() for _, piece in parts})

    def _read(self, header: Header) -> None:
        if header in self._parts:
            return
        parts, others = _divided(header)
        for piece in dict.fromkeys((*(piece for _, piece in parts), *others)):
            for name in piece.names:
                self._named.setdefault(name, []).append(piece)
        for piece in others:
            if "##" in piece.text:
                match = _MACRO.match(piece.text)
                assert match is not None
                ends = re.findall(rf"\b{match[2]}##(\w+)", match[3])
                self._ends.setdefault(match[1], set()).update(ends)
        self._parts[header] = parts


def words_of(*texts: str) -> set[str]:
    """Return the words of C."""
    return set().union(*map(_words_of_one, texts))


@lru_cache(maxsize=64)
def _words_of_one(text: str) -> frozenset[str]:
    """Return the words of a text; kernels are read for their file and for what they call."""
    return frozenset(_WORD.findall(text))


@cache
def header(name: str) -> str:
    """Return the text of a header, named from the folder `codegen`."""
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _divided(given: Header) -> tuple[list[tuple[str, Piece]], list[Piece]]:
    """Return the parts of the text, each with its piece, the first with the frame; and the macros,
    which have no text of their own.
    """
    text = _COMMENT.sub("", header(given.name) if given.print is None else given.print())
    heads = list(_HEAD.finditer(text))
    starts = [match.start() for match in heads]
    ends = [_end_of_piece(match) for match in heads]
    between = [text[i:j] for i, j in zip([0, *ends], [*starts, len(text)], strict=True)]
    rest = "".join(between)
    macros = [*_MACRO.finditer(rest)]
    prefixes = {match[1]: _prefix(match) for match in macros}
    local = {*_UNDEFINED.findall(rest)}
    code = _MACRO.sub("", rest)
    frame = Piece(code, {*_constants(code), *given.words}, given, None)
    parts = [("", frame), (between[0], frame)]
    for match, end, other in zip(heads, ends, between[1:], strict=True):
        own = text[match.start() : end]
        name = match[2] or (f"{match[1]}f" if given.real == "float" else match[1])
        if match[3]:
            name = prefixes.get(match[3], "") + match[4]
        parts += [(own, Piece(own, (name,), given, frame)), (other, frame)]
    named = [
        Piece(match[0], (match[1],), given, frame) for match in macros if match[1] not in local
    ]
    return parts, named


def _end_of_piece(head: re.Match[str]) -> int:
    """Return where the text of a function, a declaration or a table ends."""
    text, at = head.string, head.end()
    line = text.index("\n", at - 1)
    if head[3] or text.startswith(("}", ";"), line - 1):
        return line + 1
    brace, semicolon = text.find("{", at), text.find(";", at)
    if brace < 0 or 0 <= semicolon < brace:
        return text.index("\n", semicolon) + 1
    is_table = text[at - 1] in "[="
    return text.index("\n", text.index("};" if is_table else "\n}", brace) + 1) + 1


def _prefix(macro: re.Match[str]) -> str:
    """Return what a macro puts before its first argument to make a name."""
    found = re.search(rf"(\w+)##{macro[2]}\b", macro[3]) if "##" in macro[3] else None
    return found[1] if found else ""


def _constants(code: str) -> set[str]:
    """Return the names that enumerations declare."""
    return {name for inside in _ENUM.findall(code) for name in _CONSTANT.findall(inside)}


def _of_kind(text: str, given: Header) -> str:
    """Write out the names of a header of real numbers."""
    return _OF_REAL.sub(r"\1f" if given.real == "float" else r"\1", text)


def _around(real: str | None) -> tuple[str, str]:
    """Return the lines before and after a header of real numbers."""
    if real is None:
        return "", ""
    macros = zip(_REAL_MACROS, (real, *_REAL[real]), strict=True)
    before = "".join(f"#define {macro} {text}\n" for macro, text in macros)
    return before, "".join(f"#undef {macro.partition('(')[0]}\n" for macro in _REAL_MACROS)
