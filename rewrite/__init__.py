"""Rewriting: replace a graph by an equal one that is stabler, smaller or faster.

A rule is a value (name, pattern, replacement, reason); an engine with a worklist applies rules,
and `phases` lists the rule sets in order: canonicalize, stabilize, specialize, fuse, blas, inplace.
"""
