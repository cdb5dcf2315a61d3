"""The versions of PyTensor and PyMC that the backend is made for, checked at import."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

#: Package -> the minor series whose ops and rewrites the backend knows.
SERIES = {"pytensor": "3.3", "pymc": "6.4"}
INSTALL = "pip install 'symcomp[pytensor]'"


def check_versions() -> None:
    """Raise ImportError unless the installed PyTensor, and PyMC if it is there, are of the series.

    Another series has other ops, fields of ops and tags of rewrites: graphs would be translated
    wrongly rather than not at all.
    """
    check_version("pytensor", required=True)
    check_version("pymc", required=False)


def check_version(package: str, required: bool) -> None:
    """Raise ImportError unless ``package`` is of its series, or missing and not required."""
    series = SERIES[package]
    try:
        found = version(package)
    except PackageNotFoundError:
        if required:
            raise ImportError(
                f"symcomp.pytensor_backend needs {package} {series}, which is not installed: "
                f"{INSTALL} (Python 3.12 or later)"
            ) from None
        return
    if found.split(".")[:2] != series.split("."):
        raise ImportError(
            f"symcomp.pytensor_backend is made for {package} {series}, and {found} is installed: "
            f"pip install '{package}=={series}.*', or install the symcomp of that series"
        )
