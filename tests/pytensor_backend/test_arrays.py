"""Shapes, copies, indexing, sorting, conditions."""

import numpy as np
import pytest

pt = pytest.importorskip("pytensor.tensor")

import pytensor  # noqa: E402
from pytensor.compile.ops import DeepCopyOp, ViewOp  # noqa: E402
from pytensor.conditional import ifelse  # noqa: E402
from pytensor.raise_op import Assert, CheckAndRaise  # noqa: E402
from pytensor.tensor.basic import inverse_permutation, permute_row_elements  # noqa: E402
from pytensor.tensor.extra_ops import FillDiagonalOffset  # noqa: E402
from pytensor.tensor.subtensor import advanced_inc_subtensor  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 4))
T3 = RNG.normal(size=(2, 3, 4))


def test_shapes():
    x, n = pt.dtensor3("x"), pt.lscalar("n")
    outputs = [
        x.shape, x.shape[1], x.size, x.reshape((n, -1)), x.reshape((4, 3, 2)),
        x.dimshuffle(2, "x", 0, 1),
        x.T, pt.specify_shape(x, (None, 3, 4)), x.flatten(), pt.join_dims(x, 1, 2),
        pt.split_dims(x, (2, n), axis=2), pt.expand_dims(x, 1), pt.broadcast_to(x, (n, 2, 3, 4)),
        pt.join_dims(x, 1, 0), pt.atleast_Nd(x, n=4), pt.moveaxis(x, 0, 2), x.swapaxes(0, 1),
    ]  # fmt: skip
    compare([x, n], outputs, [T3, np.int64(2)])


def test_the_shape_of_a_scalar_needs_no_rewrite():
    v = pt.dvector("v")
    mode = backend.SYMCOMP.excluding("local_reshape_to_dimshuffle")
    assert pytensor.function([v], v.reshape(()), mode=mode)([2.0]) == 2.0


def test_new_arrays():
    x, n, m = pt.dscalar("x"), pt.lscalar("n"), pt.lscalar("m")
    v = pt.dvector("v")
    outputs = [
        pt.zeros((n, 2)), pt.alloc(x, n, m), pt.full((n,), x), pt.arange(n, m * 3, 2),
        pt.arange(0.5, x + 3, 0.7), pt.eye(n, m, 1), pt.stack([x, x + 1]), pt.as_tensor([n, m]),
        pt.concatenate([v, v[:1], pt.zeros(n)]), pt.ones_like(v), pt.identity_like(pt.outer(v, v)),
        pt.linspace(x, 5.0, 4), pt.tile(v, 2), pt.tri(3), pt.tril(pt.outer(v, v)), pt.bartlett(5),
        pt.empty((n, 0)), pt.diag(v), pt.diag(v, k=1), pt.diag(v, k=-2), pt.mgrid[0:3, 0:2][0],
    ]  # fmt: skip
    compare([x, n, m, v], outputs, [np.array(0.25), np.int64(2), np.int64(3), A[0]])


def test_parts_and_joins():
    x, y = pt.dmatrix("x"), pt.lmatrix("y")
    sizes = pt.lvector("sizes")
    outputs = [
        *pt.split(x, [1, 3], axis=1, n_splits=2), *pt.split(x, sizes, axis=0, n_splits=2),
        pt.join(1, x, y), pt.stack([x, x], axis=1), pt.horizontal_stack(x, y),
        pt.roll(x, 1, axis=1), pt.repeat(x, 2, axis=0),
        pt.pad(x, 1), pt.pad(x, ((0, 1), (2, 0)), mode="edge"), pt.pad(x, 2, mode="reflect"),
        pt.flip(x, axis=1), pt.cumsum(y, axis=0), pt.tile(x, (2, 1)),
    ]  # fmt: skip
    ints = np.arange(12).reshape(3, 4)
    compare([x, y, sizes], outputs, [A, ints, np.array([2, 1])])
    counts = np.array([2, 0, 1])
    compare([x, sizes], pt.repeat(x, sizes, axis=0), [A, counts])


