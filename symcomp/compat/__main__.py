"""``python -m symcomp.compat script.py args...``: run a program that says ``import theano``."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from symcomp.compat.modules import install_as_theano


def main(arguments: Sequence[str]) -> None:
    """Run the script, or with ``-m`` the module, as Python would."""
    parser = argparse.ArgumentParser(
        prog="python -m symcomp.compat",
        description="Run a program that was written for Theano.",
    )
    parser.add_argument("-m", action="store_true", help="run a module, as python -m does")
    parser.add_argument("program", help="the file, or with -m the module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed on to the program")
    known = parser.parse_args(arguments)
    install_as_theano()
    sys.argv = [known.program, *known.args]
    if known.m:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(known.program, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(known.program)))
        runpy.run_path(known.program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
