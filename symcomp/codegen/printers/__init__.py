"""Printers: LoopIR as C, and the text of a C file with the headers that its kernels call.

What the C does is decided earlier, in schedules (`codegen/cpu`); CUDA C is printed in
`codegen/cuda`.
"""
