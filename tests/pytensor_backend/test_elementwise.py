"""Scalar functions of every dtype, compositions, reductions and functions of whole axes."""

import warnings

import numpy as np
import pytest

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
import pytensor.scalar as ps  # noqa: E402
import pytensor.scalar.math as psm  # noqa: E402
from pytensor.scalar.loop import ScalarLoop  # noqa: E402
from pytensor.tensor.elemwise import CAReduce, Elemwise  # noqa: E402

from symcomp.pytensor_backend.scalar import ROWS  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

REALS = np.array([-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 3.7])
UNIT = np.array([-0.9, -0.2, 0.3, 0.8])
POSITIVE = np.array([0.2, 0.9, 1.5, 4.0])
#: Functions that are not defined, or not finite, everywhere.
DOMAINS = {
    "ArcCos": UNIT, "ArcSin": UNIT, "ArcTanh": UNIT, "ArcCosh": POSITIVE + 1, "Erfinv": UNIT,
    "Erfcinv": UNIT + 1, "NdtriExp": -POSITIVE, "Log1mexp": -POSITIVE, "Gamma": POSITIVE,
}  # fmt: skip
THREE = {"BetaInc": (POSITIVE, POSITIVE[::-1], UNIT**2), "Clip": (REALS, 0.0, 2.0)}
THREE["BetaIncInv"] = THREE["BetaInc"]
SKIPPED = {
    "Complex", "Cast", "Second", "Identity", "Switch", "MulWithoutZeros", "PolyGamma", "Log1mexp",
}  # fmt: skip
DTYPES = ("bool", "int8", "uint16", "int64", "float32", "float64", "complex128")


def arguments(kind, dtype):
    """Arrays for a scalar op, or None if it does not take this dtype."""
    name = kind.__name__
    if name in THREE:
        values = THREE[name]
    elif name == "Hyp2F1":
        values = (POSITIVE, UNIT, POSITIVE + 1, UNIT)
    elif name in ("GammaIncInv", "GammaIncCInv"):
        values = (POSITIVE, UNIT**2)
    elif name in DOMAINS:
        values = (DOMAINS[name],)
    else:
        count = getattr(kind, "nin", -1)
        values = (REALS,) if count == 1 else (POSITIVE, POSITIVE[::-1] + 0.5)
    return [np.asarray(v).astype(dtype) for v in np.broadcast_arrays(*values)]


def scalar_op(kind):
    """Make an instance with PyTensor's own rule for the dtype of the result."""
    for module in (ps, psm):
        for value in vars(module).values():
            if type(value) is kind:
                return value
    return None


