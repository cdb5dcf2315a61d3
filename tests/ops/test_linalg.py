"""Products of vectors, matrices and tensors: against NumPy, with derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ops.linalg.products import SameLengths
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(4)


def normal(*shape):
    return RNG.normal(size=shape)


DOTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((1, 1), (1, 5)),
    ((), (2, 3)),
    ((2, 3, 4), (4,)),
    ((2, 3, 4), (5, 4, 2)),
    ((4,), (3, 4, 2)),
    ((0,), (0,)),
    ((3, 0), (0,)),
    ((2, 3, 0), (0, 2)),
]


@pytest.mark.parametrize("shapes", DOTS, ids=str)
def test_dot(shapes):
    x, y = (normal(*s) for s in shapes)
    check(T.dot, x, y, expected=lambda a, b: np.asarray(np.dot(a, b)), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_dot_dtypes(dtype):
    x, y = (
        (np.arange(6).reshape(2, 3) % 3).astype(dtype),
        (np.arange(12).reshape(3, 4) % 4).astype(dtype),
    )
    check(
        T.dot,
        x,
        y,
        expected=np.dot,
        grad=dtype in ("float32", "complex128"),
        rtol=1e-3 if dtype == "float16" else None,
    )
    check(T.dot, x, y.real.astype("float64"), expected=np.dot, grad=False)


MATMULS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((3,), (5, 3, 4)),
    ((6, 5, 2, 3), (6, 5, 3, 4)),
    ((6, 1, 2, 3), (1, 5, 3, 4)),
    ((5, 2, 0), (1, 0, 4)),
    ((5, 2, 3), (1, 3, 0)),
    ((0, 2, 3), (1, 3, 4)),
]


@pytest.mark.parametrize("shapes", MATMULS, ids=str)
def test_matmul(shapes):
    x, y = (normal(*s) for s in shapes)
    check(lambda a, b: a @ b, x, y, expected=lambda a, b: np.asarray(a @ b), rtol=1e-11, atol=1e-14)


def test_numpy_on_either_side():
    x = normal(2, 3)
    check(lambda b: x @ b, normal(3, 2), expected=lambda b: x @ b, rtol=1e-11)
    check(lambda b: np.dot(x, b), normal(3, 2), expected=lambda b: x @ b, rtol=1e-11)


@pytest.mark.parametrize(
    "axes",
    [0, 1, 2, [[1], [0]], [[0, 1], [1, 0]], [[-1], [0]], [1, 0], [[], []], [np.int64(1), (0,)]],
    ids=str,
)
def test_tensordot(axes):
    x, y = normal(3, 3), normal(3, 3)
    check(
        lambda a, b: T.tensordot(a, b, axes),
        x,
        y,
        expected=lambda a, b: np.tensordot(a, b, axes),
        rtol=1e-11,
        atol=1e-14,
    )


def test_other_products():
    a, b = normal(3), normal(4)
    check(T.outer, a, b, expected=np.outer)
    check(T.outer, normal(2, 2), np.float64(3), expected=np.outer)
    check(T.inner, normal(2, 3), normal(4, 3), expected=np.inner, rtol=1e-11)
    check(
        T.vdot,
        normal(3) + 1j,
        normal(3) + 2j,
        expected=lambda x, y: np.asarray(np.vdot(x, y)),
        rtol=1e-11,
    )
    x, y = normal(5, 2, 3), normal(5, 3, 4)
    check(T.batched_dot, x, y, expected=np.matmul, rtol=1e-11, atol=1e-14)
    check(
        T.batched_dot,
        x[:, :, 0],
        y[:, :2],
        expected=lambda p, q: np.einsum("bi,bij->bj", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        T.batched_dot,
        x[:, 0],
        y[:, :, 0],
        expected=lambda p, q: np.einsum("bi,bi->b", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(T.batched_dot, x[:, 0, 0], y, expected=lambda p, q: p[:, None, None] * q)
    check(
        lambda p, q: T.batched_tensordot(p, q, [[2], [1]]),
        x,
        y,
        expected=np.matmul,
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        lambda p: T.batched_tensordot(p, p, [[1, 2], [1, 2]]),
        x,
        expected=lambda p: (p * p).sum((1, 2)),
        rtol=1e-11,
    )
    check(
        T.matvec,
        x,
        y[:, :, 0],
        expected=lambda p, q: np.einsum("bij,bj->bi", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        T.vecmat,
        x[:, 0],
        y,
        expected=lambda p, q: np.einsum("bj,bji->bi", p, q),
        rtol=1e-11,
        atol=1e-14,
    )
    check(T.vecdot, x, x + 1j, expected=lambda p, q: (p.conj() * q).sum(-1), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("L", [0, 1, 2, 3, 0.5, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_norm(L, axis):
    x = normal(3, 4)
    reference = np.asarray(
        np.linalg.norm(x.ravel(), L) if axis is None else np.linalg.norm(x, L, axis)
    )
    check(lambda v: v.norm(L, axis=axis), x, expected=reference, rtol=1e-11, grad=L != 0)


def test_errors():
    with pytest.raises(ShapeError, match="axis 1 of x has length 3, axis 0 of y has length 4"):
        T.dot(T.tensor("x", shape=(2, 3)), T.tensor("y", shape=(4, 2)))
    x, y = T.dmatrices("x", "y")
    with pytest.raises(ShapeError, match=r"dot: shapes \(2, 3\) and \(2, 3\)"):
        T.dot(x, y).eval({x: normal(2, 3), y: normal(2, 3)})
    with pytest.raises(ShapeError, match="must not be scalars"):
        x @ T.dscalar()
    with pytest.raises(ShapeError, match="tensordot: axes=3"):
        T.tensordot(x, y, 3)
    with pytest.raises(ShapeError, match="batch axis"):
        T.batched_tensordot(x, y, [[0], [1]])
    with pytest.raises(ShapeError, match="batched_dot: axis 0 of x has length 2"):
        T.batched_dot(T.tensor("x", shape=(2, 3, 3)), T.tensor("y", shape=(4, 3, 3)))


# Functions of two matrices with what NumPy calls them.
PAIRS = [
    (T.inner, np.inner),
    (T.outer, np.outer),
    (T.kron, np.kron),
    (T.vdot, lambda a, b: np.asarray(np.vdot(a, b))),
    (T.vecdot, lambda a, b: np.asarray((a.conj() * b).sum(-1), a.dtype)),
    (T.tensordot, np.tensordot),
    (lambda a, b: a @ b.T, lambda a, b: a @ b.T),
    (lambda a, b: T.batched_dot(a, b), lambda a, b: np.einsum("bi,bi->b", a, b)),
]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("function", "reference"), PAIRS)
def test_dtypes(function, reference, dtype):
    x = (np.arange(6).reshape(2, 3) % 3).astype(dtype)
    y = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    if dtype[0] == "c":
        y = y * x.dtype.type(1 - 2j)
    check(function, x, y, expected=reference, grad=dtype in ("float32", "complex128"))


def test_two_dtypes():
    x, y = normal(2, 3).astype("float32"), np.arange(12, dtype="int16").reshape(3, 4)
    check(T.dot, x, y, expected=lambda a, b: a @ b, rtol=1e-5)
    check(lambda a, b: a @ b, x, y + 1j, expected=lambda a, b: a @ b, rtol=1e-5)
    assert T.dot(T.fvector(), 2.0).dtype == T.inner(T.fvector(), 2.0).dtype == "float32"
    assert T.kron(T.fvector(), 2).dtype == T.outer(T.fvector(), 2).dtype == "float32"


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 2)), ((3,), (2,)), ((), (2, 2)), ((2,), (2, 1, 3)), ((0,), (2, 2))],
    ids=str,
)
def test_kron(shapes):
    check(T.kron, *(normal(*s) for s in shapes), expected=lambda a, b: np.asarray(np.kron(a, b)))


@pytest.mark.parametrize(
    "shapes",
    [((2,), (3, 4)), ((3, 4), (2,)), ((2, 3), (4, 5)), ((2, 3, 4), (6, 7)), ((2,), (3, 4, 5))],
    ids=str,
)
def test_kron_of_theano(shapes):
    """By the definition of ``scipy.linalg.kron``, for any ranks: rows of blocks are joined."""

    def expected(a, b):
        rows = np.concatenate(np.multiply.outer(a, b), axis=1)
        return rows.ravel() if rows.ndim == 2 else np.concatenate(rows, axis=1)

    values = [normal(*s) for s in shapes]
    check(T.slinalg.kron, *values, expected=expected)


def test_products_of_stacks():
    x, y = normal(2, 3, 4), normal(2, 4, 3)
    check(
        lambda a, b: T.batched_tensordot(a, b, [[1, -1], [2, 1]]),
        x,
        y,
        expected=lambda a, b: np.einsum("bij,bji->b", a, b),
        rtol=1e-11,
    )
    check(
        lambda a, b: T.batched_tensordot(a, b, 1),
        normal(2, 3, 4),
        normal(2, 4, 3, 2),
        expected=lambda a, b: np.einsum("bij,bjkl->bikl", a, b),
        rtol=1e-11,
        atol=1e-14,
    )
    check(
        lambda a, b: T.batched_tensordot(a, b, 0),
        normal(2, 3),
        normal(2, 2),
        expected=lambda a, b: np.einsum("bi,bj->bij", a, b),
    )
    check(
        T.batched_dot,
        normal(2, 3, 2, 4),
        y,
        expected=lambda a, b: np.einsum("bijk,bkl->bijl", a, b),
        rtol=1e-11,
        atol=1e-14,
    )
    check(T.matvec, normal(3, 4), normal(5, 4), expected=np.matvec, rtol=1e-11, atol=1e-14)
    check(T.vecmat, normal(5, 3) + 1j, normal(3, 4), expected=vecmat, rtol=1e-11, atol=1e-14)
    check(T.vecdot, normal(5, 3), normal(3), expected=np.vecdot, rtol=1e-11, atol=1e-14)


def vecmat(x, y):
    return x.conj() @ y


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_random_matmul_shapes(data):
    """Any batch axes that broadcast, empty ones too, agree with NumPy."""
    batch = data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3))
    sides = []
    for core in ("nk", "km"):
        kept = batch[data.draw(st.integers(0, len(batch))) :]
        kept = [1 if data.draw(st.booleans()) else n for n in kept]
        lengths = {"n": 2, "k": 3, "m": 4}
        sides.append(normal(*kept, *(lengths[c] for c in core)))
    check(
        lambda a, b: a @ b,
        *sides,
        expected=lambda a, b: a @ b,
        rtol=1e-11,
        atol=1e-14,
        grad=sum(v.size for v in sides) < 60,
    )


def run(function, *shapes):
    """Evaluate at arrays whose lengths the graph does not know."""
    inputs = [T.tensor(dtype="float64", shape=(None,) * len(s)) for s in shapes]
    values = {x: np.ones(s) for x, s in zip(inputs, shapes, strict=True)}
    return function(*inputs).eval(values)


@pytest.mark.parametrize(
    ("function", "first", "second", "said"),
    [
        (T.matmul, (2, 3, 2, 2), (3, 2, 2, 2), "axis 0 of the first has length 2, axis 0 of the"),
        (T.matmul, (2, 2, 2), (4, 2, 2), r"shapes \(2, 2, 2\) and \(4, 2, 2\) do not fit"),
        (T.matmul, (2, 2, 3), (4, 2), "axis 2 of the first has length 3, axis 0 of the second 4"),
        (lambda a, b: T.tensordot(a, b, [[0, 1], [0, 1]]), (2, 3), (3, 2), "tensordot: shapes"),
        (lambda a, b: T.tensordot(a, b, 1), (2, 3), (2, 3), "the inner lengths must be equal"),
        (lambda a, b: T.batched_tensordot(a, b, 2), (5, 2, 3), (5, 3, 2), "batched_tensordot: sh"),
        (T.batched_dot, (2,), (4, 3, 1), "batched_dot: shapes"),
        (T.batched_dot, (2, 3), (3, 3), "batched_dot: shapes"),
        (T.inner, (2, 3), (3, 2), "dot: shapes"),
        (T.inner, (2, 2, 3), (3, 2), "inner: shapes"),
        (T.vecdot, (3,), (1,), "vecdot: shapes"),
        (T.dot, (2, 3, 4), (3, 2), "dot: shapes"),
    ],
)
def test_lengths_that_differ_at_run_time(function, first, second, said):
    """Also where the numbers of elements agree: nothing is multiplied that does not belong."""
    with pytest.raises(ShapeError, match=said):
        run(function, first, second)
    static = [T.tensor(dtype="float64", shape=s) for s in (first, second)]
    with pytest.raises(ShapeError, match="must be equal|do not broadcast"):
        function(*static)


def test_static_lengths_come_from_either_side():
    x, y = T.tensor(shape=(None, 2, None)), T.tensor(shape=(5, 3, 4))
    assert T.batched_dot(x, y).type.shape == (5, 2, 4)
    x, y = T.tensor(shape=(None, 6, 2, 3)), T.tensor(shape=(5, None, 3, 4))
    assert (x @ y).type.shape == (5, 6, 2, 4)
    x, y = T.tensor(shape=(1, None, 2, 3)), T.tensor(shape=(5, None, 3, 4))
    assert (x @ y).type.shape == (5, None, 2, 4)
    assert T.tensordot(x, x, [[1], [1]]).type.shape == (1, 2, 3, 1, 2, 3)


def test_same_lengths():
    x, y = normal(2, 3), normal(3, 4)
    check(lambda a, b: SameLengths("f", ((1, 0),))(a, b), x, y, expected=lambda a, b: b)
    known = SameLengths("f", ((0, 0),))(T.tensor(shape=(7,)), T.dvector())
    assert known.type.shape == (7,)


def test_two_norm_at_zero():
    x = T.dvector("x")
    slope = symcomp.grad(x.norm(2), x)
    np.testing.assert_allclose(slope.eval({x: [3.0, 4.0]}), [0.6, 0.8])
    np.testing.assert_array_equal(slope.eval({x: [0.0, 0.0]}), [0.0, 0.0])


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("L", [0, 1, 2, 3, np.inf, np.float64(3)])
def test_norm_dtypes(L, dtype):
    x = np.array([[1, 0, 2], [2, 1, 1]]).astype(dtype)
    kind = "float64" if dtype[0] in "biu" else x.real.dtype
    expected = np.asarray(np.linalg.norm(x.astype(np.result_type(x, kind)).ravel(), L), kind)
    check(lambda v: v.norm(L), x, expected=expected, grad=False)
    kept = x.astype(kind if dtype[0] != "c" else dtype)
    check(
        lambda v: v.norm(L, axis=(0, -1), keepdims=True),
        x,
        expected=np.reshape(np.linalg.norm(kept.ravel(), L), (1, 1)).astype(kind),
        grad=False,
    )


def test_arguments_are_checked():
    x, m, s = T.dvector("x"), T.dmatrix("m"), T.dscalar("s")
    with pytest.raises(ShapeError, match="an axis is given twice"):
        T.tensordot(m, m, [[0, 0], [0, 1]])
    with pytest.raises(ShapeError, match="1 axes of the first but 2 of the second"):
        T.tensordot(m, m, [[0], [0, 1]])
    with pytest.raises(ShapeError, match="axis 2 does not exist in a tensor with 2 axes"):
        T.tensordot(m, m, [[2], [0]])
    for axes in (1.5, [[0]], None):
        with pytest.raises(TypeError, match="an integer or a pair"):
            T.tensordot(m, m, axes)
    for axes in (-1, 2):
        with pytest.raises(ShapeError, match=f"batched_tensordot: axes={axes}"):
            T.batched_tensordot(m, m, axes)
    with pytest.raises(ShapeError, match="need a batch axis"):
        T.batched_tensordot(s, m)
    with pytest.raises(ShapeError, match="need a batch axis"):
        T.batched_dot(s, m)
    with pytest.raises(ShapeError, match="matvec: a matrix and a vector are needed"):
        T.matvec(x, x)
    with pytest.raises(ShapeError, match="vecmat: a vector and a matrix are needed"):
        T.vecmat(x, x)
    with pytest.raises(ShapeError, match="vecdot: two vectors are needed"):
        T.vecdot(s, x)
    with pytest.raises(TypeError, match="norm: L must be a real number, got 'fro'"):
        x.norm("fro")
    with pytest.raises(ShapeError, match="neither vector nor matrix"):
        T.Dot()(s, x)
    with pytest.raises(ShapeError, match="has not 3 axes"):
        T.BatchedDot()(m, m)
