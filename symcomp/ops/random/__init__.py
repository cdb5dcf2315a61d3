"""Random numbers: the state of a stream, draws from it, and distributions built from them.

Densities and distribution functions are scalar functions, in `ops/elementwise`.
"""
