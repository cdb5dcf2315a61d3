"""Discrete Fourier transforms: the ops, which do not scale, and the functions of `T.fft`.

Convolution of images stands in `ops/windows`.
"""
