"""The ops, and the functions that apply them, one folder per subject. Each op states its types,
shapes, NumPy meaning and derivatives. Beside the folders stand the conversion of Python values to
variables, the operators of variables, and typed lists; an op on tensors belongs into a folder.
"""
