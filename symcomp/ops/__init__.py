"""The ops, and the functions that apply them, one folder per subject. Each op states its types,
shapes, NumPy meaning and derivatives. Beside the folders stand the conversion of Python values to
variables, and the operators of variables; an op itself belongs into a folder.
"""
