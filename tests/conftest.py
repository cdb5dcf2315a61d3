"""The tests compile thousands of functions: without kernels, but where these are tested."""

import os


def pytest_configure() -> None:
    """Before symcomp reads its configuration."""
    flags = os.environ.get("SYMCOMP_FLAGS", "")
    if "kernels=" not in flags:
        os.environ["SYMCOMP_FLAGS"] = ",".join(filter(None, [flags, "kernels=False"]))
