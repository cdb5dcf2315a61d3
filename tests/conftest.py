"""The tests compile thousands of functions: without kernels, but where these are tested.

Property-based tests try the same examples in every run, so that a change is judged by what it
changed; `make fuzz` tries new ones.
"""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")

# Generated C has no warnings. Comparisons that are pointless for one dtype are not for another.
WARNINGS = "-Wall -Wextra -Wno-type-limits -Werror"
DEFAULTS = {"kernels": "False", "cflags": WARNINGS}


def pytest_configure() -> None:
    """Before symcomp reads its configuration."""
    flags = os.environ.get("SYMCOMP_FLAGS", "")
    added = [f"{n}={v}" for n, v in DEFAULTS.items() if f"{n}=" not in flags]
    os.environ["SYMCOMP_FLAGS"] = ",".join(filter(None, [flags, *added]))
