"""The examples of the modules that need PyTensor or PyMC, and of docs/pymc.md."""

import importlib

import pytest

pytest.importorskip("pymc")

from symcomp.tests.pages import run_module, run_page
from symcomp.tests.repository import (
    ROOT,
    folder_of_package,
    modules_without_extras,
    path_of_module,
)

EXTRAS = sorted({*path_of_module(folder_of_package())} - {*modules_without_extras()})


@pytest.mark.parametrize("name", EXTRAS)
def test_docstrings(name):
    if name.endswith(".nutpie"):
        pytest.importorskip("nutpie")
    run_module(importlib.import_module(name))


def test_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "docs" / "pymc.md")
