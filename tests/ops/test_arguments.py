"""Invalid arguments of functions: errors name the function and the argument. Misspelled names, and
functions without a symbolic form.
"""

import inspect

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError

v, m = T.dvector("v"), T.dmatrix("m")
s, n = T.dscalar("s"), T.lscalar("n")

NO_INTEGERS = [1.5, 1.0, True, np.True_, "a", 1j, float("nan"), object()]
# A value for each argument without a default.
GIVEN = {
    "repeats": 2, "n": 2, "k": 1, "N": 3, "M": 3, "num": 3, "kth": 1, "shift": 1, "axis1": 0,
    "axis2": 1, "reps": 2, "shape": (2,), "newshape": (-1,), "n_splits": 1, "splits_size": [2],
    "source": 0, "destination": 1, "start": 0, "stop": 1, "indices": [0], "condition": [True],
    "sections": 2, "axis": 0, "tup": [m, m], "tensors": [m, m], "arrays": [m, m], "offset": 0,
}  # fmt: skip
MODULES = (T, T.nnet, T.nlinalg, T.slinalg, T.fft)


def functions_with(*names):
    """Return the functions of users with an argument of one of these names, with that name."""
    found = {}
    for module in MODULES:
        for name, function in vars(module).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                for parameter in inspect.signature(function).parameters:
                    if parameter in names:
                        found[function, parameter] = None
    return [pytest.param(*pair, id=f"{pair[0].__name__}-{pair[1]}") for pair in found]


def call(function, **given):
    """Call it with what it needs besides."""
    for name, parameter in inspect.signature(function).parameters.items():
        needed = (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        )
        if needed and parameter.kind is not parameter.VAR_POSITIONAL:
            given.setdefault(name, GIVEN.get(name, m))
    return function(**given)


@pytest.mark.parametrize(("function", "name"), functions_with("axis", "axis1", "axis2", "axes"))
def test_axes_are_integers(function, name):
    for wrong in [*NO_INTEGERS, [0.5], (True,), -99, 2**70]:
        with pytest.raises((TypeError, ValueError)) as caught:
            call(function, **{name: wrong})
        said = str(caught.value)
        assert function.__name__ in said or "axis" in said or "axes" in said, said


COUNTS = functions_with(
    "n_ones", "ndim", "repeats", "reps", "n_splits", "num", "kth", "shift", "shape", "newshape",
    "k", "offset",
)  # fmt: skip
REAL = {
    "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "gammal", "gammau", "chi2sf",
}  # fmt: skip


