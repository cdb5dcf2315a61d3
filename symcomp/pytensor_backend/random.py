"""Random variables, with the draws that NumPy's Generator gives, bit for bit.

A distribution is here if its draws are made of NumPy's and of arithmetic that rounds alike. Others,
where SciPy takes logarithms or powers of arrays, are computed by PyTensor's ``perform``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor.random.basic as ptr

import symcomp.tensor as T
from symcomp.core.node import Apply, Type
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.ops.convert import cast_to, with_rank
from symcomp.ops.random.sizes import draw, read_size
from symcomp.ops.shapes.shape import known_length
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.types import Stream, is_tensor

Pair = tuple[Any, Any]


@record
class StretchTo(Op):
    """z = x, a view, stretched to given lengths.   x (m_1, .., m_k), n_1 .. n_k -> (n_1, .., n_k)

    An axis is stretched if it has length 1 when the function runs, known or not, as NumPy
    stretches the parameters of a draw.
    """

    no_derivative = "it prepares parameters of draws that have none"
    view_map = {0: (0,)}

    def output_types(self, x: Any, *lengths: Any) -> list[Type]:
        return [TensorType(x.dtype, [known_length(n) for n in lengths])]

    def perform(self, x: Any, *lengths: Any) -> Any:
        return np.broadcast_to(x, tuple(int(n) for n in lengths))

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return [tuple(node.inputs[1:])]


def _checked(title: str, x: Any, holds: Callable[[Any], Any], what: str) -> Any:
    """``x``, of which all elements hold, or ValueError when the function runs."""
    message = f"{title} must be {what}"
    return T.Assert(message, ValueError)(x, T.all(holds(x)))


def _not_negative(title: str, x: Any) -> Any:
    return _checked(title, x, lambda v: T.invert(T.lt(v, 0)), "not negative")


def _row(name: str, dtype: str = "float64") -> Callable[..., Pair]:
    """Draw by NumPy's method of that name."""

    def function(state: Any, lengths: Any, *parameters: Any) -> Pair:
        return draw(state, name, lengths, dtype, *parameters)

    return function


def _uniform(state: Any, lengths: Any, low: Any, high: Any) -> Pair:
    width = _checked(
        "high - low", high - low, lambda v: T.and_(T.ge(v, 0), T.lt(v, np.inf)),
        "finite and not negative",
    )  # fmt: skip
    after, u = draw(state, "standard_uniform", lengths, "float64")
    return after, low + width * u


def _normal(state: Any, lengths: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_normal", lengths, "float64")
    return after, loc + _not_negative("scale", scale) * z


def _half_normal(state: Any, lengths: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_normal", lengths, "float64")
    return after, T.abs_(z) * _not_negative("scale", scale) + loc


def _exponential(state: Any, lengths: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_exponential", lengths, "float64")
    return after, _not_negative("scale", scale) * z


def _gamma(state: Any, lengths: Any, shape: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_gamma", lengths, "float64", shape)
    return after, _not_negative("scale", scale) * z


def _inverse_gamma(state: Any, lengths: Any, shape: Any, scale: Any) -> Pair:
    after, z = _gamma(state, lengths, shape, 1.0 / scale)
    return after, 1.0 / z


def _student_t(state: Any, lengths: Any, df: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_t", lengths, "float64", df)
    return after, z * _not_negative("scale", scale) + loc


def _bernoulli(state: Any, lengths: Any, p: Any) -> Pair:
    return draw(state, "binomial", lengths, "int64", T.constant(1), p)


def _beta_binomial(state: Any, lengths: Any, n: Any, a: Any, b: Any) -> Pair:
    after, p = draw(state, "beta", lengths, "float64", a, b)
    return draw(after, "binomial", lengths, "int64", n, p)


def _categorical(state: Any, lengths: Any, p: Any) -> Pair:
    """Draw the first outcome up to which probabilities add up to a uniform number or more."""
    after, u = draw(state, "standard_uniform", lengths, "float64")
    below = T.lt(T.cumsum(p, axis=-1), T.dimshuffle(u, *range(u.ndim), "x"))
    return after, T.sum(below, axis=-1)


#: Random variables whose draws symcomp makes: from the state, the lengths and the parameters, the
#: last of them for whole outcomes if the variable has such.
ROWS: dict[type, Callable[..., Pair]] = {
    ptr.UniformRV: _uniform,
    ptr.NormalRV: _normal,
    ptr.HalfNormalRV: _half_normal,
    ptr.ExponentialRV: _exponential,
    ptr.GammaRV: _gamma,
    ptr.InvGammaRV: _inverse_gamma,
    ptr.StudentTRV: _student_t,
    ptr.BernoulliRV: _bernoulli,
    ptr.BetaBinomialRV: _beta_binomial,
    ptr.CategoricalRV: _categorical,
    ptr.BetaRV: _row("beta"),
    ptr.LogNormalRV: _row("lognormal"),
    ptr.LaplaceRV: _row("laplace"),
    ptr.LogisticRV: _row("logistic"),
    ptr.TriangularRV: _row("triangular"),
    ptr.WeibullRV: _row("weibull"),
    ptr.VonMisesRV: _row("vonmises"),
    ptr.WaldRV: _row("wald"),
    ptr.PoissonRV: _row("poisson", "int64"),
    ptr.GeometricRV: _row("geometric", "int64"),
    ptr.BinomialRV: _row("binomial", "int64"),
    ptr.NegBinomialRV: _row("negative_binomial", "int64"),
}


@translate.register(ptr.RandomVariable)
def _random_variable(op: Any, node: Any, stream: Any, size: Any, *parameters: Any) -> Any:
    row = ROWS.get(type(op))
    if row is None or not isinstance(stream, Stream):
        return NotImplemented
    cores = op.ndims_params
    given = size if is_tensor(node.inputs[1].type) else None
    batch = [_batch_shape(x, k) for x, k in zip(parameters, cores, strict=True)]
    lengths = read_size(op.name, given, op.batch_ndim(node), *batch)
    ready = [
        _ready(x, k, lengths, given is not None) for x, k in zip(parameters, cores, strict=True)
    ]
    after, z = row(stream.words, lengths, *ready)
    return [Stream(after, stream.half), cast_to(z, node.outputs[1].type.dtype)]


def _batch_shape(x: Any, core: int) -> Any:
    """Return a parameter without the axes of one draw, of which only the lengths count."""
    return x if core == 0 else x[(..., *[0] * core)]


def _ready(x: Any, core: int, lengths: list[Any], sized: bool) -> Any:
    """Give a parameter all axes of the draw, stretched if that is not known to be needless."""
    x = with_rank(x, len(lengths) + core)
    x = x if x.dtype in ("int64", "float64") else cast_to(x, _wide(x.dtype))
    if not sized or all(n is not None for n in x.type.shape[: len(lengths)]):
        return x
    ends = [T.shape_i(x, a) for a in range(len(lengths), x.ndim)]
    return StretchTo()(x, *lengths, *ends)


def _wide(dtype: str) -> str:
    """Return the dtype in which NumPy takes a parameter."""
    return "float64" if dtype.startswith("float") else "int64"
