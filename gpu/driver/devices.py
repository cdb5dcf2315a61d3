"""Devices by name: which there are, and the driver of each."""

from __future__ import annotations

import os
import re
import threading

from symcomp.cvm.machine import DEVICE_STREAMS
from symcomp.gpu.driver.cuda import CudaDriver, count_cards
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.errors import unavailable_in_fork

_NAME = re.compile(r"(emu|cuda)(\d*)")

_lock = threading.Lock()
_drivers: dict[str, tuple[int, Driver]] = {}
_names: dict[str, str] = {}


def _begin_anew() -> None:
    """Replace locks that another thread may have held when the process was forked."""
    global _lock
    _lock = threading.Lock()
    for name, (_, driver) in _drivers.items():
        driver.lock = threading.RLock()
        driver.queue.begin_anew()
        if not is_emulator(name):  # CUDA does not work here
            driver.queue.address = 0
            DEVICE_STREAMS.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def name_device(name: str, device: str) -> None:
    """Let another name stand for a device, as contexts of Theano do.

    Raises
    ------
    ValueError
        If it is the name of another device already.
    """
    device = canonical(device)
    if not isinstance(name, str) or _NAME.fullmatch(name) or name in ("", "cpu"):
        raise ValueError(f"{name!r} cannot be another name of {device}")
    if _names.setdefault(name, device) != device:
        raise ValueError(f"{name!r} is {_names[name]} already, not {device}")


def canonical(name: str) -> str:
    """Return the name of a device in full: "cuda" is "cuda0"; the first emulator is "emu".

    Raises
    ------
    ValueError
        If it is the name of no device.
    """
    if isinstance(name, str):
        name = _names.get(name, name)
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            f"device={name!r}: a device is 'cuda', 'cuda0', 'cuda1', ... or 'emu', 'emu1', ..."
        )
    kind, number = found[1], int(found[2] or 0)
    return kind if kind == "emu" and not number else f"{kind}{number}"


def is_emulator(name: str) -> bool:
    """Tell whether a device, by its name in full, is an emulator."""
    return name.startswith("emu")


def driver_of(name: str) -> Driver:
    """Return the driver of a device; it is started when it is first asked for.

    Parameters
    ----------
    name : str
        "cuda", "cuda0", "cuda1", ...; "emu", "emu1", ...: emulators, each with memory of its own.

    Raises
    ------
    ValueError
        If it is the name of no device.
    DeviceUnavailable
        If there is no such card, no driver of NVIDIA's, or no PyCUDA; the message says which.
    DeviceError
        If the process was forked from one that used a card.

    Examples
    --------
    >>> from symcomp.gpu.driver.devices import driver_of
    >>> driver_of("emu").name
    'emu'
    """
    name = name if name in _drivers else canonical(name)
    with _lock:
        if name not in _drivers:
            _keep(name, _start(name))
        process, driver = _drivers[name]
    if process != os.getpid() and not is_emulator(name):
        raise unavailable_in_fork(name)
    return driver


def _start(name: str) -> Driver:
    number = int(name.lstrip("cudaem") or 0)
    return Emulator(number=number) if is_emulator(name) else CudaDriver(number)


def set_driver(name: str, driver: Driver | None) -> Driver | None:
    """Use this driver for a device from now on, None: a new one; return the one that was used."""
    with _lock:
        before = _drivers.pop(canonical(name), (0, None))[1]
        DEVICE_STREAMS.pop(canonical(name), None)
        if driver is not None:
            _keep(canonical(name), driver)
    return before


def _keep(name: str, driver: Driver) -> None:
    _drivers[name], DEVICE_STREAMS[name] = (os.getpid(), driver), driver.queue


def device_names() -> list[str]:
    """Return the names of the devices that can be used here; the emulator comes last."""
    return [*(f"cuda{i}" for i in range(count_cards())), "emu"]
