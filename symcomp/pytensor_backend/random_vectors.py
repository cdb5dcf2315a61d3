"""Random variables of whole outcomes that are more than a row of the table of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor.random.basic as ptr

import symcomp.tensor as T
from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError
from symcomp.ops.convert import cast_to
from symcomp.ops.random.sizes import draw
from symcomp.ops.shapes.shape import as_length, product_of, shape_tuple
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.random import lengths_of, stretched
from symcomp.pytensor_backend.types import is_stream, is_tensor


@record
class RootTimes(Op):
    """y = R x for each vector x, where R R^T = S.   S (.., n, n), x (.., n) -> y (.., n)

    NumPy's factorizations and sums, for the last bits.
    """

    method: str

    no_derivative = "it prepares draws, which have none"

    def output_types(self, s: Any, x: Any) -> list[Type]:
        if s.dtype != "float64" or x.dtype != "float64" or s.ndim < 2 or x.ndim < 1:
            raise DTypeError(
                f"RootTimes: needs matrices and vectors of float64, got {s.type} and {x.type}"
            )
        return [TensorType("float64", x.type.shape)]

    def perform(self, s: Any, x: Any) -> Any:
        if self.method == "cholesky":
            root = np.linalg.cholesky(s)
        elif self.method == "svd":
            root, scales, _ = np.linalg.svd(s)
            root = root * np.sqrt(scales)[..., None, :]
        else:
            scales, root = np.linalg.eigh(s)
            root = root * np.sqrt(scales)[..., None, :]
        return np.einsum("...ij,...j->...i", root, x, optimize=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [shapes[1]]


@translate.register(ptr.MvNormalRV)
def _normal_vectors(op: Any, node: Any, stream: Any, size: Any, mean: Any, cov: Any) -> Any:
    if not is_stream(stream) or cov.dtype != "float64":
        return NotImplemented
    lengths = lengths_of(op, node, size, mean[..., 0], cov[..., 0, 0])
    count = as_length(shape_tuple(mean)[-1], op.name)
    after, z = draw(stream, "standard_normal", [*lengths, count], "float64")
    sized = is_tensor(node.inputs[1].type)
    y = RootTimes(op.method)(stretched(cov, 2, lengths, sized), z)
    return [after, cast_to(y + stretched(mean, 1, lengths, sized), node.outputs[1].type.dtype)]


def _positions(n: Any) -> Any:
    return T.arange(cast_to(n, "int64"))


@translate.register(ptr.PermutationRV)
def _permutation(op: Any, node: Any, stream: Any, size: Any, x: Any) -> Any:
    """Permute positions; NumPy uses the same numbers for an array as for its positions."""
    core = op.ndims_params[0]
    if not is_stream(stream) or op.batch_ndim(node):
        return NotImplemented
    n = x if core == 0 else T.shape_i(x, 0)
    after, order = draw(stream, "permutation", [], "int64", _positions(n))
    return [after, cast_to(order, op.dtype) if core == 0 else T.take(x, order, axis=0)]


@translate.register(ptr.ChoiceWithoutReplacement)
def _choice(op: Any, node: Any, stream: Any, size: Any, *parameters: Any) -> Any:
    """Choose positions; NumPy uses the same numbers for an array as for its positions."""
    if not is_stream(stream) or op.batch_ndim(node):
        return NotImplemented
    a, *p, shape = parameters
    n = a if a.ndim == 0 else T.shape_i(a, 0)
    lengths = [cast_to(shape[k], "int64") for k in range(op.ndim_supp - max(a.ndim - 1, 0))]
    places = _positions(product_of(lengths) if lengths else T.constant(1))
    if p:
        p[0] = T.Assert("a and p must have same size", ValueError)(
            p[0], T.eq(T.shape_i(p[0], 0), n)
        )
    row, of = ("choice_by_p", cast_to(p[0], "float64")) if p else ("choice", cast_to(n, "int64"))
    after, found = draw(stream, row, [], "int64", of, places)
    found = T.reshape(found, lengths) if lengths else found[0]
    return [after, cast_to(found, op.dtype) if a.ndim == 0 else T.take(a, found, axis=0)]