@pytest.mark.parametrize(("function", "name"), COUNTS)
def test_counts_are_integers(function, name):
    if function.__name__ in REAL:
        pytest.skip("k is any real number there")
    for wrong in [*NO_INTEGERS, [0.5]]:
        with pytest.raises((TypeError, ValueError)) as caught:
            call(function, **{name: wrong})
        said = str(caught.value)
        assert function.__name__ in said or name in said, said


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: T.sum(m, axis=1.5), TypeError, "sum: axis must be a constant integer, got 1.5"),
        (lambda: T.sum(m, axis=T.constant(1.0)), TypeError, "sum: axis must be a constant integer"),
        (lambda: T.roll(v, 1.5), DTypeError, r"roll: shift must be an integer scalar, got 1\.5"),
        (lambda: T.roll(m, (1, 2), (0,)), ShapeError, r"roll: shift \(1, 2\) has 2 entries"),
        (lambda: T.split(v, [-1, 4], 2), ShapeError, r"split: the sizes \[-1, 4\] .* v \(float64"),
        (lambda: T.split(v, [0.5], 1), DTypeError, r"split: splits_size must be integers, got \[0"),
        (lambda: T.repeat(v, -1), ShapeError, "repeat: repeats is -1; it must not be negative"),
        (lambda: T.repeat(v, [1, -2]), ShapeError, r"repeat: repeats is \[1, -2\]; it must not"),
        (lambda: T.tile(v, -1), ShapeError, "tile: reps is -1; it must not be negative"),
        (lambda: T.specify_shape(v, ("a",)), TypeError, "specify_shape: the length of axis 0 in"),
        (lambda: T.specify_shape(v, 3), TypeError, r"specify_shape: shape is 3; for v .* 1 len"),
        (lambda: T.zeros(1.5), DTypeError, "zeros: a length must be an integer scalar, got 1.5"),
        (lambda: T.ones((2, -1)), ShapeError, "ones: a length is -1; it must be at least 0"),
        (lambda: T.eye(2, k=0.5), DTypeError, "eye: k must be an integer scalar, got 0.5"),
        (lambda: T.reshape(v, T.constant([1.5])), DTypeError, "reshape: newshape must be integers"),
        (lambda: T.tensor("x", shape=3), TypeError, "shape 3 is no sequence of lengths"),
        (lambda: T.exp(None), DTypeError, "exp: constant: NoneType None is not numeric"),
        (lambda: T.std(v, ddof="a"), TypeError, "std: ddof is 'a'; a real number is needed"),
        (lambda: T.nnet.softmax(m, 0.5), TypeError, "softmax: axis must be a constant integer"),
        (lambda: int(s), TypeError, r"int\(\) needs a number, but s \(float64 scalar\) is"),
        (lambda: float(s), TypeError, r"Use T\.cast\(s, 'float64'\), or its value, s\.eval\("),
        (lambda: complex(s), TypeError, r"complex\(\) needs a number, but s"),
        (lambda: range(n), TypeError, r"or a range, needs a number, but n .* T\.arange\(n\)"),
        (lambda: [1, 2][n], TypeError, r"an index of a Python list, .* but n \(int64 scalar\)"),
        (lambda: f"{s:.3f}", TypeError, r"the format '\.3f' needs a number, but s"),
        (lambda: float(symcomp.shared(1.0, "w")), TypeError, r"or its value, w\.get_value\(\)"),
        (lambda: T.sofmax, AttributeError, "no attribute 'sofmax': did you mean 'softmax'"),
        (lambda: T.nnet.sofmax, AttributeError, "did you mean 'softmax'"),
        (lambda: T.Sum, AttributeError, "did you mean 'sum'"),
        (lambda: T.svd, AttributeError, r"'svd': it is symcomp\.tensor\.nlinalg\.svd"),
        (lambda: T.linalg.inv, AttributeError, "no attribute 'inv': did you mean 'matrix_inverse'"),
        (lambda: T.nlinalg.choleski, AttributeError, "no attribute 'choleski'$"),
        (lambda: symcomp.functon, AttributeError, "did you mean 'function'"),
        (lambda: np.linalg.qr(m), TypeError, r"np\.linalg\.qr has no symbolic form for m \(float64 "
         r"matrix\): use symcomp\.tensor\.nlinalg\.qr"),
        (lambda: np.linalg.inv(m), TypeError, r"use symcomp\.tensor\.nlinalg\.matrix_inverse"),
        (lambda: np.linalg.cholesky(m), TypeError, r"use symcomp\.tensor\.slinalg\.cholesky"),
        (lambda: np.fft.fft(v), TypeError, r"np\.fft\.fft .* use symcomp\.tensor\.fft\.fft"),
        (lambda: np.polyfit(v, v, 2), TypeError, r"np\.polyfit .* an op of it by symcomp\.as_op"),
        (lambda: np.add.accumulate(v), TypeError, r"np\.add\.accumulate .* use .*tensor\.cumsum"),
        (lambda: np.sin(v, out=np.ones(2)), TypeError, r"np\.sin with out has no symbolic form"),
        (lambda: np.frexp(v), TypeError, r"np\.frexp has no symbolic form for v"),
    ],
)  # fmt: skip
def test_messages(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_other_classes_with_protocols_come_first():
    class Mine:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return "mine"

        def __array_function__(self, func, types, args, kwargs):
            return "mine"

    assert np.frexp.__class__ and np.heaviside(v, Mine()) == "mine"
    assert np.interp(v, Mine(), v) == "mine"


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
w = symcomp.shared(np.zeros(3), "w")


@pytest.mark.parametrize(
    "use",
    [
        lambda: symcomp.function([v], v)(MASKED),
        lambda: symcomp.function([m], m)([MASKED, MASKED]),
        lambda: symcomp.function([s], s)(np.ma.masked),
        lambda: symcomp.function([symcomp.In(v, value=MASKED)], v),
        lambda: v.eval({v: MASKED}),
        lambda: symcomp.shared(MASKED),
        lambda: symcomp.shared(MASKED, borrow=True),
        lambda: w.set_value(MASKED),
        lambda: w.set_value(MASKED, borrow=True),
        lambda: T.constant(MASKED),
        lambda: v + MASKED,
        lambda: np.multiply(MASKED, v),
        lambda: T.stack([v, MASKED]),
        lambda: T.set_subtensor(v[:], MASKED),
        lambda: v[np.ma.array([0, 1], mask=[0, 1])],
        lambda: symcomp.function([], updates=[(w, MASKED)]),
        lambda: symcomp.function([], w, givens=[(w, MASKED)]),
        lambda: symcomp.scan(lambda a: a, sequences=MASKED),
        lambda: symcomp.gradient.verify_grad(T.exp, [MASKED]),
    ],
)
def test_masked_arrays_are_refused(use):
    """Masks would be lost, and the masked elements be taken for numbers."""
    with pytest.raises(TypeError, match="masked.*tensors have no masks. Pass|is no index"):
        use()
