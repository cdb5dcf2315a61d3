"""``T.inplace``: in-place variants of the scalar functions."""

from symcomp.lazy import no_such_name
from symcomp.ops.elementwise.inplace import *  # noqa: F403

__getattr__ = no_such_name(__name__)
