"""Sorting and searching along an axis: ops, and in `functions.py` the functions that users call.

Positions of one largest or smallest element are reductions, in `ops/reductions`.
"""
