"""Canonical forms: the same values with fewer and simpler nodes. No rule here turns NaN or infinity
into a number, or drops the check of a shape.
"""
