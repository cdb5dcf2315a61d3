"""``T.signal``: pooling, and convolution of planes."""

from symcomp.lazy import no_such_name
from symcomp.tensor.signal import conv, downsample, pool

__all__ = ["conv", "downsample", "pool"]

__getattr__ = no_such_name(__name__)
