"""Write tables of numbers as C, for processors and cards: ``TABLE`` is a macro."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def doubles(name: str, values: Iterable[float]) -> str:
    """Return a table of doubles."""
    return f"TABLE double {name}[] = {{{', '.join(float(v).hex() for v in values)}}};"


def double_rows(name: str, rows: Iterable[Sequence[float]]) -> str:
    """Return a table of rows of one length, padded with zeros."""
    texts = [[float(v).hex() for v in row] for row in rows]
    written = ", ".join(f"{{{', '.join(row)}}}" for row in texts)
    return f"TABLE double {name}[][{max(map(len, texts))}] = {{{written}}};"
