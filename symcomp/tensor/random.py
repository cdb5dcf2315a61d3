"""``T.random``: streams of random numbers, and distributions as functions of a state."""

from symcomp.compile.random_streams import DISTRIBUTIONS, RandomStream
from symcomp.lazy import no_such_name
from symcomp.ops.random.draw import Draw
from symcomp.ops.random.state import RandomType, state

globals().update(DISTRIBUTIONS)

__all__ = ["Draw", "RandomStream", "RandomType", "state", *DISTRIBUTIONS]

__getattr__ = no_such_name(__name__)
