"""Products, decompositions and equations of matrices, and their routines of BLAS and LAPACK.

`functions.py` has the products and norms of `T`. Norms and sums along any axes are
`ops/reductions`; sparse matrices have a package of their own.
"""
