"""Numerically stable forms: the same mathematics, computed without loss of digits or overflow.

Each module holds the rules for one kind of expression. They read sums and products as views (see
``views.py``), so that they need no canonical form, and serve twice: in compiled functions, and
before differentiation, so that derivatives are those of the stable form.
"""
