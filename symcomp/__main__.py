"""``python -m symcomp <command>``: see ``symcomp.commands``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from symcomp.commands import info, profile

COMMANDS: dict[str, ModuleType] = {"info": info, "profile": profile}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` (by default those of the process) name."""
    parser = argparse.ArgumentParser(
        prog="python -m symcomp", description="A symbolic math compiler."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, command in COMMANDS.items():
        command.add_arguments(
            commands.add_parser(name, help=command.HELP, description=command.HELP)
        )
    options = parser.parse_args(arguments)
    return int(COMMANDS[options.command].run(options))


if __name__ == "__main__":
    sys.exit(main())
