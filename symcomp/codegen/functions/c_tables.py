"""Write tables of numbers as C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def doubles(name: str, values: Iterable[float]) -> str:
    """Return a table of doubles."""
    return f"static const double {name}[] = {{{', '.join(float(v).hex() for v in values)}}};"


def double_rows(name: str, rows: Iterable[Sequence[float]]) -> str:
    """Return a table of rows of one length, padded with zeros."""
    texts = [[float(v).hex() for v in row] for row in rows]
    written = ", ".join(f"{{{', '.join(row)}}}" for row in texts)
    return f"static const double {name}[][{max(map(len, texts))}] = {{{written}}};"
