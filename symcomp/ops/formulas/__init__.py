"""Formulas: scalar functions and reductions as one list of steps, their op, and their evaluation.

Which nodes are fused is decided in `rewrite`; loops in C are written in `symcomp/codegen`.
"""
