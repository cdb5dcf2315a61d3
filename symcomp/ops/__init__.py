"""Ops: what a node may compute. Each states its types, shapes, NumPy meaning and derivatives."""
