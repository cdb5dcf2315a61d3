"""Ops that decide or show which part of a graph runs, and ops whose body is a graph or Python code.

Loops have a package of their own, `scan`; choices among elements (`switch`) are scalar functions.
"""