OPS = sorted(
    (kind for kind in ROWS if scalar_op(kind) is not None and kind.__name__ not in SKIPPED),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_scalar_functions(kind):
    op = Elemwise(scalar_op(kind))
    inputs, outputs, values = [], [], []
    # PyTensor computes softplus of truth values in half precision.
    for dtype in DTYPES[kind is psm.Softplus :]:
        given = arguments(kind, dtype)
        variables = [pt.vector(dtype=v.dtype) for v in given]
        try:
            out = op(*variables)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                pytensor.function(variables, out, mode="FAST_COMPILE")(*given)
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            continue  # PyTensor does not have it for this dtype
        inputs += variables
        outputs.append(out)
        values += given
    assert outputs
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        compare(inputs, outputs, values, fallbacks=None if kind in COMPLEX_TOO else (), atol=1e-15)


COMPLEX_TOO = {psm.Gamma, psm.Psi, psm.GammaLn, psm.Erf, psm.Erfc, psm.Sigmoid, psm.Softplus}


def test_mixed_dtypes():
    x, i, b, f = pt.dvector("x"), pt.bvector("i"), pt.vector("b", dtype="bool"), pt.fvector("f")
    outputs = [
        x + i, i * i, i / i, i // 2, i % 3, x**i, f * x, b * i, pt.switch(b, i, x),
        pt.switch(i, x, f),
        pt.maximum(i, f), pt.exp(i), pt.cast(x, "int32"), pt.cast(i, "bool"), pt.eq(i, x), ~b,
        pt.clip(i, 0.5, 2), pt.second(i, x), pt.polygamma(1, x + 5), x.astype("complex128"), i - f,
    ]  # fmt: skip
    values = [REALS, np.int8([-3, 2, 5, 1, 7, 9, 4]), np.arange(7) % 2 == 0, np.float32(REALS)]
    compare([x, i, b, f], outputs, values)


def test_complex_numbers():
    x, y = pt.dvector("x"), pt.zvector("y")
    z = pt.complex(x, x + 1)
    outputs = [z, pt.real(y), pt.imag(y), pt.conj(y), abs(y), pt.sqrt(y), pt.exp(y) * x, y**2]
    compare([x, y], [*outputs, y.sum(), pt.angle(y)], [UNIT, UNIT + 1j])


def test_compositions_and_loops():
    x, y = ps.float64("x"), ps.float64("y")
    both = Elemwise(ps.Composite([x, y], [ps.exp(x) + y, x * y - 1]))
    u, v = pt.dmatrix("u"), pt.dvector("v")
    compare([u, v], [*both(u, v)], [np.outer(UNIT, UNIT), UNIT])
    n = ps.int64("n")
    power = Elemwise(ScalarLoop(init=[x], update=[x * y], constant=[y]))
    until = ScalarLoop(init=[x], update=[x * y], constant=[y], until=ps.ge(x * y, 30.0))
    i = pt.lvector("i")
    compare(
        [i, u, v], [power(i, u, v), *Elemwise(until)(i + 1, u, v)],
        [np.array([0, 2, 5, 9]), np.outer(POSITIVE, POSITIVE), POSITIVE],
    )  # fmt: skip
    assert n.type.dtype == "int64"


@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1, ()], ids=str)
def test_reductions(axis):
    x, i = pt.dtensor3("x"), pt.tensor3("i", dtype="int8")
    b, f = pt.tensor3("b", dtype="bool"), pt.ftensor3("f")
    axis = axis if axis is None or isinstance(axis, tuple) else (axis,)
    outputs = [
        x.sum(axis), x.prod(axis), x.max(axis), x.min(axis), i.sum(axis), i.prod(axis),
        b.any(axis), b.all(axis), b.sum(axis), f.sum(axis), i.max(axis), x.mean(axis or None),
        pt.sum(f, axis=axis, dtype="float64"), pt.sum(i, axis=axis, dtype="int8"),
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    values = [
        rng.normal(size=(2, 3, 4)), rng.integers(-2, 3, (2, 3, 4)).astype("int8"),
        rng.random((2, 3, 4)) < 0.5, rng.normal(size=(2, 3, 4)).astype("float32"),
    ]  # fmt: skip
    compare([x, i, b, f], outputs, values)


def test_reductions_with_nan_and_without_elements():
    x = pt.dmatrix("x")
    outputs = [x.max(0), x.min(1), x.sum(), x.prod(0), x.argmax(1)]
    compare([x], outputs, [np.array([[1.0, np.nan], [3.0, 2.0]])])
    compare([x], [x.sum(0), x.prod(), x.sum()], [np.zeros((0, 3))])
    compare([x], pt.prod(x, axis=0, no_zeros_in_input=True), [np.array([[1.0, 0.0], [3.0, 2.0]])])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64"])
@pytest.mark.parametrize("axis", [None, (0,), (0, 2)], ids=str)
@pytest.mark.parametrize("scalar", [ps.and_, ps.or_, ps.xor], ids=str)
def test_reductions_of_bits(scalar, axis, dtype):
    x = pt.tensor3("x", dtype=dtype)
    outputs = [CAReduce(scalar, axis=axis)(x)]
    if dtype != "bool":
        outputs.append(CAReduce(scalar, axis=axis, acc_dtype="int64")(x))
    values = np.random.default_rng(4).integers(0, 127, (2, 3, 4)).astype(dtype)
    if dtype == "int8":
        values[0] -= 100
    for value in (values, values[::-1, :, ::2], values[:, :1], values[:0], values[..., :0]):
        compare([x], outputs, [value])


def test_functions_of_axes():
    x = pt.dmatrix("x")
    special = pt.special
    outputs = [
        special.softmax(x, axis=1), special.log_softmax(x, axis=0), special.softmax(x, axis=None),
        pt.logsumexp(x, axis=1), pt.logsumexp(x), pt.logsumexp(x, axis=0, keepdims=True),
        pt.logaddexp(x, 1.0), special.xlogy(x, abs(x)), special.xlog1py(x, abs(x)), x.std(0),
        pt.cumsum(x, 0), pt.cumprod(x), pt.diff(x, axis=1), pt.var(x), pt.log1mexp(-abs(x)),
    ]  # fmt: skip
    compare([x], outputs, [np.random.default_rng(2).normal(size=(3, 4))], atol=1e-14)
