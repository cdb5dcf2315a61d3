"""Reductions over axes, cumulative functions along an axis, and statistics built on them.

Softmax and its relatives stand in `ops/nnet`, sorting and medians in `ops/sorting`.
"""
