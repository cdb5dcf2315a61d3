"""Canonical forms: the same values with fewer and simpler nodes. Nothing here turns a NaN or an
infinity into a number, or drops the check of a shape.
"""
