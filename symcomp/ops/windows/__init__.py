"""Windows that move over images: convolution, pooling and upsampling.

Convolution by Fourier transforms builds on `ops/fourier`.
"""
