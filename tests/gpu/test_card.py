"""A card, if there is one: the same training step as on the processor."""

import pytest

import symcomp
from symcomp.config import config
from symcomp.gpu import DeviceUnavailable, driver_of
from symcomp.gpu.driver.compiler import find_compiler
from symcomp.tests.gpu.running import assert_close
from symcomp.tests.gpu.test_functions import network


@pytest.mark.gpu
def test_training_on_a_card() -> None:
    try:
        driver_of("cuda0")
        find_compiler()
    except DeviceUnavailable as problem:
        pytest.skip(str(problem))
    x, y, loss, updates, params, batch = network()
    f = symcomp.function([x, y], loss, updates=updates)
    with config.change_flags(device="cuda0"):
        x, y, loss, updates, moved, batch = network()
        g = symcomp.function([x, y], loss, updates=updates)
    for _ in range(4):
        assert_close(g(*batch), f(*batch), 16)
    for p, q in zip(params, moved, strict=True):
        assert_close(q.get_value(), p.get_value(), 16)
