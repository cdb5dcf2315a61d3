"""``T.fft``: Fourier transforms; ``rfft`` and ``irfft`` as Theano's, the others as NumPy's."""

from symcomp.ops.fft import *  # noqa: F403
