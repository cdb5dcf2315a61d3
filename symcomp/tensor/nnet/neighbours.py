"""``T.nnet.neighbours``: parts of images as rows of a matrix."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.neighbours import *  # noqa: F403

__getattr__ = no_such_name(__name__)
