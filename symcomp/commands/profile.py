"""``python -m symcomp profile script.py``: run a script with every function profiled."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable

from symcomp.config import config
from symcomp.profiling.stats import ProfileStats, profiles_at_exit

SUMMARY = "run a script with every function profiled, and print the profiles when it ends"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the script, its arguments, and the output files."""
    parser.add_argument("--html", metavar="PATH", help="write a page with the graphs, too")
    parser.add_argument("--json", metavar="PATH", help="write the numbers as JSON, too")
    parser.add_argument("--trace", metavar="PATH", help="write a Chrome trace, too")
    parser.add_argument("--output", metavar="PATH", help="write the text there, not to stderr")
    parser.add_argument("script", help="the Python file to run")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="arguments of the script"
    )


def run(options: argparse.Namespace) -> int:
    """Run the script as ``python script.py`` would; what it raises is raised."""
    if not os.path.isfile(options.script):
        print(f"profile: there is no file {options.script}", file=sys.stderr)
        return 2
    config.profile = True
    if options.output is not None:
        config.profile_destination = os.path.abspath(options.output)
    files = {name: getattr(options, name) for name in ("html", "json", "trace")}
    paths = {name: os.path.abspath(path) for name, path in files.items() if path is not None}
    sys.argv[:] = [options.script, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    try:
        runpy.run_path(options.script, run_name="__main__")
    finally:
        _write(paths, os.path.basename(options.script))
    return 0


def _write(paths: dict[str, str], name: str) -> None:
    """Write the profiles of all functions called to the requested files."""
    together = ProfileStats(name)
    for profile in profiles_at_exit():
        together.functions += profile.functions if profile.calls else []
    writers: dict[str, Callable[[str], None]] = {
        "html": together.to_html,
        "json": together.to_json,
        "trace": together.to_chrome_trace,
    }
    for kind, path in paths.items():
        writers[kind](path)
