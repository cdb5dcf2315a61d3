"""Code generation: formulas as loop nests, their loops as data, C, and the compiler with its cache.

`kernel.py` goes this way for one formula; `prebuilt.py` holds the kernels compiled when symcomp is
installed. All steps stand in folders.
"""
