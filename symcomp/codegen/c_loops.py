"""The text of loops over elements and rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

# The elements of such a block: a vector of floats.
TAIL = 16
_FUNCTION = re.compile(r"\b(?!sizeof|half)[a-z]\w+\(")
_NAME = re.compile(r"\b[av]\d+\b")
# What a function of a body takes.
ARGUMENTS = "(int64_t rows, int64_t n, char *const *data, const int64_t *step)"
LANE_ARGUMENTS = (
    "(int added, int64_t count, int64_t rows, int64_t rest, char *const *given, "
    "const int64_t *step, const int64_t *next)"
)


def needed(lines: Sequence[tuple[int, str]], after: Sequence[str], prefix: str = "v") -> list[str]:
    """The lines whose variable, ``prefix`` and its number, is read in a later one."""
    read = set(_NAME.findall(" ".join(after)))
    kept = []
    for number, line in reversed(lines):
        if f"{prefix}{number}" in read:
            kept.append(line)
            read.update(_NAME.findall(line.partition("=")[2]))
    return kept[::-1]


def inline_head(number: int) -> str:
    arguments = ARGUMENTS.replace("int64_t n,", "int64_t n, int across,")
    return f"INLINE void NAME_rows{number}{arguments}"


def versions(number: int, values: bool, once: bool = False) -> list[str]:
    """A body for results side by side and, where that is another code, for parts of one; ``once``:
    whether it should not read twice what it uses twice.
    """
    run = f"    NAME_rows{number}(rows, n, %d, data, step);"
    head = f"{'READ_ONCE ' if once else ''}static void NAME_{number}{ARGUMENTS}"
    lines = [head, "{", run % 0, "}", ""]
    if values:
        lines += [f"static void NAME_across{number}{ARGUMENTS}", "{", run % 1, "}", ""]
    return lines


def loop(lines: Sequence[str]) -> list[str]:
    """The loop over elements."""
    head = ["#pragma omp simd", "for (int64_t i = 0; i < n; i++) {"]
    return [*head, *(f"    {line}" for line in lines), "}"]


def loop_of_blocks(lines: Sequence[str]) -> list[str]:
    """The loop over elements; those left over are one more block, as one by one they take longer:
    compilers make vectors of it that read and write some of their elements.
    """
    return [
        f"const int64_t whole = n - n % {TAIL};",
        *(line.replace("i < n", "i < whole") for line in loop(lines)),
        "if (whole < n) {",
        "#pragma omp simd",
        f"    for (int64_t k = 0; k < {TAIL}; k++) {{",
        "        if (k < n - whole) {",
        "            const int64_t i = whole + k;",
        *(f"            {line}" for line in lines),
        "        }",
        "    }",
        "}",
    ]


def of_row(line: str, suffix: str, row: int = 0) -> str:
    """A line for one of several rows, whose variables end in ``suffix``."""
    line = _NAME.sub(rf"\g<0>{suffix}", line)
    return line.replace("+ r * step", f"+ (r + {row}) * step") if row else line


def portions(size: int, inner: Sequence[str]) -> list[str]:
    """All rows, in portions of a size, or at once if it is 0."""
    end = f"rows - part < {size} ? rows : part + {size}" if size else "rows"
    return [
        f"    for (int64_t part = 0; part < rows; part += {size or 'rows'}) {{",
        f"        int64_t r = part, end = {end};",
        *inner,
        "    }",
    ]


def is_light(lines: Sequence[str]) -> bool:
    """Whether a body takes so little time that where its totals are matters."""
    return not any(_FUNCTION.search(line) for line in lines)


def indented(line: str, depth: int) -> str:
    return line if line.startswith("#") else "    " * depth + line
