"""``T.signal.pool``: the largest number, the sum or the mean of each window."""

from symcomp.ops.windows.pool import (
    MaxPool,
    SumPool,
    max_pool_2d,
    max_pool_2d_same_size,
    pool_2d,
    pool_3d,
)

__all__ = ["MaxPool", "SumPool", "max_pool_2d", "max_pool_2d_same_size", "pool_2d", "pool_3d"]
