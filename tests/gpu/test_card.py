"""A card, if there is one: the same training step as on the processor; arrays of others."""

from typing import Any

import numpy as np
import pytest

import symcomp
from symcomp.config import config
from symcomp.gpu import DeviceUnavailable, driver_of, to_device, to_gpu
from symcomp.gpu.driver.compiler import find_compiler
from symcomp.tests.gpu.running import assert_close
from symcomp.tests.gpu.test_functions import network


@pytest.fixture(autouse=True)
def need_card() -> None:
    """Skip tests where there is no card."""
    try:
        driver_of("cuda0")
        find_compiler()
    except DeviceUnavailable as problem:
        pytest.skip(str(problem))


@pytest.mark.gpu
def test_training_on_a_card() -> None:
    x, y, loss, updates, params, batch = network()
    f = symcomp.function([x, y], loss, updates=updates)
    with config.change_flags(device="cuda0"):
        x, y, loss, updates, moved, batch = network()
        g = symcomp.function([x, y], loss, updates=updates)
    for _ in range(4):
        assert_close(g(*batch), f(*batch), 16)
    for p, q in zip(params, moved, strict=True):
        assert_close(q.get_value(), p.get_value(), 16)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_of_other_libraries(library: str) -> None:
    other: Any = pytest.importorskip(library)
    values = np.arange(12, dtype="float32").reshape(3, 4)
    x = symcomp.tensor.fmatrix("x")
    with config.change_flags(device="cuda0"):
        f = symcomp.function([x], to_gpu(symcomp.tensor.exp(x).T, "cuda0"))
    given = other.asarray(values, **({"device": "cuda"} if library == "torch" else {}))
    for ours in (f(values), f(to_device(given, "cuda0")), f(to_device(given[::2], "cuda0"))):
        theirs = other.from_dlpack(ours)
        assert theirs.data_ptr() == ours.address if library == "torch" else True
        back = theirs.cpu().numpy() if library == "torch" else other.asnumpy(theirs)
        wanted = np.exp(values if ours.shape[1] == 3 else values[::2]).T
        np.testing.assert_allclose(back, wanted, rtol=1e-6)
    if library == "cupy":  # PyTorch takes no arrays that may not be written by this interface
        back = other.asnumpy(other.asarray(f(values)))  # by __cuda_array_interface__
        np.testing.assert_allclose(back, np.exp(values).T, rtol=1e-6)
