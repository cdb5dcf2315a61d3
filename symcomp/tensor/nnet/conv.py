"""``T.nnet.conv``: where Theano had ``conv2d`` first."""

from symcomp.ops.windows.convolve import conv2d as conv2d
