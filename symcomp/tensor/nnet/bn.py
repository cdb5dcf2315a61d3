"""``T.nnet.bn``: batch normalization."""

from symcomp.ops.normalization import *  # noqa: F403
