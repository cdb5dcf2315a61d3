"""``T.nnet``: softmax, activations, losses, convolution, batch normalization."""

from symcomp.ops.nnet import *  # noqa: F403
from symcomp.ops.windows.convolve import *  # noqa: F403
