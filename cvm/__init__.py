"""The native machine: runs a program without holding the GIL.

It has the same instructions as the Python machine of `symcomp.vm` and gives the same results;
arrays inside a program are native buffers, and become NumPy arrays at the edges.
"""
