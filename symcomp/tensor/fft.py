"""``T.fft``: Fourier transforms; ``rfft`` and ``irfft`` as Theano's, the others as NumPy's."""

from symcomp.lazy import no_such_name
from symcomp.ops.fourier.functions import *  # noqa: F403

__getattr__ = no_such_name(__name__)
