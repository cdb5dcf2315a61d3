"""The tests compile thousands of functions: without kernels, but where these are tested.

Property-based tests try the same examples in every run, so that a change is judged by what it
changed; `make fuzz` tries new ones.
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")

# Generated C has no warnings. Some bodies need not all that each is given, and what one dtype makes
# pointless another needs. Optimized code is tested in tests/codegen, and everywhere by
# `make processors`: a compiler that does not optimize takes a third of the time.
WARNINGS = "-Wall -Wextra -Wno-type-limits -Wno-unused-parameter -Werror"
DEFAULTS = {"kernels": "False", "cflags": f"{WARNINGS} -O0"}


# Before symcomp reads them, which conftest.py of a folder may make it do.
_flags = os.environ.get("SYMCOMP_FLAGS", "")
_added = [f"{name}={value}" for name, value in DEFAULTS.items() if f"{name}=" not in _flags]
os.environ["SYMCOMP_FLAGS"] = ",".join(filter(None, [_flags, *_added]))

# Before NumPy is imported. Processes that run side by side leave no processor to the threads of
# BLAS, which wait for one another without pause: a third of the time of decompositions.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts them in the background has them ignore Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a GIL, no array is written over that others may have."""
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if item.get_closest_marker("overwrites") and not has_gil:
        pytest.skip("updates make new arrays without a GIL")


# The tests stay to the end: while they are collected, the cyclic collector would look at them again
# and again, for a third of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Let the cyclic collector pass over the tests from now on."""
    gc.collect()
    gc.freeze()
    gc.enable()
