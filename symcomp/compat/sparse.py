"""Differences between ``theano.sparse`` and ``symcomp.sparse``, and its classes of ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp.sparse as sparse
from symcomp.autodiff.lop import Lop
from symcomp.compat.op_classes import OpClass
from symcomp.compile.random_streams import RandomStreams
from symcomp.core.sparse_values import is_sparse_value
from symcomp.core.tensor import TensorVariable
from symcomp.sparse import convert, pairwise, products, reductions, structure, with_dense
from symcomp.sparse.components import Assemble, Components

Function = Callable[..., Any]
_variable = sparse.as_sparse_or_tensor_variable

DTYPES: dict[str, list[str]] = {
    "complex_dtypes": ["complex64", "complex128"],
    "float_dtypes": ["float32", "float64"],
    "int_dtypes": ["int8", "int16", "int32", "int64"],
    "uint_dtypes": ["uint8", "uint16", "uint32", "uint64"],
}
DTYPES["integer_dtypes"] = DTYPES["int_dtypes"] + DTYPES["uint_dtypes"]
DTYPES["discrete_dtypes"] = DTYPES["integer_dtypes"]
DTYPES["continuous_dtypes"] = DTYPES["float_dtypes"] + DTYPES["complex_dtypes"]
DTYPES["all_dtypes"] = DTYPES["discrete_dtypes"] + DTYPES["continuous_dtypes"]


def _comparison(function: Function) -> Function:
    """Wrap a comparison to return dtype uint8, as Theano's do."""

    def compare(x: Any, y: Any) -> Any:
        z = function(x, y)
        return sparse.cast(z, "uint8") if sparse.is_sparse_variable(z) else z.astype("uint8")

    compare.__name__ = function.__name__
    return compare


#: Theano's name of a comparison -> symcomp's.
_WORDS = {
    "equal": "eq", "not_equal": "neq", "less_than": "lt", "greater_than": "gt",
    "less_equal": "le", "greater_equal": "ge",
}  # fmt: skip
COMPARISONS = {short: _comparison(getattr(sparse, short)) for short in _WORDS.values()}
COMPARISONS |= {
    f"{word}_s_{kind}": COMPARISONS[short] for word, short in _WORDS.items() for kind in "sd"
}


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Join matrices side by side, as CSC unless a format is given."""
    return sparse.hstack(blocks, format or "csc", dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Join matrices one below the other, as CSC unless a format is given."""
    return sparse.vstack(blocks, format or "csc", dtype)


def construct_sparse_from_list(x: Any, values: Any, ilist: Any) -> Any:
    """Return a CSC matrix of the shape of ``x`` with the rows of ``values`` at ``ilist``."""
    return sparse.construct_sparse_from_list(x, values, ilist).tocsc()


def csm_grad(kmap: Any = None) -> Function:
    """Return the gradient of the data of a matrix: the entries of another one at its pattern."""
    _refuse_map("CSMGrad", kmap)

    def grad(data: Any, indices: Any, indptr: Any, shape: Any, *g: Any) -> Any:
        data = _variable(data)
        return Lop(sparse.CSR(data, indices, indptr, shape), data, sparse.CSR(*g))

    return grad


def _refuse_map(name: str, kmap: Any) -> None:
    if kmap is not None:
        raise NotImplementedError(f"theano.sparse.{name}: kmap, which Theano took out itself")


def _csm(format: str, kmap: Any = None) -> Function:
    _refuse_map("CSM", kmap)
    return sparse.CSM(format)


def _csm_properties(kmap: Any = None) -> Function:
    _refuse_map("CSMProperties", kmap)
    return sparse.csm_properties


def get_item_list_grad(x: Any, index: Any, gz: Any) -> Any:
    """Return the gradient of ``get_item_list``, given that of its result, ``gz``."""
    x = sparse.as_sparse_variable(x)
    return Lop(sparse.get_item_list(x, index), x, _variable(gz))


def get_item_2lists_grad(x: Any, ind1: Any, ind2: Any, gz: Any) -> Any:
    """Return the gradient of ``get_item_2lists``, given that of its result, ``gz``."""
    x = sparse.as_sparse_variable(x)
    return Lop(sparse.get_item_2lists(x, ind1, ind2), x, _variable(gz))


