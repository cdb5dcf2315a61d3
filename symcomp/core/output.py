"""Write text to standard output or a file, or return it to the caller."""

from __future__ import annotations

import sys
from typing import Any


def written(text: str, file: Any) -> Any:
    """Write ``text`` to ``file``, None being standard output; ``"str"`` returns it."""
    if file == "str":
        return text
    print(text, file=sys.stdout if file is None else file)
    return file
