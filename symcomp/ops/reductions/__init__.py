"""Reductions over axes, cumulative functions along an axis, and statistics built on them.

The functions that users call are in `functions.py`, `accumulated.py` and `statistics.py`. Softmax
and its relatives stand in `ops/nnet`, sorting and medians in `ops/sorting`.
"""
