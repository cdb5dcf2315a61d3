"""Theano's classes of ops with constructors of other forms: ``Softmax()(x)``, ``Join()(0, x, y)``.

Each takes the parameters of Theano's constructor, and returns a function of variables. An op of
symcomp that equals one of Theano is an instance of its class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

import symcomp.tensor as T
from symcomp.compat import blocksparse, conv_op, convolutions
from symcomp.compat import nnet as old_nnet
from symcomp.compat import tensor as differing
from symcomp.compat.missing import Missing, StandIn
from symcomp.compat.own_elemwise import OwnElemwise, elementwise
from symcomp.compat.scalars import as_row
from symcomp.compat.symbolic_axis import SYMBOLIC_AXES
from symcomp.ops.control.conditions import IfElse, ifelse
from symcomp.ops.nnet import functions as nnet
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.ops.reductions.cumulative import CumOp
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce
from symcomp.ops.shapes.join import Join, Split
from symcomp.ops.shapes.repeat import repeat
from symcomp.ops.shapes.shape import normalize_axes
from symcomp.ops.shapes.stack import Stack

Test = Callable[[Any], bool]
#: Packages of Theano, and the modules whose ``OP_CLASSES`` holds their classes.
_HOMES = {"theano.sparse": "symcomp.compat.sparse", "theano.tensor": __name__}


class OpClass(StandIn):
    """A class of ops of Theano: its constructor, and the test for its instances.

    ``package`` is that of Theano which has it.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        is_one: Test,
        base: type | None = None,
        package: str = "theano.tensor",
    ) -> None:
        super().__init__(name, base)
        self._make, self._is_one, self._package = make, is_one, package

    def __call__(self, *parameters: Any, **named: Any) -> Any:
        made = self._make(*parameters, **named)
        if not isinstance(made, FunctionType):
            return made
        bound = inspect.signature(self._make).bind(*parameters, **named)
        bound.apply_defaults()
        place = self._package, self._path
        return Made(place, parameters, named, made, bound.arguments)

    def __instancecheck__(self, instance: Any) -> bool:
        if isinstance(instance, Made):
            return instance.made_by == (self._package, self._path)
        return self._is_one(instance)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        if self._base is not None:
            return (self._base,)
        path = f"{self._package}.{self._path}, as a class to derive from,"
        return Missing(path).__mro_entries__(bases)


class Made:
    """The result of a constructor: a function of variables, with the parameters as attributes."""

    def __init__(
        self,
        made_by: tuple[str, str],
        parameters: tuple[Any, ...],
        named: dict[str, Any],
        function: Callable[..., Any],
        attributes: dict[str, Any],
    ) -> None:
        self.__dict__.update(attributes)
        self.made_by, self._parameters, self._named = made_by, parameters, named
        self._function = function

    def __call__(
        self, *inputs: Any, return_list: bool = False, name: str | None = None, **named: Any
    ) -> Any:
        found = self._function(*inputs, **named)
        if name is not None:
            found.name = name
        several = list(found) if isinstance(found, list | tuple) else [found]
        return several if return_list else found

    def make_node(self, *inputs: Any) -> Any:
        """Return the node that computes the (first) result."""
        return self(*inputs, return_list=True)[0].owner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Made) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self.made_by)

    def _key(self) -> Any:
        return self.made_by, self._parameters, self._named

    def __repr__(self) -> str:
        given = [*map(repr, self._parameters), *(f"{k}={v!r}" for k, v in self._named.items())]
        return f"{self.made_by[1]}({', '.join(given)})"

    def __reduce__(self) -> Any:
        return _again, self._key()


