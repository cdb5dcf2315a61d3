"""``T.nnet``: softmax, activations and losses."""

from symcomp.ops.nnet import *  # noqa: F403
