"""Shapes as values, and functions that make, rearrange, join or repeat tensors by shape alone.

Nothing here computes with elements; parts chosen by indices stand in `ops/indexing`.
"""
