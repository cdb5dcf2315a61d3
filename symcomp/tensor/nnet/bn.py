"""``T.nnet.bn``: batch normalization."""

from symcomp.lazy import no_such_name
from symcomp.ops.nnet.normalization import *  # noqa: F403

__getattr__ = no_such_name(__name__)
