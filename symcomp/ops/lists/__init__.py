"""Lists whose elements have one type: the type, its variables, ops and functions.

A Python list of variables is no typed list; `join` and `stack` take it, in `ops/shapes`.
"""