@pytest.mark.parametrize("shape", [(2, 3), (1, 3)])
def test_masks_that_are_too_long(shape):
    x, mask = pt.dmatrix("x"), pt.tensor("mask", dtype="bool", shape=(None,))
    f = pytensor.function([x, mask], pt.inc_subtensor(x[mask], 1.0), mode="SYMCOMP")
    long = np.array([True, False, True])
    np.testing.assert_array_equal(f(np.zeros((3, 2)), long)[:, 0], [1, 0, 1])
    with pytest.raises(IndexError, match="boolean index"):
        f(np.zeros(shape), long)


def test_permutations_of_rows():
    x, rows, one = pt.dmatrix("x"), pt.lmatrix("rows"), pt.ivector("one")
    outputs = [
        permute_row_elements(x, rows), permute_row_elements(x, rows, inverse=True),
        permute_row_elements(x, one), permute_row_elements(x, one, inverse=True),
        inverse_permutation(one), inverse_permutation(rows),
    ]  # fmt: skip
    permutations = np.array([[2, 0, 3, 1], [3, 1, 0, 2], [0, 1, 2, 3]])
    compare([x, rows, one], outputs, [A, permutations, np.int32([1, 2, 3, 0])])


def test_unique_matrices():
    x = pt.lmatrix("x")
    outputs = [
        *pt.unique(x, return_index=True, return_inverse=True),
        *pt.unique(x, return_inverse=True, return_counts=True, axis=1),
        *pt.unique(x, return_inverse=True, axis=0),
    ]
    compare([x], outputs, [np.array([[3, 1, 3, 1], [0, 1, 0, 1], [3, 1, 3, 1]])])


def test_lengths_that_are_known_when_a_function_runs():
    x, y, n = pt.dmatrix("x"), pt.dmatrix("y"), pt.lscalar("n")
    z = pt.specify_shape(x, (n, y.shape[1])) + y
    f = compare([x, y, n], z, [A, 2 * A, np.int64(3)])
    with pytest.raises(AssertionError, match="SpecifyShape"):
        f(A, A, 2)


INDICES = [
    lambda x, i, v, b: x[1],
    lambda x, i, v, b: x[-1, 1:],
    lambda x, i, v, b: x[i],
    lambda x, i, v, b: x[i:, ::-1],
    lambda x, i, v, b: x[:, -i],
    lambda x, i, v, b: x[::2, i : i + 2],
    lambda x, i, v, b: x[..., None, 0],
    lambda x, i, v, b: x[v],
    lambda x, i, v, b: x[:, v],
    lambda x, i, v, b: x[v, v],
    lambda x, i, v, b: x[v[:, None], v],
    lambda x, i, v, b: x[v, 1:3],
    lambda x, i, v, b: x[v, None],
    lambda x, i, v, b: x[i, v],
    lambda x, i, v, b: x[b],
    lambda x, i, v, b: x[b[:, 0]],
    lambda x, i, v, b: x[:, b[0]],
    lambda x, i, v, b: x[b[:, 0], 1],
    lambda x, i, v, b: x[np.array([[0, 1], [2, 0]])],
    lambda x, i, v, b: x[[0, 2], [1, 3]],
]


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_indexing(index):
    x, i, v, b = pt.dmatrix("x"), pt.lscalar("i"), pt.lvector("v"), pt.matrix("b", dtype="bool")
    part = index(x, i, v, b)
    outputs = [
        part,
        part.set(2.0),
        part.inc(part * 3),
        part.set(part[..., :1] if part.ndim else part),
    ]
    values = [A, np.int64(1), np.array([2, 0, 2]), A > 0]
    if not part.ndim or part.type.shape[-1] == 1:
        outputs.pop()
    else:
        outputs[-1] = part.set(pt.specify_broadcastable(part[..., :1], part.ndim - 1))
    compare([x, i, v, b], outputs, values)


