"""``python -m symcomp cache``: list or clear the directory of compiled kernels."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from symcomp.codegen.compiler import driver
from symcomp.config import config

SUMMARY = "what is kept of compiled kernels"
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subcommands."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="each entry: its name, size, and when it was last used")
    actions.add_parser("clear", help="remove all entries; running programs keep loaded kernels")
    actions.add_parser("path", help="the directory")


def run(options: Namespace) -> int:
    """Run the subcommand and print its result."""
    {"list": _list, "clear": _clear, "path": _path}[options.action]()
    return 0


def _list() -> None:
    total, now = 0, time.time()
    entries = driver.entries()
    for entry in entries:
        total += entry.size
        used = _age(now - entry.used)
        print(f"{entry.path.stem}  {entry.size / 1024:8.1f} KiB  used {used} ago")
    print(
        f"{len(entries)} entries, {total / driver.MEBIBYTE:.1f} MiB of {config.compiledir_size} in "
        f"{driver.cache_directory()}"
    )


def _clear() -> None:
    removed = driver.clear()
    size = sum(entry.size for entry in removed) / driver.MEBIBYTE
    print(f"removed {len(removed)} entries, {size:.1f} MiB, from {driver.cache_directory()}")


def _path() -> None:
    print(driver.cache_directory())


def _age(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, length in UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return "0 s"
