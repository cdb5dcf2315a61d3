"""``symcomp.sandbox.rng_mrg``: Theano's ``MRG_RandomStreams``."""

from symcomp.compile.random_streams import MRG_RandomStreams

__all__ = ["MRG_RandomStreams"]
