"""``T.signal.conv``: convolution of planes."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.convolve import conv2d_of_planes as conv2d

__all__ = ["conv2d"]

__getattr__ = no_such_name(__name__)
