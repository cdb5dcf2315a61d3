"""Errors of devices."""

from __future__ import annotations

from symcomp.errors import SymcompError


class DeviceUnavailable(SymcompError, RuntimeError):
    """A device was asked for that cannot be used here; the message says why and what helps."""


class DeviceError(SymcompError, RuntimeError):
    """A device, or its driver, refused or failed to do some work."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device has not enough memory; the message says for what."""
