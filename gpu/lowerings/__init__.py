"""How ops are computed on devices, by class; ``contract.py`` says what a lowering is."""

from symcomp.gpu.lowerings.contract import DeviceLowering

__all__ = ["DeviceLowering"]
