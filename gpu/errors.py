"""Errors of devices."""

from __future__ import annotations

from symcomp.errors import SymcompError


class DeviceUnavailable(SymcompError, RuntimeError):
    """A device was asked for that cannot be used here; the message says why and what helps."""


class DeviceError(SymcompError, RuntimeError):
    """A device, or its driver, refused or failed to do some work."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device has not enough memory; the message says for what."""


def unavailable_in_fork(name: str) -> DeviceUnavailable:
    """Return the error of a card that was used before the process was forked."""
    return DeviceUnavailable(
        f"the device {name!r} was used before this process was forked, and CUDA does not work in a "
        "fork: start processes with multiprocessing's method 'spawn'"
    )
