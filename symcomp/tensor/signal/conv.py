"""``T.signal.conv``: convolution of planes."""

from symcomp.ops.windows.convolve import conv2d_of_planes as conv2d

__all__ = ["conv2d"]
