"""Every package imports, by the name and from the folder that the map tells."""

import importlib
from pathlib import Path

import pytest

from symcomp.tests.repository import folder_of_package


@pytest.mark.parametrize("package", folder_of_package())
def test_package_imports_from_its_folder(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).parent == folder_of_package()[package]
