"""``T.inplace``: in-place variants of the scalar functions."""

from symcomp.ops.inplace import *  # noqa: F403
