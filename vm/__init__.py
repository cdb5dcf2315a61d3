"""The program and its reference machine: a rewritten graph becomes a flat list of instructions.

Order, storage slots, reuse, in-place updates and laziness are decided here and can be read in the
program's listing. The Python machine in this package is the specification of the native one.
"""
