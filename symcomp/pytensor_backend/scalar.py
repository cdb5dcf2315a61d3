"""Elementwise functions and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytensor.scalar.basic as ps
import pytensor.scalar.math as psm
from pytensor.scalar.loop import ScalarLoop
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import MulWithoutZeros
from pytensor.tensor.special import LogSoftmax, LogSumExp, Softmax, XLog1PY, XLogY

import symcomp.tensor as T
from symcomp.ops.convert import cast_to
from symcomp.ops.reductions.reduce import REDUCTIONS as BY_NAME
from symcomp.ops.reductions.reduce import Reduce
from symcomp.pytensor_backend.dispatch import graph_of, translate
from symcomp.pytensor_backend.loops import scalar_loop

Row = Callable[..., Any]

#: Functions whose arguments are first brought to the dtype of the result, as PyTensor does.
OF_ONE_DTYPE = {
    "Add": "add", "Mul": "mul", "Sub": "sub", "TrueDiv": "true_div", "IntDiv": "int_div",
    "Mod": "mod", "Pow": "pow", "Maximum": "maximum", "Minimum": "minimum", "Clip": "clip",
    "Sign": "sgn", "Ceil": "ceil", "Floor": "floor", "Trunc": "trunc",
    "RoundHalfToEven": "round_half_to_even",
    "RoundHalfAwayFromZero": "round_half_away_from_zero", "Neg": "neg",
    "Reciprocal": "reciprocal", "Log": "log", "Log2": "log2", "Log10": "log10", "Log1p": "log1p",
    "Exp": "exp", "Exp2": "exp2", "Expm1": "expm1", "Sqr": "sqr", "Sqrt": "sqrt", "Cos": "cos",
    "ArcCos": "arccos", "Sin": "sin", "ArcSin": "arcsin", "Tan": "tan", "ArcTan": "arctan",
    "ArcTan2": "arctan2", "Cosh": "cosh", "ArcCosh": "arccosh", "Sinh": "sinh",
    "ArcSinh": "arcsinh", "Tanh": "tanh", "ArcTanh": "arctanh", "Invert": "invert", "OR": "or_",
    "XOR": "xor", "AND": "and_",
}  # fmt: skip
#: The same, of real numbers alone.
SPECIAL = {
    "Erf": "erf", "Erfc": "erfc", "Erfcx": "erfcx", "Erfinv": "erfinv", "Erfcinv": "erfcinv",
    "Gamma": "gamma", "GammaLn": "gammaln", "Psi": "psi", "TriGamma": "tri_gamma",
    "PolyGamma": "polygamma", "GammaInc": "gammainc", "GammaIncC": "gammaincc",
    "GammaIncInv": "gammaincinv", "GammaIncCInv": "gammainccinv", "BetaInc": "betainc",
    "BetaIncInv": "betaincinv", "Jv": "jv", "J0": "j0", "J1": "j1", "I0": "i0", "I1": "i1",
    "Ive": "ive", "Kve": "kve", "Sigmoid": "sigmoid", "Softplus": "softplus",
    "Log1mexp": "log1mexp", "NdtriExp": "ndtri_exp", "Owens_t": "owens_t", "Hyp2F1": "hyp2f1",
}  # fmt: skip
#: Functions that take their arguments as they are.
AS_GIVEN = {
    "LT": "lt", "GT": "gt", "LE": "le", "GE": "ge", "EQ": "eq", "NEQ": "neq", "IsNan": "isnan",
    "IsInf": "isinf", "Real": "real", "Imag": "imag", "Complex": "complex", "Conj": "conj",
    "Abs": "abs_",
}  # fmt: skip


def _of_one_dtype(name: str, complex_too: bool) -> Row:
    function = getattr(T, name)

    def row(out: str, *args: Any) -> Any:
        if not complex_too and any(a.dtype.startswith("complex") for a in args):
            return NotImplemented
        return function(*(cast_to(a, out) for a in args))

    return row


def _as_given(name: str) -> Row:
    function = getattr(T, name)
    return lambda out, *args: function(*args)


def _switch(out: str, condition: Any, x: Any, y: Any) -> Any:
    chosen = condition if condition.dtype == "bool" else T.neq(condition, 0)
    return T.switch(chosen, cast_to(x, out), cast_to(y, out))


def _second(out: str, x: Any, y: Any) -> Any:
    return T.second(x, cast_to(y, out))


ROWS: dict[type, Row] = {
    **{getattr(ps, k): _of_one_dtype(v, True) for k, v in OF_ONE_DTYPE.items()},
    **{getattr(psm, k): _of_one_dtype(v, False) for k, v in SPECIAL.items()},
    **{getattr(ps, k): _as_given(v) for k, v in AS_GIVEN.items()},
    ps.Switch: _switch,
    ps.Second: _second,
    ps.Identity: lambda out, x: x,
    ps.Cast: lambda out, x: cast_to(x, out),
    MulWithoutZeros: lambda out, x, y: T.switch(
        T.eq(x, 0), cast_to(y, out), T.switch(T.eq(y, 0), cast_to(x, out), cast_to(x * y, out))
    ),
}


#: The functions for ops of libraries that are not imported here, by module and class.
NAMED = {
    ("pymc.distributions.dist_math", "I0e"): _of_one_dtype("i0e", False),
    ("pymc.distributions.dist_math", "I1e"): _of_one_dtype("i1e", False),
}


def apply_row(op: Any, node: Any, args: Sequence[Any]) -> Any:
    """Apply a scalar op to tensors; NotImplemented if it has no row."""
    if isinstance(op, ps.Composite):
        return graph_of(op.fgraph, args)
    if isinstance(op, ScalarLoop):
        return scalar_loop(op, args)
    for kind in type(op).__mro__:
        row = ROWS.get(kind) or NAMED.get((kind.__module__, kind.__name__))
        if row is not None:
            return row(node.outputs[0].type.dtype, *args)
    return NotImplemented


@translate.register(ps.ScalarOp)
def _scalar_op(op: Any, node: Any, *args: Any) -> Any:
    return apply_row(op, node, args)


@translate.register(Elemwise)
def _elemwise(op: Any, node: Any, *args: Any) -> Any:
    return apply_row(op.scalar_op, node, args)


@translate.register(DimShuffle)
def _dimshuffle(op: Any, node: Any, x: Any) -> Any:
    return T.dimshuffle(x, op.new_order)


# -- reductions


def _bits(name: str, of_truths: Row | None = None) -> Row:
    """Return a reduction of bits, with the function for truth values if it has one of its own."""

    def row(x: Any, axes: Any, out: str) -> Any:
        x = cast_to(x, out)
        if out == "bool" and of_truths is not None:
            return of_truths(x, axis=axes)
        return Reduce(BY_NAME[name], axes)(x)

    return row


def _of_dtype(name: str) -> Row:
    """Return a sum or product, added up in the dtype that PyTensor adds up in."""
    function = getattr(T, name)
    return lambda x, axes, out: function(cast_to(x, out), axis=axes, dtype=out, acc_dtype=out)


def _without_zeros(x: Any, axes: Any, out: str) -> Any:
    x = cast_to(x, out)
    return T.prod(T.switch(T.eq(x, 0), T.constant(1, dtype=out), x), axis=axes, dtype=out)


REDUCTIONS: dict[type, Row] = {
    ps.Add: _of_dtype("sum"),
    ps.Mul: _of_dtype("prod"),
    MulWithoutZeros: _without_zeros,
    ps.Maximum: lambda x, axes, out: T.max(x, axis=axes),
    ps.Minimum: lambda x, axes, out: T.min(x, axis=axes),
    ps.AND: _bits("bitwise_and", T.all),
    ps.OR: _bits("bitwise_or", T.any),
    ps.XOR: _bits("bitwise_xor"),
}


@translate.register(CAReduce)
def _reduce(op: Any, node: Any, x: Any) -> Any:
    axes = tuple(range(x.ndim)) if op.axis is None else tuple(op.axis)
    out = node.outputs[0].type.dtype
    if not axes:
        return cast_to(x, out)
    row = REDUCTIONS.get(type(op.scalar_op))
    if row is None:
        return NotImplemented
    return row(x, axes, getattr(op, "acc_dtype", None) or out)


# -- functions of whole axes


def _axes_of(op: Any, x: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if op.axis is None else tuple(op.axis)


@translate.register(Softmax)
def _softmax(op: Any, node: Any, x: Any) -> Any:
    axes = _axes_of(op, x)
    if len(axes) != 1:
        return graph_of(op.fgraph, [x])
    return T.softmax(cast_to(x, node.outputs[0].type.dtype), axis=axes[0])


@translate.register(LogSoftmax)
def _log_softmax(op: Any, node: Any, x: Any) -> Any:
    axes = _axes_of(op, x)
    if len(axes) != 1:
        return graph_of(op.fgraph, [x])
    return T.log_softmax(cast_to(x, node.outputs[0].type.dtype), axis=axes[0])


@translate.register(LogSumExp)
def _logsumexp(op: Any, node: Any, x: Any) -> Any:
    z = T.logsumexp(cast_to(x, node.outputs[0].type.dtype), axis=_axes_of(op, x), keepdims=True)
    return z if node.outputs[0].type.ndim == x.ndim else T.squeeze(z, axis=_axes_of(op, x))


@translate.register(XLogY)
def _xlogy(op: Any, node: Any, x: Any, y: Any) -> Any:
    out = node.outputs[0].type.dtype
    return T.xlogy(cast_to(x, out), cast_to(y, out))


@translate.register(XLog1PY)
def _xlog1py(op: Any, node: Any, x: Any, y: Any) -> Any:
    out = node.outputs[0].type.dtype
    return T.xlog1py(cast_to(x, out), cast_to(y, out))
