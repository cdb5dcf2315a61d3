"""``T.nnet.conv``: where Theano had ``conv2d`` first."""

from symcomp.lazy import no_such_name
from symcomp.ops.windows.convolve import conv2d as conv2d

__getattr__ = no_such_name(__name__)
