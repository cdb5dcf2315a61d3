"""Kernels in CUDA C that are no formulas: products, convolution, pooling, sorting, positions."""
