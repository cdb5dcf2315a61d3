"""Shapes, axes, filled tensors, joins: against NumPy over shapes, dtypes and axes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(1)
A = RNG.normal(size=(3, 4))
B = RNG.normal(size=(2, 1, 3))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_every_dtype_through_shape_ops(dtype):
    x = (A > 0).astype(dtype)
    check(lambda v: v.T, x, expected=np.transpose, grad=dtype == "float64")
    check(
        lambda v: v.reshape((2, -1)),
        x,
        expected=lambda v: v.reshape(2, -1),
        grad=dtype == "float64",
    )
    check(
        lambda v: T.concatenate([v, v], 1),
        x,
        expected=lambda v: np.concatenate([v, v], 1),
        grad=dtype == "float64",
    )
    check(lambda v: T.zeros_like(v), x, expected=np.zeros_like, grad=False)
    check(
        lambda v: T.tile(v, (2, 1)),
        x,
        expected=lambda v: np.tile(v, (2, 1)),
        grad=dtype == "float64",
    )


def test_shape_and_size():
    check(T.shape, A, expected=np.array([3, 4]))
    check(lambda x: x.size, B, expected=np.array(6))
    check(lambda x: x.shape[1], A, expected=np.array(4))
    check(lambda x: x.shape[-1], B, expected=np.array(3))
    rows, columns = T.dmatrix("x").shape
    assert rows.dtype == columns.dtype == "int64"
    assert T.get_vector_length(T.dtensor3().shape) == 3
    with pytest.raises(ShapeError, match="no vector of known length"):
        T.get_vector_length(T.dvector())


@pytest.mark.parametrize("shape", [(12,), (4, 3), (2, -1), (-1,), (1, 12, 1), (2, 2, 3)])
def test_reshape(shape):
    check(lambda x: x.reshape(shape), A, expected=lambda x: x.reshape(shape))
    check(lambda x: x.reshape(T.constant(np.array(shape))), A, expected=lambda x: x.reshape(shape))


def test_reshape_with_symbolic_lengths():
    check(lambda x, n: x.reshape((n, -1)), A, np.int64(6), expected=lambda x, n: x.reshape(6, -1))
    check(
        lambda x, n: T.reshape(x, n, ndim=2),
        A,
        np.array([2, 6]),
        expected=lambda x, n: x.reshape(2, 6),
        static="none",
    )
    check(lambda x: x.reshape((x.shape[1], x.shape[0])), A, expected=lambda x: x.reshape(4, 3))
    check(lambda x: x.reshape(2, 6), A, expected=lambda x: x.reshape(2, 6))


def test_reshape_empty():
    check(lambda x: x.reshape((0, 5)), np.zeros((3, 0)), expected=lambda x: x.reshape(0, 5))


def test_reshape_errors():
    with pytest.raises(ShapeError, match=r"12 elements, which do not fit shape \(5,\)"):
        T.tensor("x", shape=(3, 4)).reshape((5,))
    x = T.dmatrix("x")
    with pytest.raises(ShapeError, match=r"shape \(3, 4\) \(12 elements\) does not fit"):
        x.reshape((5,)).eval({x: A})
    with pytest.raises(ShapeError, match="one length may be -1"):
        x.reshape((-1, -1))
    with pytest.raises(DTypeError, match="integer scalar"):
        x.reshape((2.0, 3))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_flatten(ndim):
    wanted = {1: (6,), 2: (2, 3), 3: (2, 1, 3)}[ndim]
    check(lambda x: x.flatten(ndim), B, expected=lambda x: x.reshape(wanted))


def test_flatten_and_ravel():
    check(lambda x: x.ravel(), B, expected=np.ravel)
    check(lambda x: x.flatten(), np.float64(2.0), expected=lambda x: x.reshape(1))
    with pytest.raises(ShapeError, match="ndim=4"):
        T.dmatrix().flatten(4)


@pytest.mark.parametrize("order", [(1, 0), ("x", 0, 1), (1, "x", 0), (0, 1, "x")])
def test_dimshuffle(order):
    def reference(x):
        kept = [a for a in order if a != "x"]
        return x.transpose(kept)[tuple(np.newaxis if a == "x" else slice(None) for a in order)]

    check(lambda x: x.dimshuffle(*order), A, expected=reference)
    check(lambda x: x.dimshuffle(order), A, expected=reference)


def test_dimshuffle_drops_only_length_one():
    check(lambda x: x.dimshuffle(2, 0), B, expected=lambda x: x[:, 0, :].T)
    with pytest.raises(ShapeError, match="axis 1 of x .* has length 4"):
        T.tensor("x", shape=(3, 4)).dimshuffle(0)
    x = T.dmatrix("x")
    with pytest.raises(ShapeError, match="cannot drop axis 1 of length 4"):
        x.dimshuffle(0).eval({x: A})
    with pytest.raises(ShapeError, match="named twice"):
        x.dimshuffle(0, 0)
    with pytest.raises(ShapeError, match="is no axis"):
        x.dimshuffle(0, 2)


def test_axes():
    check(lambda x: T.transpose(x, (2, 0, 1)), B, expected=lambda x: x.transpose(2, 0, 1))
    check(lambda x: x.transpose(2, 0, 1), B, expected=lambda x: x.transpose(2, 0, 1))
    check(lambda x: x.transpose((2, 0, 1)), B, expected=lambda x: x.transpose(2, 0, 1))
    check(lambda x: x.swapaxes(0, -1), B, expected=lambda x: x.swapaxes(0, -1))
    check(
        lambda x: T.moveaxis(x, (0, 2), (1, 0)),
        B,
        expected=lambda x: np.moveaxis(x, (0, 2), (1, 0)),
    )
    check(lambda x: x.mT, B, expected=lambda x: np.swapaxes(x, -1, -2))
    check(lambda x: T.expand_dims(x, (0, -1)), A, expected=lambda x: np.expand_dims(x, (0, -1)))
    check(lambda x: T.squeeze(x), B, expected=np.squeeze)
    check(lambda x: x.squeeze(1), B, expected=lambda x: x.squeeze(1))
    check(lambda x: T.shape_padleft(x, 2), A, expected=lambda x: x[None, None])
    check(lambda x: T.shape_padright(x), A, expected=lambda x: x[..., None])
    check(lambda x: T.shape_padaxis(x, 1), A, expected=lambda x: x[:, None])
    for n, reference in ((1, np.atleast_1d), (2, np.atleast_2d), (3, np.atleast_3d)):
        for v in (np.float64(1.0), A[0], A, B):
            check(getattr(T, f"atleast_{n}d"), v, expected=reference)
    with pytest.raises(ShapeError, match="no permutation"):
        T.transpose(T.dmatrix(), (0,))
    with pytest.raises(ShapeError, match="axis 5 does not exist"):
        T.swapaxes(T.dmatrix(), 0, 5)


def test_specify_shape_and_broadcast_patterns():
    x = T.dmatrix("x")
    y = T.specify_shape(x, (None, 4))
    assert y.type.shape == (None, 4)
    check(lambda v: T.specify_shape(v, (3, None)), A, expected=lambda v: v)
    with pytest.raises(ShapeError, match=r"has shape \(3, 4\), specified was \('any', 5\)"):
        T.specify_shape(x, (None, 5)).eval({x: A})
    assert T.addbroadcast(x, 0).broadcastable == (True, False)
    assert T.unbroadcast(T.drow(), 0).broadcastable == (False, False)
    assert T.patternbroadcast(T.drow(), (False, True)).broadcastable == (False, True)
    check(lambda a, b: T.addbroadcast(a, 0) + b, A[:1], A, expected=np.add)
    check(lambda v: T.unbroadcast(v, 1), B, expected=lambda v: v)


def test_alloc_and_friends():
    check(lambda v: T.alloc(v, 2, 3, 4), A, expected=lambda v: np.broadcast_to(v, (2, 3, 4)).copy())
    check(
        lambda v, n: T.alloc(v, n, 2),
        np.float64(3),
        np.int64(2),
        expected=lambda v, n: np.full((2, 2), 3.0),
    )
    check(lambda v: T.fill(v, 2.5), A, expected=lambda v: np.full_like(v, 2.5))
    check(lambda v: T.full_like(v, 2), A, expected=lambda v: np.full_like(v, 2), grad=False)
    check(
        lambda v: T.broadcast_to(v, (2, 5, 3)),
        B,
        expected=lambda v: np.broadcast_to(v, (2, 5, 3)).copy(),
    )
    check(
        lambda a, b: T.broadcast_arrays(a, b),
        A[:, :1],
        A[:1],
        expected=lambda a, b: np.broadcast_arrays(a, b),
    )
    assert T.zeros((2, 3), "int32").eval().dtype == np.int32
    assert T.ones(3).eval().tolist() == [1.0] * 3
    assert T.full((2,), 7).eval().tolist() == [7, 7]
    assert T.zeros(()).eval().shape == () and T.zeros((0, 2)).eval().shape == (0, 2)
    x = T.dmatrix("x")
    assert T.zeros(x.shape).eval({x: A}).shape == (3, 4)
    assert T.zeros((x.shape[0], 2)).type.shape == (None, 2)
    with pytest.raises(ShapeError, match="more axes than the shape"):
        T.alloc(x, 2)
    with pytest.raises(ShapeError, match="zeros: a length is -1"):
        T.zeros((-1,))
    with pytest.raises(ShapeError, match="addbroadcast"):
        T.alloc(x, 3, 4).eval({x: A[:1]})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_join_stack_split(axis):
    check(
        lambda x, y: T.join(axis, x, y),
        A,
        A * 2,
        expected=lambda x, y: np.concatenate([x, y], axis),
    )
    check(
        lambda x, y: T.stack([x, y], axis=axis),
        A,
        A * 2,
        expected=lambda x, y: np.stack([x, y], axis),
    )
    sizes = [1, 0, A.shape[axis] - 1]
    check(lambda x: T.split(x, sizes, axis=axis), A, expected=lambda x: np.split(x, [1, 1], axis))


def test_join_details():
    x, n = A, A[:0]
    check(lambda a, b: T.concatenate([a, b]), x, n, expected=lambda a, b: np.concatenate([a, b]))
    check(
        lambda a, b: T.concatenate([a, b]),
        x,
        x.astype("float32"),
        expected=lambda a, b: np.concatenate([a, b]),
        tolerance=2e-2,
    )
    check(lambda a, b: T.vertical_stack(a, b), x, x, expected=lambda a, b: np.vstack([a, b]))
    check(lambda a, b: T.horizontal_stack(a, b), x, x, expected=lambda a, b: np.hstack([a, b]))
    check(lambda a, b: T.hstack([a, b]), x[0], x[1], expected=lambda a, b: np.hstack([a, b]))
    check(lambda a, b: T.vstack([a, b]), x[0], x[1], expected=lambda a, b: np.vstack([a, b]))
    check(
        lambda a: T.stacklists([[a, a], [a, 2 * a]]),
        np.float64(3),
        expected=lambda a: np.array([[a, a], [a, 2 * a]]),
    )
    check(lambda a: T.stack([a, 1, 2.5]), np.float64(3), expected=lambda a: np.array([a, 1, 2.5]))
    check(lambda a: T.join(T.constant(1), a, a), x, expected=lambda a: np.concatenate([a, a], 1))
    with pytest.raises(ShapeError, match="length 3 on axis 1, the others have 4"):
        T.join(0, T.tensor("a", shape=(2, 4)), T.tensor("b", shape=(2, 3)))
    with pytest.raises(ShapeError, match="do not add up"):
        T.split(T.tensor("a", shape=(4,)), [1, 2])
    a, b = T.dmatrices("a", "b")
    with pytest.raises(ShapeError, match=r"shapes \(3, 4\), \(4, 3\)"):
        T.join(0, a, b).eval({a: A, b: A.T})
    with pytest.raises(ShapeError, match="scalars cannot be joined"):
        T.join(0, T.dscalar(), T.dscalar())


@pytest.mark.parametrize("reps", [2, (2,), (1, 3), (2, 1, 2), (0, 1)])
def test_tile(reps):
    check(lambda x: T.tile(x, reps), A, expected=lambda x: np.tile(x, reps))


def test_tile_by_a_vector():
    x, reps = T.dmatrix("x"), T.lvector("reps")
    f = symcomp.function([x, reps], T.tile(x, reps, ndim=3))
    for counts in ([2], [2, 3], [2, 0, 3]):
        expected = np.tile(A, [1] * (3 - len(counts)) + counts)
        np.testing.assert_array_equal(f(A, counts), expected)
    with pytest.raises(AssertionError, match="more entries than ndim=3"):
        f(A, [1, 1, 1, 1])
    with pytest.raises(ShapeError, match="pass ndim"):
        T.tile(x, reps)
    like_shape = T.tile(x, T.concatenate([[2], x.shape[1:]]))
    np.testing.assert_array_equal(like_shape.eval({x: A}), np.tile(A, (2, A.shape[1])))
    assert T.tile(T.tensor("a", shape=(4,)), np.array([2, 3])).type.shape == (2, 12)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_repeat_roll_flip(axis):
    check(lambda x: T.repeat(x, 2, axis), A, expected=lambda x: np.repeat(x, 2, axis))
    check(lambda x: T.roll(x, 3, axis), A, expected=lambda x: np.roll(x, 3, axis))
    check(lambda x: T.roll(x, -1, axis), A, expected=lambda x: np.roll(x, -1, axis))
    check(lambda x: T.flip(x, axis), A, expected=lambda x: np.flip(x, axis))


def test_repeat_by_counts_and_roll_by_several():
    check(
        lambda x, n: T.repeat(x, n, 1),
        A,
        np.array([0, 1, 2, 3]),
        expected=lambda x, n: np.repeat(x, n, 1),
    )
    check(lambda x: T.roll(x, (1, 2), (0, 1)), A, expected=lambda x: np.roll(x, (1, 2), (0, 1)))
    check(lambda x: x.repeat(0, 0), A, expected=lambda x: x.repeat(0, 0))


@pytest.mark.parametrize(
    "mode",
    [
        "constant",
        "edge",
        "linear_ramp",
        "maximum",
        "mean",
        "median",
        "minimum",
        "reflect",
        "symmetric",
        "wrap",
    ],
)
@pytest.mark.parametrize("width", [1, (2, 1), ((0, 1), (3, 2)), 5])
def test_pad(mode, width):
    check(
        lambda x: T.pad(x, width, mode),
        A,
        expected=lambda x: np.pad(x, width, mode),
        rtol=1e-10,
        atol=1e-12,
    )


def test_pad_options():
    check(
        lambda x: T.pad(x, 2, constant_values=(1, 2)),
        A,
        expected=lambda x: np.pad(x, 2, constant_values=(1, 2)),
    )
    check(
        lambda x: T.pad(x, 2, "mean", stat_length=2),
        A,
        expected=lambda x: np.pad(x, 2, "mean", stat_length=2),
    )
    check(
        lambda x: T.pad(x, 2, "linear_ramp", end_values=4),
        A,
        expected=lambda x: np.pad(x, 2, "linear_ramp", end_values=4),
        rtol=1e-10,
    )
    with pytest.raises(ValueError, match="mode='other'"):
        T.pad(T.dvector(), 1, "other")


RANGES = [(5,), (2, 7), (7, 2, -2), (0, 5, 2), (1.0, 2.0, 0.25), (3, 3), (5, 2), (0,)]


@pytest.mark.parametrize("args", RANGES)
def test_arange(args):
    check(lambda: T.arange(*args), expected=lambda: np.arange(*args))
    symbols = [np.asarray(a) for a in args]
    check(lambda *v: T.arange(*v), *symbols, expected=lambda *v: np.arange(*args), grad=False)


LINKERS = ["py", "vm", "cvm"]


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_arange_without_a_step(linker, dtype):
    stop, step = T.scalars("stop", "step", dtype=dtype)
    f = symcomp.function([stop, step], T.arange(0, stop, step), mode=symcomp.Mode(linker))
    np.testing.assert_array_equal(f(5, 2), [0, 2, 4])
    for bad in (0, np.nan, np.inf) if dtype.startswith("f") else (0,):
        with pytest.raises(ShapeError, match="arange: step must not be 0"):
            f(5, bad)
    for bad in (np.nan, np.inf, -np.inf, 2.0**100) if dtype.startswith("f") else ():
        with pytest.raises(ShapeError, match="arange: .* must be finite"):
            f(bad, 1)
    grad = symcomp.grad(T.arange(0.0, 1.0, step).sum(), step) if dtype == "float64" else None
    assert grad is None or grad.eval({step: 0.25}) == 6


@pytest.mark.parametrize("linker", LINKERS)
def test_eye_of_negative_lengths(linker):
    n, m = T.iscalars("n", "m")
    f = symcomp.function([n, m], T.eye(n, m), mode=symcomp.Mode(linker))
    np.testing.assert_array_equal(f(2, 3), np.eye(2, 3))
    assert f(0, 2).shape == (0, 2)
    for lengths in ((-1, 2), (2, -1)):
        with pytest.raises(ShapeError, match="eye: rows and columns must not be negative"):
            f(*lengths)
        with pytest.raises(ShapeError, match="eye: rows and columns must not be negative"):
            T.eye(*lengths)


def test_other_creations():
    for args in ((0, 1, 5), (2, -3, 4), (0, 1, 1), (1, 2, 0)):
        check(lambda a=args: T.linspace(*a), expected=lambda a=args: np.linspace(*a))
        check(
            lambda a=args: T.linspace(*a, endpoint=False),
            expected=lambda a=args: np.linspace(*a, endpoint=False),
        )
    check(lambda: T.logspace(0, 2, 4), expected=lambda: np.logspace(0, 2, 4))
    check(lambda: T.geomspace(-1.0, -100.0, 3), expected=lambda: np.geomspace(-1, -100, 3))
    check(
        lambda: T.geomspace(1, 1000, 4, dtype="int64"),
        expected=lambda: np.geomspace(1, 1000, 4, dtype="int64"),
    )
    check(
        lambda: T.linspace(-2, 2, 6, dtype="int32"),
        expected=lambda: np.linspace(-2, 2, 6, dtype="int32"),
    )
    check(lambda: T.mgrid[:3], expected=lambda: np.mgrid[:3])
    mask = A > 0
    check(T.tril, mask, expected=np.tril)
    check(T.triu, mask, expected=np.triu)
    check(lambda: T.geomspace(1.0, 8.0, 4), expected=lambda: np.geomspace(1, 8, 4))
    for args in ((3,), (2, 3), (3, 2, 1), (3, 3, -1), (0,)):
        check(lambda a=args: T.eye(*a), expected=lambda a=args: np.eye(*a))
        check(lambda a=args: T.tri(*a), expected=lambda a=args: np.tri(*a))
    for k in (-1, 0, 2):
        check(lambda x, k=k: T.tril(x, k), A, expected=lambda x, k=k: np.tril(x, k))
        check(lambda x, k=k: T.triu(x, k), A, expected=lambda x, k=k: np.triu(x, k))
        check(
            lambda k=k: list(T.tril_indices(3, k, 4)), expected=lambda k=k: np.tril_indices(3, k, 4)
        )
        check(
            lambda k=k: list(T.triu_indices(3, k, 4)), expected=lambda k=k: np.triu_indices(3, k, 4)
        )
    check(lambda x: T.identity_like(x), A, expected=np.eye(3, 4), grad=False)
    check(lambda: T.mgrid[0:3, 1:4:2], expected=lambda: list(np.mgrid[0:3, 1:4:2]))
    check(lambda: T.ogrid[0:3, 0:1:3j], expected=lambda: list(np.ogrid[0:3, 0:1:3j]))
    check(lambda: list(T.ix_([0, 2], [1, 1])), expected=lambda: list(np.ix_([0, 2], [1, 1])))
    check(lambda x: x[T.ix_([0, 2], [1, 1])], A, expected=lambda x: x[np.ix_([0, 2], [1, 1])])
    with pytest.raises(ShapeError, match="step must not be 0"):
        T.arange(0, 3, 0)
    for bad in (np.inf, np.nan, 1e30):
        with pytest.raises(ShapeError, match="must be finite"):
            T.arange(bad)


def test_arange_of_the_largest_integers():
    u, v = T.scalars("u", "v", dtype="uint64")
    f = symcomp.function([u, v], T.arange(u, v, 2))
    first = 2**63
    found = f(first, first + 3)
    assert found.dtype == "uint64" and found.tolist() == [first, first + 2]
    assert f(first + 3, first).tolist() == [] and f(3, 8).tolist() == [3, 5, 7]
    assert symcomp.function([u], T.arange(u))(3).tolist() == [0, 1, 2]
    with pytest.raises(ShapeError, match="must be finite"):
        symcomp.function([u], T.arange(u))(first)
    with pytest.raises(ShapeError, match="must be finite"):
        T.arange(np.uint64(first))


def test_arange_of_a_step_too_long_to_divide_by():
    v = T.dvector()
    f = symcomp.function([v], T.arange(v[0], v[1], v[2]))
    for bounds in [(0, 5, 1e308), (1e-320, 2e-320, 1e308), (5, 0, -1e308), (5, 0, 1e308)]:
        np.testing.assert_array_equal(f(bounds), np.arange(*bounds))
        np.testing.assert_array_equal(T.arange(*map(float, bounds)).eval(), np.arange(*bounds))


@pytest.mark.parametrize("function", [T.linspace, T.logspace, T.geomspace])
def test_numbers_of_points(function):
    n = T.lscalar("n")
    z = function(1.0, 8.0, n)
    for count in (0, 1, 4):
        np.testing.assert_allclose(z.eval({n: count}), getattr(np, function.__name__)(1, 8, count))
    with pytest.raises(ShapeError, match="num must not be negative"):
        z.eval({n: -1})
    with pytest.raises(ShapeError, match="num must not be negative"):
        function(1.0, 8.0, -2)


def test_constructors():
    assert T.scalar().type.ndim == 0 and T.vector("v").name == "v"
    assert T.matrix(dtype="int32").dtype == "int32" and T.col().broadcastable == (False, True)
    assert [T.bvector().dtype, T.wscalar().dtype, T.irow().dtype, T.lmatrix().dtype] == [
        "int8",
        "int16",
        "int32",
        "int64",
    ]
    assert [T.ftensor3().dtype, T.dtensor4().dtype, T.cvector().dtype, T.zmatrix().dtype] == [
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    assert T.tensor7().ndim == 7
    assert [v.name for v in T.vectors("a", "b")] == ["a", "b"] and len(T.dmatrices(3)) == 3
    assert T.dvector("x").type == T.dvector
    assert T.tensor("float32", (False, True), "n").name == "n"
    assert T.tensor(dtype="int64", shape=(2, None)).type.shape == (2, None)
    assert T.TensorType("float32", (False, False))("q").ndim == 2
    with pytest.raises(TypeError, match="not both"):
        T.TensorType("float32")
    with pytest.raises(DTypeError, match="'float128' is not supported"):
        T.tensor(dtype="float128", shape=())


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_random_transposes_and_reshapes(shape, data):
    x = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    check(
        lambda v: v.transpose(order).flatten(),
        x,
        expected=lambda v: v.transpose(order).ravel(),
        grad=False,
    )


def test_second_derivatives_through_joins():
    x = T.dmatrix("x")
    y = T.concatenate([x, x**2], axis=1).reshape((-1,))
    symcomp.gradient.verify_grad(lambda v: symcomp.grad((T.join(0, v, v**2).T ** 2).sum(), v), [A])
    assert symcomp.grad(y.sum(), x).eval({x: A}).shape == A.shape


def test_axes_may_be_a_range():
    check(lambda x: T.sum(x, axis=range(1, 3)), B, expected=lambda x: x.sum((1, 2)))
    check(lambda x: T.flip(x, range(2)), B, expected=lambda x: np.flip(x, (0, 1)))
    check(lambda x: T.expand_dims(x, range(2)), B, expected=lambda x: np.expand_dims(x, (0, 1)))
