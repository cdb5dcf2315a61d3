"""Reading and writing parts of tensors: index expressions, diagonals, arithmetic on indices.

The functions that users call are in `subtensors.py`, `diagonals.py` and `gather.py`. Positions from
comparing elements (argsort, searchsorted) stand in `ops/sorting`, those of extremes in
`ops/reductions`.
"""
