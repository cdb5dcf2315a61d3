"""``T.signal.downsample``: where Theano had pooling first."""

from symcomp.ops.windows.pool import max_pool_2d, max_pool_2d_same_size

__all__ = ["max_pool_2d", "max_pool_2d_same_size"]
