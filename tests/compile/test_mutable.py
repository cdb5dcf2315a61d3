"""In(x, mutable=True): any op may write into the array that is passed."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import In
from symcomp.ifelse import ifelse


@pytest.fixture(autouse=True, params=[True, False], ids=["kernels", "numpy"])
def kernels(request):
    with symcomp.config.change_flags(kernels=request.param):
        yield


@pytest.fixture(params=["cvm", "vm"])
def linker(request):
    with symcomp.config.change_flags(linker=request.param):
        yield request.param


x, y, X = T.dvector("x"), T.dvector("y"), T.dmatrix("X")
VALUE = np.array([0.5, 1.5, 2.5])


def compiled(inputs, outputs, mutable=(x,), **options):
    return symcomp.function(
        [In(v, mutable=True) if v in mutable else v for v in inputs], outputs, **options
    )


def test_elementwise_results_go_into_the_argument(linker):
    f = compiled([x, y], T.exp(x) + y)
    (step,) = f.program.instructions
    assert step.into == f.program.inputs[:1]
    for size in (3, 3, 3, 10_000):
        value = np.linspace(0, 1, size)
        expected = np.exp(value) + 1
        result = f(value, np.ones(size))
        if linker == "cvm" and symcomp.config.kernels:
            assert result is value
        np.testing.assert_allclose(result, expected, rtol=1e-15)


@pytest.mark.usefixtures("linker")
def test_a_later_result_takes_the_array():
    """x is read by the first op, and its array is taken by one that does not read it."""
    f = compiled([X, y], T.tanh(T.sort(X.dot(y)))[None] * T.cumsum(X, axis=1), (X,))
    value = np.arange(9.0).reshape(3, 3)
    expected = np.tanh(np.sort(value @ VALUE)) * np.cumsum(value, axis=1)
    np.testing.assert_allclose(f(value.copy(), VALUE), expected, rtol=1e-14)


@pytest.mark.usefixtures("linker")
@pytest.mark.parametrize(
    "outputs",
    [
        [T.exp(x), x],
        [T.exp(x), x[1:]],
        [T.exp(x), x[::-1] * 2],
        [x + 1, x + 2],
        [T.exp(x) + x.sum(), x.shape[0]],
        [ifelse(x[0] > 0, T.exp(x), -x), x.sum()],
        [ifelse(x[0] > 1, T.exp(x), -x)],
        [T.exp(x) * T.tanh(y), y - x],
        [T.concatenate([x, x * 2]), x * 3],
    ],
    ids=str,
)
def test_what_is_read_later_is_not_overwritten(outputs):
    inputs = [x, y]
    f = compiled(inputs, outputs, (x, y), on_unused_input="ignore")
    g = symcomp.function(inputs, outputs, on_unused_input="ignore")
    for _ in range(4):
        for one, other in zip(f(VALUE.copy(), VALUE + 1), g(VALUE, VALUE + 1), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-15)


@pytest.mark.usefixtures("linker")
def test_arguments_that_do_not_serve_are_copied():
    f = compiled([x, y], T.exp(x) - y, (x,))
    expected = np.exp(VALUE) - VALUE
    fixed = VALUE.copy()
    fixed.flags.writeable = False
    spaced = np.repeat(VALUE, 2)[::2]
    shared = np.zeros(4)
    shared[:3] = VALUE
    for value in (fixed, spaced, VALUE[::-1].copy()[::-1], VALUE.tolist(), VALUE.astype("float32")):
        np.testing.assert_allclose(f(value, VALUE), expected, rtol=1e-15)
    assert fixed.tolist() == spaced.tolist() == VALUE.tolist()
    same = VALUE.copy()
    np.testing.assert_allclose(f(same, same), expected, rtol=1e-15)
    assert same.tolist() == VALUE.tolist()
    over = f(shared[:3], shared[1:])
    np.testing.assert_allclose(over, np.exp(VALUE) - [1.5, 2.5, 0.0], rtol=1e-15)
    assert shared.tolist() == [*VALUE, 0.0]


@pytest.mark.usefixtures("linker")
def test_defaults_and_states_are_not_overwritten():
    f = symcomp.function([In(x, value=VALUE.copy(), mutable=True)], T.exp(x))
    assert f().tolist() == f().tolist() == np.exp(VALUE).tolist()
    total = In(y, value=np.zeros(3), update=y + x)
    g = symcomp.function([In(x, mutable=True), total], T.exp(x) + y)
    assert g(VALUE.copy()).tolist() == np.exp(VALUE).tolist()
    assert g(VALUE.copy()).tolist() == (np.exp(VALUE) + VALUE).tolist()


@pytest.mark.usefixtures("linker")
def test_what_is_kept_between_calls_is_not_shared_with_the_caller():
    s = symcomp.shared(np.zeros(3))
    f = compiled([x], [], updates=[(s, T.exp(x))])
    value = VALUE.copy()
    f(value)
    value[:] = 0
    f(np.ones(3))
    np.testing.assert_allclose(s.get_value(), [np.e] * 3, rtol=1e-15)
    other = VALUE.copy()
    f(other)
    other[:] = -1
    np.testing.assert_allclose(s.get_value(), np.exp(VALUE), rtol=1e-15)


@pytest.mark.usefixtures("linker")
def test_nothing_that_is_kept_goes_by_way_of_the_argument():
    """The first sum may be in the array, the state that it makes may not."""
    s = symcomp.shared(np.zeros((3, 1)))
    f = compiled([x], [], updates=[(s, T.sort(T.cumsum(T.exp(x)))[:, None])])
    value = VALUE.copy()
    f(value)
    value[:] = 0
    expected = np.sort(np.cumsum(np.exp(VALUE)))[:, None]
    np.testing.assert_allclose(s.get_value(), expected, rtol=1e-15)
