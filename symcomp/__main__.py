"""``python -m symcomp COMMAND``: run a command from a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from symcomp.commands import cache, info, profile
from symcomp.errors import SymcompError

COMMANDS: dict[str, ModuleType] = {"cache": cache, "info": info, "profile": profile}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what it returns is the exit status."""
    parser = argparse.ArgumentParser("python -m symcomp", description="The compiler symcomp.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        module.add_arguments(
            commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        )
    options = parser.parse_args(arguments)
    try:
        return int(COMMANDS[options.command].run(options))
    except SymcompError as error:
        print(f"symcomp: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
