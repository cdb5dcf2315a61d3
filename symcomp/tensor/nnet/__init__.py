"""``T.nnet``: softmax, activations, losses, convolution, batch normalization."""

from symcomp.lazy import lazy_module, no_such_name
from symcomp.ops.nnet.classification import *  # noqa: F403
from symcomp.ops.nnet.functions import *  # noqa: F403
from symcomp.ops.nnet.normalization import *  # noqa: F403
from symcomp.ops.windows.convolve import *  # noqa: F403
from symcomp.ops.windows.neighbours import *  # noqa: F403
from symcomp.tensor.nnet import abstract_conv as abstract_conv
from symcomp.tensor.nnet import bn as bn
from symcomp.tensor.nnet import conv as conv
from symcomp.tensor.nnet import neighbours as neighbours

ctc = lazy_module("symcomp.tensor.nnet.ctc")

__getattr__ = no_such_name(__name__)
