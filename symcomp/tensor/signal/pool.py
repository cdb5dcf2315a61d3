"""``T.signal.pool``: the largest number, the sum or the mean of each window."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.pool import (
    MaxPool,
    SumPool,
    max_pool_2d,
    max_pool_2d_same_size,
    pool_2d,
    pool_3d,
)

__all__ = ["MaxPool", "SumPool", "max_pool_2d", "max_pool_2d_same_size", "pool_2d", "pool_3d"]

__getattr__ = no_such_name(__name__)
