"""Names that classes of ops and types had in files of earlier versions."""

# Modules of `symcomp.ops` that were moved into a folder: folder -> their names.
_FOLDERS = {
    "control": "debugging graph_op markers python_op",
    "elementwise": "elemwise plus_scalar",
    "formulas": "fused",
    "indexing": "diagonal gather_labels index index_pattern",
    "linalg": "blas cholesky contraction determinant eigen inverse lstsq lu matrices"
    " matrix_functions products qr schur solve stable_linalg svd sylvester tridiagonal",
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
#: Classes that were renamed, or moved without their module: module of MOVED and old name -> name.
RENAMED = {
    "symcomp.ops.convert:Stack": "symcomp.ops.shapes.stack:Stack",
    "symcomp.ops.indexing.gather_labels:Pick": "symcomp.ops.indexing.gather_labels:GatherLabels",
    "symcomp.ops.indexing.gather_labels:Put": "symcomp.ops.indexing.gather_labels:ScatterLabels",
    "symcomp.ops.nnet.softmax:Centred": "symcomp.ops.nnet.softmax:SubtractWeightedMean",
    "symcomp.ops.sorting.sort:ArgTopK": "symcomp.ops.sorting.topk:ArgTopK",
}


def current_name(name: str) -> str:
    """Return the name that a class, "module:class" in a file, has in this version."""
    module, colon, short = name.partition(":")
    name = MOVED.get(module, module) + colon + short
    return RENAMED.get(name, name)
