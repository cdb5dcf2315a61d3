"""Sorting and searching along an axis: ops and functions.

Positions of one largest or smallest element are reductions, in `ops/reductions`.
"""
