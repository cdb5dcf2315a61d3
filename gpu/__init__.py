"""Devices: the types, ops, lowerings and rules that move work to cards, or to an emulator of cards.

Kernels are written as text without a device, so everything but running them works anywhere; the
device ``"emu"`` runs them with a C++ compiler.
"""

from symcomp.gpu.array import DeviceArray, from_dlpack, to_device
from symcomp.gpu.driver.devices import device_names, driver_of
from symcomp.gpu.errors import DeviceError, DeviceMemoryError, DeviceUnavailable
from symcomp.gpu.memory import memory_info, synchronize
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.rules import register
from symcomp.gpu.several import map
from symcomp.gpu.transfers import to_cpu, to_gpu
from symcomp.gpu.type import DeviceType, DeviceVariable

__all__ = [
    "DeviceArray", "DeviceError", "DeviceGraph", "DeviceMemoryError", "DeviceType",
    "DeviceUnavailable", "DeviceVariable", "device_names", "driver_of", "from_dlpack",
    "map", "memory_info", "synchronize", "to_cpu", "to_device", "to_gpu",
]  # fmt: skip

register()
