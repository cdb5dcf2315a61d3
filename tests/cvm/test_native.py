"""Native instructions give what Python gives, bit for bit, for all dtypes and layouts, without
calling Python.
"""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import SymcompError
from symcomp.tests.cvm.examples import EXAMPLES, LINES, MOVES, NUMBERS, PRODUCTS
from symcomp.tests.cvm.looking import asked, in_python, kinds_of

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
# Elements that are only moved are bytes: one dtype of each size.
SIZES = ("bool", "float16", "int32", "float64", "complex128")
COMPUTING = [
    *(name for name in MOVES if name.startswith("inc_")), "plus", "trace", "diff", "cast", "mask",
    "compress", "choose", "to_one_hot", "cumsum", "cumprod", "sort", "argsort", "argmax", "argmin",
    "topk",
]  # fmt: skip
# The first one is planned, the others repeat the plan.
CALLS = 6
# Ops whose only native code is kernels, which are off here.
IN_PYTHON = {"Elemwise", "Fused", "LogSumExp", "Reduce"}


@pytest.fixture(autouse=True)
def no_kernels():
    with config.change_flags(kernels=False):
        yield


def layouts(values):
    """Yield the same values at other addresses and strides; then values repeated along an axis."""
    yield values
    yield [np.array(v, order="F") for v in values]
    yield [v[::-1].copy()[::-1] if v.ndim else v for v in values]
    yield [np.repeat(np.repeat(v, 2, 0), 3, -1)[::2, ..., ::3] if v.ndim > 1 else v for v in values]
    yield [np.broadcast_to(v[:1], v.shape) if v.ndim else v for v in values]
    yield [np.broadcast_to(v[..., :1], v.shape) if v.ndim else v for v in values]


def functions_of(build, values):
    """Compile the function for the native machine and for the Python machine."""
    inputs = [
        TensorType(v.dtype, [1 if n == 1 else None for n in v.shape])(f"x{i}")
        for i, v in enumerate(values)
    ]
    outputs = build(*inputs)
    return [symcomp.function(inputs, outputs, mode=symcomp.Mode(m)) for m in ("cvm", "vm")]


def outputs_of(function, values):
    found = function(*values)
    return found if isinstance(found, list) else [found]


def compare(function, reference, values, exact=True):
    before = [v.copy() for v in values]
    want = outputs_of(reference, values)
    for _ in range(CALLS):
        for a, b in zip(outputs_of(function, values), want, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            if exact or a.dtype.kind in "biu":
                np.testing.assert_array_equal(a, b)
            else:
                tolerance = 1e-3 if a.dtype == "float16" else 30 * np.finfo(a.dtype).eps
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    for v, old in zip(values, before, strict=True):
        np.testing.assert_array_equal(v, old)


@pytest.mark.parametrize("name", [*MOVES, *NUMBERS, *LINES, *PRODUCTS])
def test_layouts(name):
    build, values = EXAMPLES[name]
    native, python = functions_of(build, values)
    for given in layouts(values):
        compare(native, python, given, exact=name not in PRODUCTS)
    if name in MOVES or name in NUMBERS:
        assert asked(native, list(values)) == []


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("alone", [True, False])
def test_turned_results(name, alone):
    """Results that lie in the other order than what they are views of; also both of them."""
    build, values = EXAMPLES[name]

    def turned(*inputs):
        outputs = build(*inputs)
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        results = [(z.T,) if alone else (z.T, z, z.T[::-1]) for z in outputs if z.ndim > 1]
        return [r for several in results for r in several] or outputs[0]

    function, reference = functions_of(turned, values)
    compare(function, reference, [*values], name in MOVES)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_states_that_are_turned(dtype):
    """A shared variable is updated to the transpose of a result, again and again."""
    start = np.arange(6).reshape(2, 3).astype(dtype)
    state, want = symcomp.shared(start), start
    f = symcomp.function([], updates=[(state, T.cumsum(state, 0).T)], mode=symcomp.Mode("cvm"))
    for _ in range(2 * CALLS):
        f()
        want = np.cumsum(want, 0).T
        np.testing.assert_array_equal(state.get_value(), want)


@pytest.mark.parametrize("name", EXAMPLES)
def test_bytes_in_the_other_order(name):
    """Arrays are read in their byte order, even if the function trusts its arguments."""
    build, values = EXAMPLES[name]
    native, _ = functions_of(build, values)
    native.trust_input = True
    wanted = [np.array(z) for z in outputs_of(native, values)]
    for i in range(5):
        given = [v.astype(v.dtype.newbyteorder()) if i != 1 else v for v in values]
        for got, want in zip(outputs_of(native, given), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in COMPUTING for dtype in DTYPES]
    + [(name, dtype) for name in MOVES if name not in COMPUTING for dtype in SIZES],
)
def test_dtypes(name, dtype):
    build, values = EXAMPLES[name]
    values = [v.astype(dtype) if v.dtype.kind == "f" else v for v in values]
    try:
        native, python = functions_of(build, values)
    except (SymcompError, TypeError):
        pytest.skip("not for this dtype")
    for given in layouts(values):
        compare(native, python, given)
    if name in MOVES or dtype == "float16":
        assert asked(native, values) == []


