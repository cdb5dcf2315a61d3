"""Sparse matrices: compressed row and column types, their ops, derivatives and lowerings."""