def _again(made_by: tuple[str, str], parameters: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a constructor again; the results of constructors are pickled this way."""
    package, name = made_by
    return import_module(_HOMES[package]).OP_CLASSES[name](*parameters, **named)


def _all_of(*kinds: type) -> Test:
    return lambda op: isinstance(op, kinds)


def _reduction(name: str) -> Test:
    return lambda op: isinstance(op, Reduce) and op.reduction.name == name


def _nothing(op: Any) -> bool:
    return False


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the constructor of a reduction: its axis and, for sums and products, its dtypes."""

    def make(axis: Any = None, *dtypes: Any, **named: Any) -> Callable[..., Any]:
        given = dict(zip(("dtype", "acc_dtype"), dtypes, strict=False)) | named
        return lambda x: function(x, axis=axis, **given)

    return make


#: The reductions of ``CAReduce``, by the scalar function that combines two elements.
_BY_SCALAR = {
    "add": "sum", "and_": "bitwise_and", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "logical_and": "all", "logical_or": "any", "maximum": "max",
    "minimum": "min", "mul": "prod", "or_": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip


def _reduced_by(scalar_op: Any, axis: Any = None) -> Callable[..., Any]:
    """Return the constructor CAReduce; its result has the dtype of its operand."""
    name = as_row(scalar_op).name
    if name not in _BY_SCALAR:
        raise NotImplementedError(f"theano.tensor.elemwise.CAReduce of {name}")
    reduction = REDUCTIONS[_BY_SCALAR[name]]

    def reduce(x: Any) -> Any:
        x = T.as_tensor_variable(x)
        dtype = None if reduction.logical else x.dtype
        return Reduce(reduction, normalize_axes("CAReduce", axis, x.ndim), dtype)(x)

    return reduce


def _product_without_zeros(x: Any, **given: Any) -> Any:
    x = T.as_tensor_variable(x)
    return T.prod(T.switch(T.eq(x, 0), T.ones_like(x), x), **given)


def _no_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda: function


def _if_else(
    n_outs: int, as_view: bool = False, gpu: bool = False, name: str | None = None
) -> Callable[..., Any]:
    def choose(condition: Any, *branches: Any) -> Any:
        if n_outs == 1:
            return ifelse(condition, branches[0], branches[1], name)
        return ifelse(condition, list(branches[:n_outs]), list(branches[n_outs:]), name)

    return choose


def _written(inplace: bool = False, set_instead_of_inc: bool = False) -> Callable[..., Any]:
    """Construct AdvancedIncSubtensor; in-place variants give the same value."""
    write = T.set_subtensor if set_instead_of_inc else T.inc_subtensor
    return lambda x, y, *index: write(x[index], y)


def _solve(
    A_structure: str = "general",
    lower: bool = False,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
) -> Callable[..., Any]:
    known = {
        "general": "gen",
        "symmetric": "sym",
        "lower_triangular": "lower triangular",
        "upper_triangular": "upper triangular",
    }
    if A_structure not in known:
        raise ValueError(f"Solve: A_structure={A_structure!r}: must be one of {', '.join(known)}")
    return lambda A, b: T.slinalg.solve(A, b, known[A_structure])


def _by_index(idx_list: Any, *parameters: Any, **named: Any) -> Any:
    raise NotImplementedError("theano.tensor.Subtensor, as a constructor: write x[index]")


# Name -> constructor, and the test for instances.
_TABLE: dict[str, tuple[Callable[..., Any], Test]] = {
    "AdvancedIncSubtensor": (_written, _nothing),
    "AdvancedIncSubtensor1": (_written, _nothing),
    "AdvancedSubtensor": (lambda: lambda x, *index: x[index], _nothing),
    "AdvancedSubtensor1": (lambda: lambda x, index: x[index], _nothing),
    **{
        f"{name}{suffix}": (make(n, which), _nothing)
        for n, name, make in (
            (2, "AbstractConv2d", convolutions.convolution),
            (3, "AbstractConv3d", convolutions.convolution),
            (2, "CorrMM", convolutions.correlation),
            (3, "Corr3dMM", convolutions.correlation),
        )
        for suffix, which in {
            "": "",
            "_gradInputs": "_grad_wrt_inputs",
            "_gradWeights": "_grad_wrt_weights",
        }.items()
    },
    "Bartlett": (_no_parameters(T.bartlett), _nothing),
    "Choose": (lambda mode="raise": lambda a, choices: T.choose(a, choices, mode), _nothing),
    "AveragePoolGrad": (convolutions.average_pool_grad, _nothing),
    "All": (_reduced(T.all), _reduction("all")),
    "AllocDiag": (
        lambda offset=0, axis1=0, axis2=1: lambda v: T.alloc_diag(v, offset, axis1, axis2),
        _nothing,
    ),
    "AllocEmpty": (lambda dtype: lambda *shape: T.empty(shape, dtype), _nothing),
    "Alloc": (_no_parameters(T.alloc), _all_of(T.Alloc)),
    "Any": (_reduced(T.any), _reduction("any")),
    "ArgSortOp": (
        lambda kind="quicksort", order=None: (
            lambda x, axis=-1: SYMBOLIC_AXES["argsort"](x, axis, kind, order)
        ),
        _nothing,
    ),
    "ARange": (
        lambda dtype: lambda start, stop, step: T.arange(start, stop, step, dtype),
        _nothing,
    ),
    "Argmax": (lambda axis: lambda x: T.argmax(x, axis), _nothing),
    "CAReduce": (_reduced_by, _all_of(Reduce)),
    "CumOp": (
        lambda axis=None, mode="add": lambda x: {"add": T.cumsum, "mul": T.cumprod}[mode](x, axis),
        _all_of(CumOp),
    ),
    "CrossentropyCategorical1Hot": (
        _no_parameters(T.nnet.crossentropy_categorical_1hot),
        _nothing,
    ),
    "CrossentropySoftmax1HotWithBiasDx": (
        lambda **of_c_code: old_nnet.crossentropy_softmax_1hot_with_bias_dx,
        _nothing,
    ),
    "CrossentropySoftmaxArgmax1HotWithBias": (
        lambda **of_c_code: T.nnet.crossentropy_softmax_argmax_1hot_with_bias,
        _nothing,
    ),
    "ConnectionistTemporalClassification": (
        lambda compute_grad=True, openmp=None: T.nnet.ctc.ctc,
        _nothing,
    ),
    "ConvOp": (conv_op.conv_op, _all_of(conv_op.ConvOp)),
    "CumprodOp": (lambda axis=None: lambda x: T.cumprod(x, axis), _nothing),
    "CumsumOp": (lambda axis=None: lambda x: T.cumsum(x, axis), _nothing),
    "DiffOp": (lambda n=1, axis=-1: lambda x: T.diff(x, n, axis), _nothing),
    "DimShuffle": (
        lambda input_broadcastable, new_order, inplace=True: lambda x: T.dimshuffle(x, *new_order),
        _all_of(T.DimShuffle),
    ),
    "Dot": (_no_parameters(T.dot), _all_of(T.Dot)),
    "FillDiagonal": (_no_parameters(T.fill_diagonal), _nothing),
    "FillDiagonalOffset": (_no_parameters(T.fill_diagonal_offset), _nothing),
    "Elemwise": (elementwise, _all_of(T.Elemwise, OwnElemwise)),
    "ExtractDiag": (
        lambda offset=0, axis1=0, axis2=1, view=False: (
            lambda x: T.diagonal(x, offset, axis1, axis2)
        ),
        _nothing,
    ),
    "Eig": (_no_parameters(T.nlinalg.eig), _nothing),
    "Eigh": (lambda UPLO="L": lambda x: T.nlinalg.eigh(x, UPLO), _nothing),
    "Eye": (lambda dtype=None: lambda n, m, k: T.eye(n, m, k, dtype), _nothing),
    "Flatten": (lambda outdim=1: lambda x: T.flatten(x, outdim), _nothing),
    "Images2Neibs": (convolutions.images_to_neighbours, _nothing),
    "IfElse": (_if_else, _all_of(IfElse)),
    "IncSubtensor": (_by_index, _all_of(T.IncSubtensor)),
    "Join": (lambda view=-1: SYMBOLIC_AXES["join"], _all_of(Join)),
    "LogSoftmax": (_no_parameters(old_nnet.logsoftmax), _all_of(LogSoftmax)),
    "lstsq": (_no_parameters(T.nlinalg.lstsq), _nothing),
    "MakeVector": (
        lambda dtype="int64": lambda *xs: T.cast(differing.make_vector(*xs), dtype),
        _all_of(Stack),
    ),
    "MaxAndArgmax": (lambda axis: lambda x: T.max_and_argmax(x, axis), _nothing),
    "Mean": (_reduced(T.mean), _nothing),
    "MaxPoolGrad": (convolutions.max_pool_grad, _nothing),
    "PermuteRowElements": (_no_parameters(T.permute_row_elements), _nothing),
    "Pool": (convolutions.pool, _nothing),
    "Prepend_scalar_constant_to_each_row": (
        lambda val=0: lambda mat: old_nnet.prepend_to_each_row(val, mat),
        _nothing,
    ),
    "Prepend_scalar_to_each_row": (_no_parameters(old_nnet.prepend_to_each_row), _nothing),
    "Prod": (_reduced(T.prod), _reduction("prod")),
    "ProdWithoutZeros": (_reduced(_product_without_zeros), _nothing),
    "QRFull": (lambda mode: lambda x: T.nlinalg.qr(x, mode), _nothing),
    "QRIncomplete": (lambda mode: lambda x: T.nlinalg.qr(x, mode), _nothing),
    "RavelMultiIndex": (
        lambda mode="raise", order="C": (
            lambda *of: T.ravel_multi_index(of[:-1], of[-1], mode, order)
        ),
        _nothing,
    ),
    "RepeatOp": (lambda axis=None: lambda x, repeats: repeat(x, repeats, axis), _nothing),
    "Reshape": (
        lambda ndim, name=None: lambda x, shape: T.reshape(x, shape, ndim),
        _all_of(T.Reshape),
    ),
    "ScalarFromTensor": (_no_parameters(T.as_tensor_variable), _nothing),
    "SearchsortedOp": (
        lambda side="left": lambda x, v, sorter=None: T.searchsorted(x, v, side, sorter),
        _nothing,
    ),
    "Shape": (_no_parameters(T.shape), _all_of(T.Shape)),
    "Shape_i": (lambda i: lambda x: T.shape_i(x, i), _all_of(T.ShapeI)),
    "SortOp": (
        lambda kind="quicksort", order=None: (
            lambda x, axis=-1: SYMBOLIC_AXES["sort"](x, axis, kind, order)
        ),
        _nothing,
    ),
    "Softmax": (_no_parameters(old_nnet.softmax), _all_of(Softmax)),
    "SoftmaxGrad": (_no_parameters(old_nnet.softmax_grad), _nothing),
    "SoftmaxWithBias": (_no_parameters(nnet.softmax_with_bias), _nothing),
    "Solve": (_solve, _nothing),
    "SpecifyShape": (_no_parameters(T.specify_shape), _all_of(T.SpecifyShape)),
    "Split": (
        lambda len_splits: (
            lambda x, axis, sizes: SYMBOLIC_AXES["split"](x, sizes, len_splits, axis)
        ),
        _all_of(Split),
    ),
    "Subtensor": (_by_index, _all_of(T.Subtensor)),
    "Sum": (_reduced(T.sum), _reduction("sum")),
    "SVD": (
        lambda full_matrices=True, compute_uv=True: (
            lambda a: T.nlinalg.svd(a, full_matrices, compute_uv)
        ),
        _nothing,
    ),
    "SparseBlockGemv": (lambda inplace=False: blocksparse.sparse_block_gemv, _nothing),
    "SparseBlockOuter": (lambda inplace=False: blocksparse.sparse_block_outer, _nothing),
    "TensorInv": (lambda ind=2: lambda a: T.nlinalg.tensorinv(a, ind), _nothing),
    "TensorSolve": (lambda axes=None: lambda a, b: T.nlinalg.tensorsolve(a, b, axes), _nothing),
    "TensorFromScalar": (_no_parameters(T.as_tensor_variable), _nothing),
    "Tile": (lambda ndim: lambda x, reps: T.tile(x, reps, ndim), _nothing),
    "Tri": (lambda dtype=None: lambda n, m, k: T.tri(n, m, k, dtype), _nothing),
    "UnravelIndex": (
        lambda order="C": lambda indices, dims: list(T.unravel_index(indices, dims, order)),
        _nothing,
    ),
    "Unique": (
        lambda return_index=False, return_inverse=False, return_counts=False, axis=None: (
            lambda x: T.unique(x, return_index, return_inverse, return_counts, axis)
        ),
        _nothing,
    ),
}

_ALIASES = {
    "DownsampleFactorMax": "Pool",
    "DownsampleFactorMaxGrad": "MaxPoolGrad",
    "PoolGrad": "MaxPoolGrad",
}
#: Classes that programs derive from.
_BASES = {"Elemwise": OwnElemwise}
OP_CLASSES = {
    name: OpClass(name, make, is_one, _BASES.get(name)) for name, (make, is_one) in _TABLE.items()
}
OP_CLASSES["Pool"].out_shape = convolutions.pool_out_shape  # type: ignore[attr-defined]
OP_CLASSES["ConvOp"].getOutputShape = conv_op.output_shape  # type: ignore[attr-defined]
OP_CLASSES |= {old: OP_CLASSES[new] for old, new in _ALIASES.items()}
