"""LoopIR: the loops of kernels as data, with a verifier and an interpreter.

Schedules (``codegen/cpu``) make it of nests, printers (``codegen/c_printer.py``) write it as text.
"""
