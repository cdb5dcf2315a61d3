"""Kernels in CUDA C of products and of reading and writing at positions."""
