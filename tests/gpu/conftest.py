"""A new emulator for each test; or, with SYMCOMP_TEST_DEVICE=cuda, a card."""

from collections.abc import Iterator

import pytest

from symcomp.config import config
from symcomp.gpu.driver.devices import driver_of, set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.tests.gpu.running import DEVICE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run on a card."""
    for item in items:
        on_card = DEVICE != "emu" and "emu" in getattr(item, "fixturenames", ())
        if on_card and item.path.parent.name == "gpu" and item.path.stem != "test_emulator":
            item.add_marker(pytest.mark.gpu)


@pytest.fixture
def emu() -> Iterator[Driver]:
    """Yield the driver of the device under test."""
    if DEVICE != "emu":
        yield driver_of(DEVICE)
        return
    driver = Emulator()
    before = set_driver("emu", driver)
    # Compilers take half the time without optimizing.
    with config.change_flags(cflags="-O0"):
        yield driver
    set_driver("emu", before)
