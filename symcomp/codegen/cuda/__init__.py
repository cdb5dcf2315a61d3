"""The schedule of cards, from a nest to LoopIR, and LoopIR as CUDA C.

What an element takes is that of the processor's kernels (``codegen/cpu/bodies.py``), and so is its
text (``codegen/printers/c_text.py``): the loops differ, and who shares them.
"""
