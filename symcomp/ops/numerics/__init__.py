"""Routines on NumPy arrays that keep the last digits, for the `perform` of ops.

They know arrays alone: no op, variable or type belongs here. Routines for matrices stand in
`ops/linalg`.
"""
