"""A new emulator for each test; or, with SYMCOMP_TEST_DEVICE=cuda, a card.

With SYMCOMP_KEEP_KERNELS, kernels are kept in that folder, for tools/gpu_kernels.py. Flags of
sanitizers in `config.cflags` are kept, too (`make gpu-sanitize`).
"""

import os
import sys
from collections.abc import Iterator, Sequence

import pytest

from symcomp.codegen.cuda.text import CudaKernel
from symcomp.config import config
from symcomp.gpu import merging
from symcomp.gpu.driver.devices import driver_of, set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.tests.gpu.running import DEVICE, keep

# Tests of the emulator alone: itself, its arrays in the host's memory, stand-ins of libraries.
EMULATED = (
    "test_emulator", "test_exchange", "test_cublas", "test_cudnn", "test_cufft", "test_cusolver",
    "test_cusparse", "test_decompositions", "test_sparse_shared",
)  # fmt: skip

# Tests of kernels, which they share as long as launches are not merged: each test would have merged
# ones of its own. Those of native examples, loops and programs have these.
UNMERGED = (
    "test_complex", "test_cublas", "test_cufft", "test_cusolver", "test_decompositions",
    "test_indexing", "test_kernels", "test_libraries", "test_running", "test_segments",
    "test_sorting", "test_sparse_comparisons", "test_sparse_products", "test_sparse_slices",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run on a card."""
    for item in items:
        on_card = DEVICE != "emu" and "emu" in getattr(item, "fixturenames", ())
        if on_card and item.path.parent.name == "gpu" and item.path.stem not in EMULATED:
            item.add_marker(pytest.mark.gpu)


class Keeping(Emulator):
    """Keeps the texts of kernels in files."""

    def kernels(self, wanted: Sequence[CudaKernel]) -> dict[str, int]:
        keep(wanted)
        return super().kernels(wanted)


@pytest.fixture
def unmerged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave launches of one block as they are."""
    monkeypatch.setattr(merging, "FEWEST_SAVED", sys.maxsize)


@pytest.fixture(autouse=True)
def _unmerged_in_tests_of_kernels(request: pytest.FixtureRequest) -> None:
    if request.path.stem in UNMERGED:
        request.getfixturevalue("unmerged")


@pytest.fixture
def emu() -> Iterator[Driver]:
    """Yield the driver of the device under test."""
    if DEVICE != "emu":
        card = driver_of(DEVICE)
        card.wait()
        card.counters.clear()
        yield card
        return
    driver = Keeping() if os.environ.get("SYMCOMP_KEEP_KERNELS") else Emulator()
    before = set_driver("emu", driver)
    # Compilers take half the time without optimizing.
    kept = [flag for flag in config.cflags.split() if flag.startswith(("-g", "-fsanitize"))]
    with config.change_flags(cflags=" ".join(["-O0", *kept])):
        yield driver
    set_driver("emu", before)
