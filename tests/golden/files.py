"""The golden files: their paths, and their differences from the text of the compiler at hand."""

from __future__ import annotations

import difflib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# A test shows at most this many lines of a difference.
MOST_LINES = 400


def path_of(name: str) -> Path:
    """Return where the file of a golden function is."""
    return FOLDER / f"{name}.txt"


def read(name: str) -> str:
    """Return the text of a file; of one that is missing, nothing."""
    path = path_of(name)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def difference(name: str, before: str, after: str) -> str:
    """Tell how a file differs from the text that there would be now, as a unified diff."""
    title = f"tests/golden/{name}.txt"
    lines = [
        *difflib.unified_diff(before.split("\n"), after.split("\n"), title, f"{title} now", "", "",
                              n=3, lineterm="")
    ]  # fmt: skip
    shown = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} lines more")
    return "\n".join([
        f"The compiler makes another {name} than {title} shows. If that is meant, write the file "
        "again by `make golden`, and review the difference in the commit that makes it:",
        *shown,
    ])  # fmt: skip
