"""CUDA: the types, ops, lowerings and rules that move work to a graphics card.

Kernels are rendered as text without a device, so everything but running them works anywhere.
"""
