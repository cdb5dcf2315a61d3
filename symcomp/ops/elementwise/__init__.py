"""Scalar functions applied to every element: the op, the table of functions, one file per subject.

Their NumPy routines stand in `ops/numerics`, fused groups of them in `ops/formulas`, their C in
`symcomp/codegen`.
"""
