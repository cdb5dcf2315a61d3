"""Loop nests: formulas as passes over elements, and the headers with the loops that kernels share.

Functions of one element stand in `codegen/functions`; loops as data, which a schedule builds from a
nest, in `codegen/loopir`.
"""
