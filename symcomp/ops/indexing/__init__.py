"""Reading and writing parts of tensors: index expressions, diagonals, arithmetic on indices.

Positions from comparing elements (argsort, searchsorted) stand in `ops/sorting`, those of extremes
in `ops/reductions`.
"""
