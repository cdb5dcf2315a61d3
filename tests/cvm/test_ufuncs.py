"""SciPy's functions run by their own loops: the same bits as through Python, and without it."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm.kernels import ufunc_kernel
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.tests.cvm.looking import asked, in_python

ONE = ("erfinv", "erfcinv", "ndtri", "j0", "j1", "i0", "i1", "ndtri_exp")
TWO = ("gammainc", "gammaincc", "jv", "iv", "ive", "kv", "kve", "gammaincinv", "owens_t")
THREE = ("betainc", "betaincinv")
FOUR = ("hyp2f1",)
RNG = np.random.default_rng(13)
# The same shape, stretched axes, no axes, more axes, nothing.
SHAPES = [
    ((7,), (7,), (7,), (7,)), ((3, 5), (1, 5), (3, 1), (3, 5)), ((), (), (), ()),
    ((2, 3, 4), (2, 1, 4), (1, 3, 1), (1, 1, 4)), ((0, 3), (0, 3), (0, 3), (0, 3)),
    ((4, 1), (4, 1), (4, 1), (4, 1)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def kernels():
    with config.change_flags(kernels=True):
        yield


def functions_of(name, values):
    inputs = [TensorType(v.dtype, [1 if n == 1 else None for n in v.shape])() for v in values]
    z = Elemwise(ROWS[name]())(*inputs)
    return [
        symcomp.function(inputs, z, mode=symcomp.Mode(m, optimizer=None)) for m in ("cvm", "vm")
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*ONE, *TWO, *THREE, *FOUR])
def test_the_same_bits(name, dtype):
    (count,) = (n for n, names in enumerate((ONE, TWO, THREE, FOUR), 1) if name in names)
    for shapes in SHAPES:
        values = [np.asarray(RNG.uniform(0, 0.99, s), dtype) for s in shapes[:count]]
        native, python = functions_of(name, values)
        assert not in_python(native) and asked(native, values) == []
        layouts = [values, [np.array(v, order="F") for v in values]]
        layouts.append([np.repeat(v, 2, -1)[..., ::-2] if v.ndim else v for v in values])
        for given in layouts:
            got, want = native(*given), python(*given)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)


def test_outside_of_where_they_are_defined():
    x = np.array([-2.0, np.nan, np.inf, -1.0, 1.0, 0.0])
    for name in ONE:
        native, python = functions_of(name, [x])
        np.testing.assert_array_equal(native(x), python(x))


def test_in_loops_and_repeated_calls():
    x, v = T.dvectors("x", "v")
    states = symcomp.scan(
        lambda s: T.erfinv(T.tanh(s) * 0.9) + v, outputs_info=x, n_steps=20, return_updates=False
    )
    f = symcomp.function([x, v], states, profile=True)
    f(np.linspace(-1, 1, 5), np.full(5, 0.1))
    ((_, body),) = f.profiled.tally.inner.values()
    assert body.without_python >= 18
    g = symcomp.function([x], T.erfinv(x * 0.5) + 1)
    for _ in range(9):
        np.testing.assert_allclose(g(v := RNG.uniform(size=4)), T.erfinv(x * 0.5).eval({x: v}) + 1)
    assert g.repeated > 0


def test_what_scipy_is_told_to_raise():
    special = pytest.importorskip("scipy.special")
    x = T.dvector("x")
    f = symcomp.function([x], T.gammainc(x, x) + 1)
    wrong = np.array([-1.0, 2.0])
    loop = symcomp.scan(lambda s: T.gammainc(s, s) - 1, outputs_info=x, n_steps=9)[0]
    g = symcomp.function([x], loop)
    for _ in range(9):
        assert np.isnan(f(wrong)[0]) and np.isnan(g(wrong)[-1, 0])
        with special.errstate(domain="raise"):
            for function in (f, g):
                with pytest.raises(special.SpecialFunctionError):
                    function(wrong)


def test_where_there_is_no_such_loop():
    assert ufunc_kernel(np.frexp, ["float64", "float64"], 1) is None
    x = T.lvector("x")
    f = symcomp.function([x], T.i0(x), mode=symcomp.Mode("cvm", optimizer=None))
    assert in_python(f) == {"Elemwise"}
    np.testing.assert_allclose(f(np.arange(3)), np.i0(np.arange(3.0)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16"])
@pytest.mark.parametrize("name", [*ONE, *TWO, *THREE, *FOUR])
def test_of_other_numbers(name, dtype):
    values = [(RNG.uniform(0, 3, 7) % 1.9).astype(dtype) for _ in range(ROWS[name]().arity)]
    inputs = [TensorType(dtype, (None,))() for _ in values]
    z = Elemwise(ROWS[name]())(*inputs)
    native = symcomp.function(inputs, z)
    assert not in_python(native)
    python = symcomp.function(inputs, z, mode=symcomp.Mode("vm", optimizer=None))
    got, want = native(*values), python(*values)
    assert got.dtype == want.dtype == z.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype in ("bool", "int8") else 1e-13)
