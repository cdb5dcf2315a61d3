"""``T.shared_randomstreams``: random numbers in Theano's manner."""

from symcomp.compile.random_state import RandomSharedVariable as RandomStateSharedVariable
from symcomp.compile.random_streams import RandomStreams

__all__ = ["RandomStateSharedVariable", "RandomStreams"]
