"""Scalar functions in C: the headers, their tables, and the C expression of each row of scalar ops.

Loops around these functions stand in `codegen/loops`, their NumPy routines in `ops/numerics`.
"""
