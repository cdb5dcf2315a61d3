"""Products, decompositions and equations of matrices, and their routines of BLAS and LAPACK.

The functions that users call are in `functions.py` (products), `decompositions.py`, `systems.py`
and `matrix_operations.py`; the other files have ops. Norms and sums along any axes are
`ops/reductions`; sparse matrices have a package of their own.
"""
