"""``T.shared_randomstreams``: random numbers in Theano's manner."""

from symcomp.compile.random_state import RandomSharedVariable as RandomStateSharedVariable
from symcomp.compile.random_streams import RandomStreams
from symcomp.lazy import no_such_name

__all__ = ["RandomStateSharedVariable", "RandomStreams"]

__getattr__ = no_such_name(__name__)
