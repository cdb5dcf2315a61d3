"""``T.signal.downsample``: where Theano had pooling first."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.pool import max_pool_2d, max_pool_2d_same_size

__all__ = ["max_pool_2d", "max_pool_2d_same_size"]

__getattr__ = no_such_name(__name__)
