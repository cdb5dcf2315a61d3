"""``T.nnet.abstract_conv``: convolution and its adjoints."""

from symcomp.ops.windows.convolve import *  # noqa: F403
from symcomp.ops.windows.upsampling import *  # noqa: F403