def test_masks_are_elementwise():
    """No positions are made of a mask: the graph of the truncated distributions of PyMC."""
    x, b = pt.dvector("x"), pt.vector("b", dtype="bool")
    f = compare([x, b], [pt.zeros_like(x)[b].set(1.0), x[b].inc(2.0)], [A[0], A[0] > 0])
    program = str(backend.function_of(f).program)
    assert "nonzero" not in program


def test_writes_that_ignore_repeated_positions():
    x, v = pt.dvector("x"), pt.lvector("v")
    once = advanced_inc_subtensor(x, pt.as_tensor(np.ones(3)), v, ignore_duplicates=True)
    compare([x, v], [once, x[v].inc(1.0)], [A[0], np.array([1, 1, 2])])


def test_diagonals():
    x, t = pt.dmatrix("x"), pt.dtensor3("t")
    outputs = [
        pt.diagonal(x), pt.diagonal(x, 1), pt.diagonal(t, -1, 1, 2), pt.diagonal(t, 0, 0, 2),
        pt.fill_diagonal(x, 5.0), FillDiagonalOffset()(x, 5.0, 1), pt.linalg.trace(x),
        pt.diag(pt.diagonal(x)), pt.diagonal(pt.diag(x[0])),
    ]  # fmt: skip
    compare([x, t], outputs, [A, T3])


def test_positions_and_order():
    x, i, v = pt.dmatrix("x"), pt.lvector("i"), pt.dvector("v")
    outputs = [
        pt.sort(x, axis=0), pt.argsort(x, axis=1), x.argmax(), x.argmin(0), pt.sort(v),
        *pt.nonzero(x), pt.searchsorted(pt.sort(v), x),
        pt.searchsorted(v, 0.1, "right", pt.argsort(v)),
        pt.unique(i), *pt.unique(i, return_index=True, return_inverse=True, return_counts=True),
        pt.ravel_multi_index((i, i), (3, 4)), *pt.unravel_index(i, (2, 3)), pt.bincount(i),
        pt.compress(i > 1, x, axis=0), pt.take(x, i, axis=0),
        pt.choose(i // 2, (x[0, :3], x[1, 1:])),
    ]  # fmt: skip
    compare([x, i, v], outputs, [A, np.array([2, 0, 2]), A[0]], fallbacks=None)


def test_choices():
    c, x, y = pt.lscalar("c"), pt.dvector("x"), pt.dvector("y")
    a, b = ifelse(c > 1, [x, pt.exp(x)], [y, y[:1]])
    compare([c, x, y], [a, b, ifelse(c, x.sum(), y.prod())], [np.int64(2), A[0], A[1]])
    lazy = pytensor.function([c, x], ifelse(c, x[0], x[10]), mode="SYMCOMP")
    assert lazy(1, A[0]) == A[0, 0]
    with pytest.raises(IndexError):
        lazy(0, A[0])


def test_checks():
    x = pt.dvector("x")
    checked = CheckAndRaise(KeyError, "x must be positive")(x, pt.all(x > 0))
    f = pytensor.function([x], Assert("first")(checked, x[0] > 1) * 2, mode="SYMCOMP")
    np.testing.assert_array_equal(f([2.0, 1.0]), [4.0, 2.0])
    with pytest.raises(KeyError, match="x must be positive"):
        f([2.0, -1.0])
    with pytest.raises(AssertionError, match="first"):
        f([0.5, 1.0])


def test_copies_and_views():
    x = pt.dmatrix("x")
    outputs = [DeepCopyOp()(x), ViewOp()(x) + 1, x, x.T, x[0]]
    f = compare([x], outputs, [A])
    value = A.copy()
    for z in f(value):
        z[...] = 9
    np.testing.assert_array_equal(value, A)


def test_scalars_at_the_ends():
    x = pt.dscalar("x")
    number = pt.scalar_from_tensor(x)
    f = pytensor.function([x, number.type("n")], [number], mode="SYMCOMP", on_unused_input="ignore")
    (got,) = f(2.0, 1.0)
    assert got == 2.0 and np.ndim(got) == 0
    n = number.type("n")
    g = pytensor.function([n], pt.tensor_from_scalar(n) * 2, mode="SYMCOMP")
    assert g(3.0) == 6.0
