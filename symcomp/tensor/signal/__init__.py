"""``T.signal``: pooling, and convolution of planes."""

from symcomp.tensor.signal import conv, downsample, pool

__all__ = ["conv", "downsample", "pool"]
