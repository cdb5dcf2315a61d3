"""``T.signal``: pooling, and convolution of arrays and planes."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.convolve_arrays import convolve
from symcomp.tensor.signal import conv, downsample, pool

__all__ = ["conv", "convolve", "downsample", "pool"]

__getattr__ = no_such_name(__name__)
