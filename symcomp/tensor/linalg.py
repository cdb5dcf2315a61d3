"""``T.linalg``: all of ``T.nlinalg`` and ``T.slinalg``."""

from symcomp.tensor.nlinalg import *  # noqa: F403
from symcomp.tensor.slinalg import *  # noqa: F403
