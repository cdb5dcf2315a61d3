"""The compiler of C: kernels in files, calls of the compiler, its cache, early and optimized code.

Nothing here reads or writes the text of a kernel; that of CUDA C is compiled in `gpu/driver`.
"""
