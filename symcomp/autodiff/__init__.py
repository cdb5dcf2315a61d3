"""Derivatives: the reverse walk (`grad`, `Lop`), the forward walk (`Rop`), and functions built on
them.
"""