def test_what_runs_in_python():
    found = set()
    for build, values in (*MOVES.values(), *NUMBERS.values(), *LINES.values()):
        found |= in_python(functions_of(build, values)[0])
    assert found == IN_PYTHON


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (600, 1), (3, 1100), (1100, 5)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
def test_lines_of_any_length(shape, dtype):
    rng = np.random.default_rng(1)
    x = TensorType(dtype, (None, None))("x")
    outputs = [T.cumsum(x, 0), T.cumprod(x, 1), T.sort(x, 0), T.argsort(x, 1), x[::-1, 1:]]
    outputs += [f(x, axis) for f in (T.argmax, T.argmin) for axis in range(2) if shape[axis]]
    functions = [symcomp.function([x], outputs, mode=symcomp.Mode(m)) for m in ("cvm", "vm")]
    value = rng.integers(-100, 100, shape).astype(dtype)
    for v in (value, value[::-1, ::-1], np.asfortranarray(value)):
        compare(*functions, [v])


def test_the_first_nan_is_the_largest():
    x = T.dmatrix("x")
    functions = [
        symcomp.function([x], [f(x, a) for f in (T.argmax, T.argmin) for a in (0, 1, None)], mode=m)
        for m in (symcomp.Mode("cvm"), symcomp.Mode("vm"))
    ]
    rng = np.random.default_rng(2)
    for count in (1, 3, 40):
        value = rng.normal(size=(30, 700))
        value[rng.integers(0, 30, count), rng.integers(0, 700, count)] = np.nan
        value[:, 5], value[2] = np.inf, -np.inf
        for v in (value, value.T, value[::-1]):
            compare(*functions, [v])


def test_errors_are_those_of_python():
    x, i, y = T.dmatrix("x"), T.lvector("i"), T.dvector("y")
    cases = [
        ([x, i], x[i], [np.eye(2), np.array([2])]),
        ([x, i], x[:, i], [np.eye(2), np.array([-3])]),
        ([x, y], T.set_subtensor(x[1:], y), [np.eye(3), np.ones(2)]),
        ([x, i, y], T.inc_subtensor(x[i, i], y), [np.eye(3), np.array([1, 4]), np.ones(2)]),
        ([x, y], T.join(0, x, y.dimshuffle("x", 0)), [np.eye(2), np.ones(3)]),
        ([x, i], T.reshape(x, i, ndim=2), [np.eye(2), np.array([3, -1])]),
        ([x], T.argmax(x, 0), [np.ones((0, 2))]),
        ([x, i], T.split(x, i, 2)[0], [np.eye(2), np.array([3, -1])]),
        ([x], T.specify_shape(x, (2, None)) * 2, [np.eye(3)]),
    ]
    for inputs, output, values in cases:
        problems = []
        for linker in ("cvm", "vm"):
            function = symcomp.function(inputs, output, mode=symcomp.Mode(linker))
            with pytest.raises((ValueError, IndexError)) as problem:
                function(*values)
            problems.append((type(problem.value), str(problem.value)))
        assert problems[0] == problems[1]


def test_what_shares_memory_with_what_is_written():
    x = symcomp.shared(np.arange(10.0), "x")
    for linker in ("cvm", "vm"):
        x.set_value(np.arange(10.0))
        update = T.inc_subtensor(x[1:], x[:-1])
        step = symcomp.function([], [], updates=[(x, update)], mode=symcomp.Mode(linker))
        step()
        step()
        expected = np.arange(10.0)
        for _ in range(2):
            expected[1:] += expected[:-1].copy()
        np.testing.assert_array_equal(x.get_value(), expected)


def test_warnings_are_off_where_python_is_asked():
    x = T.dvector("x")
    f = symcomp.function([x], T.gammaln(x) + T.sort(x).sum(), mode=symcomp.Mode("cvm"))
    with np.errstate(all="raise"):
        assert np.isnan(f(np.array([-np.inf, np.inf]))).all()
        with pytest.raises(FloatingPointError):
            np.float64(1) / np.float64(0)


def test_kernels_are_native():
    with config.change_flags(kernels=True):
        x = T.dvector("x")
        f = symcomp.function([x], T.exp(x) + 1, mode=symcomp.Mode("cvm"))
        assert kinds_of(f) == ["kernel"]
