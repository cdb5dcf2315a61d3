"""The ops, and the functions that apply them. Each op states its types, shapes, NumPy meaning and
derivatives.
"""
