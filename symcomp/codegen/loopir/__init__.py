"""LoopIR: the loops of kernels as data, with a verifier and an interpreter.

Schedules (``codegen/cpu``) build it from nests, printers (``codegen/printers/c_printer.py``) write
it as text.
"""
