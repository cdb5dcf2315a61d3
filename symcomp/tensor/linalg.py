"""``T.linalg``: all of ``T.nlinalg`` and ``T.slinalg``."""

from symcomp.lazy import no_such_name
from symcomp.tensor.nlinalg import *  # noqa: F403
from symcomp.tensor.slinalg import *  # noqa: F403

__getattr__ = no_such_name(__name__)
