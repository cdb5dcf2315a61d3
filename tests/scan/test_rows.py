"""Rows around loops: native calls give what the ops give, and no loop needs Python for them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.scan.rows import Continued, FirstRows, LastRows, LeadingRows

ROWS = st.integers(0, 5)
DTYPES = ["float64", "float32", "float16", "complex128", "int8", "bool"]
LAYOUTS = {
    "C order": lambda x: x,
    "Fortran order": np.asfortranarray,
    "backwards": lambda x: x[::-1],
    "every second column": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
}
STEPS = {
    "scan of two sequences": lambda x, y: symcomp.scan(
        lambda a, b, s: s * T.exp(a) + b, [x, y], T.zeros_like(x[0]), return_updates=False
    ),
    "map of two sequences": lambda x, y: symcomp.map(lambda a, b: T.exp(a) * b, [x, y])[0],
    "taps of a sequence": lambda x, y: symcomp.scan(
        lambda a, b, c, s: T.tanh(s + T.exp(a) * T.exp(b) * c), [{"input": x, "taps": [-1, 0]}, y],
        T.zeros_like(y[0]), return_updates=False
    ),
}  # fmt: skip


def compared(op, *values):
    """Compare a native op with its own ``perform``, for a call that plans and one that repeats."""
    inputs = [T.tensor(v.dtype, shape=(None,) * v.ndim) for v in values]
    f = symcomp.function(inputs, op(*inputs))
    expected = op.perform(*values)
    for _ in range(2):
        found = f(*values)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert " python(" not in f.plan()


@st.composite
def given_rows(draw, rows):
    """Draw an array of this many rows."""
    shape = (rows, *draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)))
    x = np.arange(np.prod(shape)).reshape(shape).astype(draw(st.sampled_from(DTYPES)))
    return LAYOUTS[draw(st.sampled_from([*LAYOUTS]))](x)


@settings(max_examples=20)
@given(data=st.data(), n=ROWS, m=ROWS, more=st.integers(-3, 3))
def test_rows_are_native(data, n, m, more):
    x = data.draw(given_rows(n))
    compared(LeadingRows(), x, np.asarray(n + m))
    compared(LastRows(more), np.asarray(m), x)
    compared(FirstRows("a"), x, np.asarray(min(n, m)))
    compared(Continued(), x, np.ones((m, *x.shape[1:]), x.dtype)[::-1])


def test_too_few_rows_are_refused_each_time():
    x, n = T.matrix(), T.lscalar()
    f = symcomp.function([x, n], FirstRows("the rows")(x, n) * 2)
    value = np.arange(6, dtype=x.dtype).reshape(3, 2)
    for steps, problem in ((2, None), (4, ShapeError), (3, None), (-1, ValueError), (2, None)):
        if problem is None:
            np.testing.assert_array_equal(f(value, steps), 2 * value[:steps])
        else:
            with pytest.raises(problem, match="steps"):
                f(value, steps)


@pytest.mark.parametrize("name", STEPS)
def test_loops_call_no_python(name):
    with config.change_flags(kernels=True):
        x, y = T.dmatrices("xy")
        z = STEPS[name](x, y)
        f = symcomp.function([x, y], [z, *symcomp.grad(z.sum(), [x, y])])
    for rows in (4, 6, 4):
        f(np.ones((rows, 3)), np.ones((rows + 1, 3)))
    assert " python(" not in f.plan()