def structured_dot_grad(sparse_A: Any, dense_B: Any, ga: Any) -> Any:
    """Return the gradient of ``structured_dot`` with respect to the sparse matrix, given that of
    the product, ``ga``.
    """
    return Lop(sparse.structured_dot(sparse_A, dense_B), sparse_A, _variable(ga))


def sdg_csr(a_indices: Any, a_indptr: Any, b: Any, g_ab: Any) -> Any:
    """Return the data of ``structured_dot_grad`` of a CSR matrix."""
    return products.SampledDot()(*map(_variable, (a_indices, a_indptr, g_ab, b)))


def sdg_csc(a_indices: Any, a_indptr: Any, b: Any, g_ab: Any) -> Any:
    """Return the data of ``structured_dot_grad`` of a CSC matrix."""
    return products.SampledDot()(*map(_variable, (a_indices, a_indptr, b, g_ab)))


def _is_sparse(x: Any) -> bool:
    """Tell whether an object is a sparse value of SciPy."""
    return is_sparse_value(x)


def _is_sparse_variable(x: Any) -> bool:
    """Tell whether an object is a sparse variable."""
    return sparse.is_sparse_variable(x)


def _is_dense(x: Any) -> bool:
    """Tell whether an object is an array."""
    return isinstance(x, np.ndarray)


def _is_dense_variable(x: Any) -> bool:
    """Tell whether an object is a tensor variable."""
    return isinstance(x, TensorVariable)


# -- draws, which take no state in Theano


def _stream() -> Any:
    """Return a stream seeded by ``numpy.random.seed``, as Theano's draws are."""
    return RandomStreams(int(np.random.randint(2**31 - 1)))


def poisson(x: Any) -> Any:
    """Draw Poisson numbers with the entries of ``x`` as means."""
    return _stream().gen(sparse.poisson, x)


def multinomial(n: Any, p: Any) -> Any:
    """Draw how many of ``n`` trials have each outcome, with the probabilities in the rows of ``p``.
    """
    return _stream().gen(sparse.multinomial, n, p)


def _binomial(format: str, dtype: str) -> Function:
    def binomial(n: Any, p: Any, shape: Any) -> Any:
        return _stream().gen(sparse.binomial, n, p, shape, format, dtype)

    return binomial


# -- classes of ops


def _no_parameters(function: Function) -> Function:
    return lambda: function


def _in_format(function: Function) -> Function:
    """Return the constructor of a stack: its format and dtype."""
    return lambda format=None, dtype=None: lambda *blocks: function(blocks, format, dtype)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda op: isinstance(op, kinds)


def _nothing(op: Any) -> bool:
    return False


def _joins(axis: int) -> Callable[[Any], bool]:
    return lambda op: isinstance(op, sparse.JoinSparse) and op.axis == axis


