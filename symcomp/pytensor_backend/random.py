"""Random variables, with the draws that NumPy's Generator gives, bit for bit.

Draws are made of NumPy's and of arithmetic that rounds alike. Where SciPy takes logarithms or
powers of arrays, whose last bits depend on who computes them, its own functions are called.
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
from symcomp.core.tensor import TensorConstant, TensorType
from symcomp.lazy import lazy_module
from symcomp.ops.convert import cast_to, with_rank
from symcomp.ops.elementwise.elemwise import scalar
from symcomp.ops.random.sizes import draw, read_size
from symcomp.ops.shapes.shape import known_length
from symcomp.pytensor_backend.dispatch import translate
from symcomp.pytensor_backend.types import is_stream, is_tensor

stats = lazy_module("scipy.stats")  # importing it takes as long as all other imports together

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


def _positive(title: str, x: Any) -> Any:
    return _checked(title, x, lambda v: T.gt(v, 0), "positive")


def _uniform(state: Any, lengths: Any, low: Any, high: Any) -> Pair:
    low, high = cast_to(low, "float64"), cast_to(high, "float64")
    width = _checked(
        "high - low", high - low, lambda v: T.and_(T.ge(v, 0), T.lt(v, np.inf)),
        "finite and not negative",
    )  # fmt: skip
    after, u = draw(state, "standard_uniform", lengths, "float64")
    return after, low + width * u


def _normal(state: Any, lengths: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_normal", lengths, "float64")
    return after, loc + _not_negative("scale", scale) * z


def _exponential(state: Any, lengths: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_exponential", lengths, "float64")
    return after, _not_negative("scale", scale) * z


def _gamma(state: Any, lengths: Any, shape: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_gamma", lengths, "float64", shape)
    return after, _not_negative("scale", scale) * z


def _inverse_gamma(state: Any, lengths: Any, shape: Any, scale: Any) -> Pair:
    after, z = _gamma(state, lengths, shape, 1.0 / scale)
    return after, 1.0 / z


# -- as SciPy draws


def _by(name: str, parameters: str, function: Any) -> Any:
    """Return a function of tensors that calls one of arrays, in their dtypes."""
    return scalar(
        name, parameters, "", function, dtype=lambda *_: "float64", adapt=lambda *xs: xs,
        no_derivative="it prepares draws, which have none", public=False,
    )  # fmt: skip


def _quantile(name: str) -> Any:
    """Return the quantile function of a distribution of SciPy."""
    return lambda *xs: getattr(stats, name)._ppf(*xs)


def _power(x: Any, c: Any, *others: Any) -> Any:
    """``x`` to the power of ``c``, which SciPy stretches to the other parameters: NumPy rounds
    otherwise where all exponents are one number.
    """
    exponents = np.array(np.broadcast_arrays(c, *others)[0])
    return x ** (exponents if exponents.size > 1 else exponents.reshape(())[()])


def _skewed(x: Any, y: Any, a: Any) -> Any:
    d = a / np.sqrt(1 + a**2)
    z = d * x + y * np.sqrt(1 - d**2)
    return np.where(x >= 0, z, -z)


def _distance(x: Any, y: Any, b: Any) -> Any:
    start = b / np.sqrt(2)
    return np.sqrt((start + x) * (start + x) + (start + y) * (start + y))


# Quantiles, and the powers and logarithms of other draws.
_CAUCHY = _by("scipy_cauchy", "u", _quantile("cauchy"))
_HALF_CAUCHY = _by("scipy_halfcauchy", "u", _quantile("halfcauchy"))
_GUMBEL = _by("scipy_gumbel", "u", _quantile("gumbel_r"))
_TRUNCATED_EXPONENTIAL = _by("scipy_truncexpon", "u b", _quantile("truncexpon"))
_TRUNCATED_NORMAL = _by("scipy_truncnorm", "u a b", _quantile("truncnorm"))
_POWER = _by("numpy_power", "x c a b", _power)
_MOYAL = _by("numpy_moyal", "x", lambda x: -np.log(x * 2.0))
_SKEWED = _by("numpy_skewed", "x y a", _skewed)
_RICE = _by("numpy_rice", "x y b", _distance)


def _placed(state: Any, after: Any, z: Any, loc: Any, scale: Any) -> Pair:
    """Move and stretch draws. Where all scales are 0 SciPy draws nothing."""
    if not (isinstance(scale, TensorConstant) and scale.data.any()):
        after = T.switch(T.all(T.eq(scale, 0)), state, after)
    return after, z * _not_negative("scale", scale) + loc


def _by_quantiles(quantile: Any) -> Callable[..., Pair]:
    """Draw the quantiles of uniform numbers; before ``loc`` and ``scale`` come positive parameters.
    """

    def function(state: Any, lengths: Any, *parameters: Any) -> Pair:
        *shapes, loc, scale = parameters
        after, u = draw(state, "standard_uniform", lengths, "float64")
        z = quantile(u, *(_positive("a parameter", x) for x in shapes))
        return _placed(state, after, z, loc, scale)

    return function


def _pareto(state: Any, lengths: Any, b: Any, scale: Any) -> Pair:
    after, u = draw(state, "standard_uniform", lengths, "float64")
    z = _POWER(1 - u, -1.0 / _positive("b", b), b, scale)
    return _placed(state, after, z, T.constant(0.0), scale)


def _half_normal(state: Any, lengths: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_normal", lengths, "float64")
    return _placed(state, after, T.abs_(z), loc, scale)


def _student_t(state: Any, lengths: Any, df: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_t", lengths, "float64", df)
    return _placed(state, after, z, loc, scale)


def _generalized_gamma(state: Any, lengths: Any, alpha: Any, p: Any, scale: Any) -> Pair:
    p = _checked("p", p, lambda v: T.neq(v, 0), "different from 0")
    shape = _positive("alpha / p", alpha / p)
    after, z = draw(state, "standard_gamma", lengths, "float64", shape)
    return _placed(state, after, _POWER(z, 1.0 / p, alpha, scale), T.constant(0.0), scale)


def _bernoulli(state: Any, lengths: Any, p: Any) -> Pair:
    return draw(state, "binomial", lengths, "int64", T.constant(1), p)


def _beta_binomial(state: Any, lengths: Any, n: Any, a: Any, b: Any) -> Pair:
    after, p = draw(state, "beta", lengths, "float64", a, b)
    return draw(after, "binomial", lengths, "int64", n, p)


def _integers(state: Any, lengths: Any, low: Any, high: Any) -> Pair:
    """Draw from ``low`` to ``high`` - 1, which NumPy takes as floating-point numbers, too."""
    low, high = cast_to(low, "int64"), cast_to(high, "int64")
    return draw(state, "integers", lengths, "int64", low, high)


def _categorical(state: Any, lengths: Any, p: Any) -> Pair:
    """Draw the first outcome up to which probabilities add up to a uniform number or more."""
    after, u = draw(state, "standard_uniform", lengths, "float64")
    below = T.lt(T.cumsum(p, axis=-1), T.dimshuffle(u, *range(u.ndim), "x"))
    return after, T.sum(below, axis=-1)


# -- variables of PyMC


def _clipped_beta(state: Any, lengths: Any, a: Any, b: Any) -> Pair:
    after, z = draw(state, "beta", lengths, "float64", a, b)
    return after, T.clip(z, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))


def _moved_wald(state: Any, lengths: Any, mean: Any, scale: Any, start: Any) -> Pair:
    after, z = draw(state, "wald", lengths, "float64", mean, scale)
    return after, z + start


def _closed_integers(state: Any, lengths: Any, low: Any, high: Any) -> Pair:
    return _integers(state, lengths, low, high + 1)


def _truncated_normal(
    state: Any, lengths: Any, loc: Any, scale: Any, low: Any, high: Any
) -> Pair:
    a, b = (low - loc) / scale, (high - loc) / scale
    a = T.Assert("low must be below high", ValueError)(a, T.all(T.lt(a, b)))
    after, u = draw(state, "standard_uniform", lengths, "float64")
    return _placed(state, after, _TRUNCATED_NORMAL(u, a, b), loc, scale)


def _skewed_normal(state: Any, lengths: Any, loc: Any, scale: Any, a: Any) -> Pair:
    after, x = draw(state, "standard_normal", lengths, "float64")
    after, y = draw(after, "standard_normal", lengths, "float64")
    return _placed(state, after, _SKEWED(x, y, a), loc, scale)


def _moyal(state: Any, lengths: Any, loc: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_gamma", lengths, "float64", T.constant(0.5))
    return _placed(state, after, _MOYAL(z), loc, scale)


def _rice(state: Any, lengths: Any, b: Any, scale: Any) -> Pair:
    after, z = draw(state, "standard_normal", [T.constant(2), *lengths], "float64")
    return _placed(state, after, _RICE(z[0], z[1], b), T.constant(0.0), scale)


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
    ptr.CauchyRV: _by_quantiles(_CAUCHY),
    ptr.HalfCauchyRV: _by_quantiles(_HALF_CAUCHY),
    ptr.GumbelRV: _by_quantiles(_GUMBEL),
    ptr.ParetoRV: _pareto,
    ptr.TruncExponentialRV: _by_quantiles(_TRUNCATED_EXPONENTIAL),
    ptr.GenGammaRV: _generalized_gamma,
    ptr.BetaRV: _row("beta"),
    ptr.LogNormalRV: _row("lognormal"),
    ptr.LaplaceRV: _row("laplace"),
    ptr.LogisticRV: _row("logistic"),
    ptr.TriangularRV: _row("triangular"),
    ptr.WeibullRV: _row("weibull"),
    ptr.VonMisesRV: _row("vonmises"),
    ptr.WaldRV: _row("wald"),
    ptr.DirichletRV: _row("dirichlet"),
    ptr.PoissonRV: _row("poisson", "int64"),
    ptr.GeometricRV: _row("geometric", "int64"),
    ptr.BinomialRV: _row("binomial", "int64"),
    ptr.NegBinomialRV: _row("negative_binomial", "int64"),
    ptr.HyperGeometricRV: _row("hypergeometric", "int64"),
    ptr.IntegersRV: _integers,
    ptr.MultinomialRV: _row("counts", "int64"),
}

#: PyMC's, by their names, as PyMC need not be there.
ROWS_OF_PYMC: dict[str, Callable[..., Pair]] = {
    "pymc.distributions.continuous.BetaClippedRV": _clipped_beta,
    "pymc.distributions.continuous.WaldRV": _moved_wald,
    "pymc.distributions.continuous.TruncatedNormalRV": _truncated_normal,
    "pymc.distributions.continuous.SkewNormalRV": _skewed_normal,
    "pymc.distributions.continuous.MoyalRV": _moyal,
    "pymc.distributions.continuous.RiceRV": _rice,
    "pymc.distributions.discrete.DiscreteUniformRV": _closed_integers,
    "pymc.data.MinibatchIndexRV": _integers,
}


def _row_of(op: Any) -> Callable[..., Pair] | None:
    kind = type(op)
    return ROWS.get(kind) or ROWS_OF_PYMC.get(f"{kind.__module__}.{kind.__qualname__}")


@translate.register(ptr.RandomVariable)
def _random_variable(op: Any, node: Any, stream: Any, size: Any, *parameters: Any) -> Any:
    row = _row_of(op)
    if row is None or not is_stream(stream):
        return NotImplemented
    cores, sized = op.ndims_params, is_tensor(node.inputs[1].type)
    pairs = list(zip(parameters, cores, strict=True))
    lengths = lengths_of(op, node, size, *(x[(..., *[0] * k)] if k else x for x, k in pairs))
    after, z = row(stream, lengths, *(stretched(x, k, lengths, sized) for x, k in pairs))
    return [after, cast_to(z, node.outputs[1].type.dtype)]


def lengths_of(op: Any, node: Any, size: Any, *batch: Any) -> list[Any]:
    """Return the lengths of a draw: those of ``size``, or of the parameters of single draws."""
    given = size if is_tensor(node.inputs[1].type) else None
    return read_size(op.name, given, op.batch_ndim(node), *batch)


def stretched(x: Any, core: int, lengths: list[Any], sized: bool) -> Any:
    """Give a parameter all axes of the draw, stretched if that is not known to be needless.

    Parameters
    ----------
    x : TensorVariable
    core : int
        How many axes it has for one draw.
    lengths : list of TensorVariable
        Of the draw.
    sized : bool
        Whether they are given, so that parameters may be shorter.
    """
    x = with_rank(x, len(lengths) + core)
    if not sized or all(n is not None for n in x.type.shape[: len(lengths)]):
        return x
    ends = [T.shape_i(x, a) for a in range(len(lengths), x.ndim)]
    return StretchTo()(x, *lengths, *ends)

