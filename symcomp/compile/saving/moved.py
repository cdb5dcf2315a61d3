"""Names that classes of ops and types had in files of earlier versions."""

# Modules of `symcomp.ops` that were moved into a folder: folder -> their names.
_FOLDERS = {
    "control": "debugging graph_op markers python_op",
    "elementwise": "elemwise plus_scalar",
    "formulas": "fused",
    "indexing": "diagonal gather_labels index index_pattern",
    "linalg": "blas cholesky contraction determinant eigen inverse lstsq lu matrices"
    " matrix_functions products qr schur solve stable_linalg svd sylvester tridiagonal",
    "lists": "typed_list",
    "nnet": "labels softmax",
    "reductions": "cumulative reduce stable_reduce",
    "shapes": "alloc contiguous creation dimshuffle join shape",
    "sorting": "sort",
}
#: Modules that were moved or renamed: old name -> name.
MOVED = {
    f"symcomp.ops.{name}": f"symcomp.ops.{folder}.{name}"
    for folder, names in _FOLDERS.items()
    for name in names.split()
} | {
    "symcomp.ops.control": "symcomp.ops.control.conditions",
    "symcomp.ops.extra": "symcomp.ops.shapes.contiguous",
    "symcomp.ops.fourier": "symcomp.ops.fourier.transforms",
    "symcomp.ops.pattern": "symcomp.ops.indexing.index_pattern",
    "symcomp.ops.pick": "symcomp.ops.indexing.gather_labels",
    "symcomp.sparse.draws": "symcomp.sparse.sampling",
    "symcomp.sparse.parts": "symcomp.sparse.slicing",
}  # fmt: skip
#: Classes that were renamed: module:old name -> name, the module being that of today.
RENAMED = {
    "symcomp.ops.indexing.gather_labels:Pick": "GatherLabels",
    "symcomp.ops.indexing.gather_labels:Put": "ScatterLabels",
    "symcomp.ops.nnet.softmax:Centred": "SubtractWeightedMean",
}


def current_name(module: str, name: str) -> tuple[str, str]:
    """Return the module and the name that a class has in this version."""
    module = MOVED.get(module, module)
    return module, RENAMED.get(f"{module}:{name}", name)
