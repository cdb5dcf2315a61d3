"""Waiting for devices, and how much of their memory is used."""

from __future__ import annotations

from symcomp.config import config
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.interface import MemoryInfo


def _named(device: str | None) -> str:
    return device or ("cuda" if config.device == "cpu" else config.device)


def synchronize(device: str | None = None) -> None:
    """Wait until all work of a device is done.

    Parameters
    ----------
    device : str, optional
        By default ``config.device``.

    Raises
    ------
    IndexError, DeviceError
        The error of the first work that failed; its message names the op.

    Examples
    --------
    >>> from symcomp.gpu import synchronize
    >>> synchronize("emu")
    """
    driver_of(_named(device)).wait()


def memory_info(device: str | None = None) -> MemoryInfo:
    """Return how many bytes of a device are free, there, used and cached.

    Parameters
    ----------
    device : str, optional
        By default ``config.device``.

    Examples
    --------
    >>> from symcomp.gpu import memory_info
    >>> memory_info("emu").total > 0
    True
    """
    return driver_of(_named(device)).memory_info()
