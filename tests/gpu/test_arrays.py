"""Arrays on devices as users handle them: parts, numbers, text."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError
from symcomp.gpu import DeviceArray, DeviceType, to_device, to_gpu
from symcomp.gpu.driver.interface import Driver
from symcomp.tests.gpu.running import DEVICE, array

KEYS: list[Any] = [
    0, -1, slice(1, 3), slice(None, None, -2), (0, 1, 2), (Ellipsis, 0), (None, 1), slice(4, 9),
    (slice(None), np.int64(2), slice(None, None, -1)), (), Ellipsis,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts_are_views_without_a_wait(emu: Driver, key: Any) -> None:
    value = array(4, 3, 5)
    there = to_device(value, DEVICE)
    part = there[key]
    assert isinstance(part, DeviceArray) and part.memory is there.memory
    np.testing.assert_array_equal(part.get(), value[key])


def test_positions_that_are_none(emu: Driver) -> None:
    there = to_device(array(4, 3), DEVICE)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        there[4]
    with pytest.raises(IndexError, match="too many indices"):
        there[0, 0, 0]
    for key in ([0, 1], np.array([True]), True, 1.0, "a"):
        with pytest.raises(IndexError, match="takes numbers, slices, None and an ellipsis"):
            there[key]
    assert [row.get().tolist() for row in there[:, 0]] == array(4, 3)[:, 0].tolist()


def test_batches_of_data_on_a_device(emu: Driver) -> None:
    """A loop over batches copies nothing, and one plan serves all."""
    x = DeviceType(DEVICE, "float32", (None, None))("x")
    f = symcomp.function([x], to_gpu(T.tanh(x).sum(), DEVICE))
    value = array(12, 3)
    data = to_device(value, DEVICE)
    emu.wait()
    emu.counters.clear()
    found = [f(data[i : i + 4]) for i in range(0, 12, 4)]
    assert (emu.counters.waits, emu.counters.to_device) == (0, 0)
    wanted = np.tanh(value).reshape(3, -1).sum(axis=1)
    np.testing.assert_allclose([float(z) for z in found], wanted, rtol=1e-5)


def test_numbers_and_text(emu: Driver) -> None:
    number = to_device(np.float32(2.5), DEVICE)
    assert f"{number:.2f}" == "2.50" and f"{number}" == str(number)
    assert complex(to_device(np.complex64(1 + 2j), DEVICE)) == 1 + 2j
    with pytest.raises(ValueError, match="size 1"):
        f"{to_device(array(2), DEVICE):.2f}"


def test_dtypes_and_orders_of_bytes(emu: Driver) -> None:
    for dtype in (">f4", ">i8", "<f8"):
        given = np.arange(3).astype(dtype)
        found = to_device(given, DEVICE)
        assert found.dtype == given.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found.get(), given)
    for value in (np.array([None]), np.array(["a"]), np.zeros(2, "M8[D]"), np.longdouble(1)):
        with pytest.raises(DTypeError, match="is not supported"):
            to_device(value, DEVICE)
