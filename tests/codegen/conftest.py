"""Kernels of the tests are optimized, and kept for the time of the tests."""

import pytest

from symcomp.config import config


@pytest.fixture(autouse=True, scope="session")
def _compiled_kernels(tmp_path_factory):
    with config.change_flags(compiledir=str(tmp_path_factory.mktemp("kernels"))):
        yield


@pytest.fixture(autouse=True, scope="module")
def _optimized_kernels():
    with config.change_flags(cflags=config.cflags.replace(" -O0", "")):
        yield


@pytest.fixture
def directory(tmp_path):
    """Yield a cache of kernels of its own, which the first entry makes."""
    path = tmp_path / "kernels"
    with config.change_flags(compiledir=str(path)):
        yield path
