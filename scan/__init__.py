"""Loops: an op that holds an inner graph and applies it step by step, with its derivatives."""