#: Name -> constructor, and the test for instances.
_TABLE: dict[str, tuple[Function, Callable[[Any], bool]]] = {
    "AddSD": (_no_parameters(sparse.add_s_d), _nothing),
    "AddSS": (_no_parameters(sparse.add_s_s), _is(pairwise.AddSS)),
    "AddSSData": (_no_parameters(sparse.add_s_s_data), _nothing),
    "Binomial": (_binomial, _nothing),
    "Cast": (lambda out_type: lambda x: sparse.cast(x, out_type), _is(sparse.Cast)),
    "ColScaleCSC": (_no_parameters(sparse.col_scale), _nothing),
    "ConstructSparseFromList": (_no_parameters(construct_sparse_from_list), _nothing),
    "CSM": (_csm, _is(Assemble)),
    "CSMGrad": (csm_grad, _nothing),
    "CSMProperties": (_csm_properties, _is(Components)),
    "DenseFromSparse": (
        lambda structured=True: lambda x: sparse.dense_from_sparse(x, structured),
        _is(convert.DenseFromSparse),
    ),
    "Diag": (_no_parameters(sparse.diag), _nothing),
    "Dot": (_no_parameters(sparse.dot), _is(products.CompressedDot)),
    "EnsureSortedIndices": (lambda inplace=False: sparse.ensure_sorted_indices, _nothing),
    "GetItem2d": (_no_parameters(sparse.get_item_2d), _nothing),
    "GetItem2Lists": (_no_parameters(sparse.get_item_2lists), _is(structure.TakePairs)),
    "GetItem2ListsGrad": (_no_parameters(get_item_2lists_grad), _nothing),
    "GetItemList": (_no_parameters(sparse.get_item_list), _is(structure.TakeRows)),
    "GetItemListGrad": (_no_parameters(get_item_list_grad), _is(structure.PutRows)),
    "GetItemScalar": (_no_parameters(sparse.get_item_scalar), _nothing),
    "HStack": (_in_format(hstack), _joins(1)),
    "Multinomial": (_no_parameters(multinomial), _nothing),
    "MulSD": (_no_parameters(sparse.mul_s_d), _is(with_dense.MulSD)),
    "MulSS": (_no_parameters(sparse.mul_s_s), _is(pairwise.MulSS)),
    "MulSV": (_no_parameters(sparse.mul_s_v), _nothing),
    "Neg": (_no_parameters(sparse.neg), _is(structure.Neg)),
    "Poisson": (_no_parameters(poisson), _nothing),
    "Remove0": (lambda inplace=False: sparse.remove0, _is(structure.Remove0)),
    "RowScaleCSC": (_no_parameters(sparse.row_scale), _nothing),
    "SamplingDot": (_no_parameters(sparse.sampling_dot), _nothing),
    "SparseFromDense": (
        lambda format: {"csr": sparse.csr_from_dense, "csc": sparse.csc_from_dense}[format],
        _is(convert.SparseFromDense),
    ),
    "SpSum": (
        lambda axis=None, sparse_grad=True: lambda x: sparse.sp_sum(x, axis, sparse_grad),
        _is(reductions.SpSum),
    ),
    "SquareDiagonal": (_no_parameters(sparse.square_diagonal), _nothing),
    "StructuredAddSV": (_no_parameters(sparse.structured_add_s_v), _nothing),
    "StructuredDot": (_no_parameters(sparse.structured_dot), _is(products.CompressedDot)),
    "StructuredDotGradCSC": (_no_parameters(sdg_csc), _is(products.SampledDot)),
    "StructuredDotGradCSR": (_no_parameters(sdg_csr), _is(products.SampledDot)),
    "Transpose": (_no_parameters(sparse.transpose), _is(structure.Transpose)),
    "TrueDot": (
        lambda grad_preserves_dense=True: lambda x, y: sparse.true_dot(x, y, grad_preserves_dense),
        _is(products.TrueDot),
    ),
    "Usmm": (_no_parameters(sparse.usmm), _nothing),
    "VStack": (_in_format(vstack), _joins(0)),
}
for _word, _short in _WORDS.items():
    for _kind in ("SS", "SD"):
        _name = _word.title().replace("_", "") + _kind
        _TABLE[_name] = (_no_parameters(COMPARISONS[_short]), _nothing)

#: Theano's classes of sparse ops.
OP_CLASSES = {
    name: OpClass(name, make, is_one, package="theano.sparse")
    for name, (make, is_one) in _TABLE.items()
}

#: Names of ``theano.sparse.sandbox.sp2`` that ``theano.sparse`` lacks.
DRAWS = {
    "multinomial": multinomial,
    "poisson": poisson,
    **{name: OP_CLASSES[name] for name in ("Binomial", "Multinomial", "Poisson")},
    **{
        f"{format}_{letter}binomial": _binomial(format, dtype)
        for format in ("csc", "csr")
        for letter, dtype in (("d", "float64"), ("f", "float32"))
    },
}

#: The names of ``theano.sparse`` that differ from those of ``symcomp.sparse``.
SPARSE: dict[str, Any] = {
    **{name: kind for name, kind in OP_CLASSES.items() if name not in DRAWS},
    **COMPARISONS,
    **{name: list(dtypes) for name, dtypes in DTYPES.items()},
    "as_sparse": sparse.as_sparse_variable,
    "construct_sparse_from_list": construct_sparse_from_list,
    "csm_grad": csm_grad,
    "enable_sparse": True,
    "get_item_2lists_grad": get_item_2lists_grad,
    "get_item_list_grad": get_item_list_grad,
    "hstack": hstack,
    "sdg_csc": sdg_csc,
    "sdg_csr": sdg_csr,
    "sparse_formats": ["csc", "csr"],
    "structured_dot_grad": structured_dot_grad,
    "vstack": vstack,
}
PRIVATE = {
    "_is_dense": _is_dense,
    "_is_dense_variable": _is_dense_variable,
    "_is_sparse": _is_sparse,
    "_is_sparse_variable": _is_sparse_variable,
}
SHARED = {
    "SparseTensorSharedVariable": sparse.SparseSharedVariable,
    "sparse_constructor": sparse.shared,
}
