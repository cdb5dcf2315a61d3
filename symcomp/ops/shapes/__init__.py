"""Shapes as values, and functions that make, rearrange, join or repeat tensors by shape alone.

The functions that users call are in `axes.py`, `creation.py`, `filled.py`, `joining.py`,
`repeat.py` and `reshaping.py`. Nothing here computes with elements; parts chosen by indices stand
in `ops/indexing`.
"""
