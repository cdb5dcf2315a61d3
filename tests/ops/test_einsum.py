"""einsum against NumPy's, with derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp.tensor as T
from symcomp.core.walk import toposort
from symcomp.errors import ShapeError
from symcomp.tests.harness import ALL_DTYPES, check

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.normal(size=shape)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->", (2, 3)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 2)),
    ("ij,j", (2, 3), (3,)),
    ("...ij,...jk", (5, 2, 3), (5, 3, 4)),
    ("...i->...", (2, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ijk,k->ji", (2, 3, 4), (4,)),
    ("iji->j", (3, 2, 3)),
    ("i...,i...->...", (3, 2), (3, 1)),
    ("ab,bc,a->c", (2, 3), (3, 2), (2,)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("i,i->i", (3,), (1,)),
    (",ij->ij", (), (2, 3)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk,kl->il", (2, 0), (0, 3), (3, 2)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("bi,bi->b", (2, 3), (2, 3)),
    ("abij,abjk->abik", (2, 3, 2, 2), (2, 3, 2, 1)),
    ("abij,abij->ba", (2, 3, 2, 2), (2, 3, 2, 2)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("iii", (2, 2, 2)),
    ("ba", (2, 3)),
    ("aB,Bc", (2, 3), (3, 2)),
    ("ij,k->", (2, 3), (4,)),
    ("...ij->...ji", (2, 3)),
    ("i...j,j...->...i", (2, 3, 4), (4, 3)),
    ("...,...->...", (2, 3), (1, 3)),
    ("...i,i", (2, 3), (3,)),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 2)),
    (" i j , j k -> i k ", (2, 3), (3, 2)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case):
    text, *shapes = case
    check(
        lambda *v: T.einsum(text, *v),
        *(normal(*s) for s in shapes),
        expected=lambda *v: np.asarray(np.einsum(text, *v)).copy(),
        rtol=1e-10,
        atol=1e-13,
    )


def test_einsum_lists_and_errors():
    x, y = normal(2, 3), normal(3, 4)
    check(
        lambda a, b: T.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        x,
        y,
        expected=lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        rtol=1e-11,
    )
    check(
        lambda a, b: T.einsum(a, [0, 1], b, [1, 2]), x, y, expected=lambda a, b: a @ b, rtol=1e-11
    )
    with pytest.raises(ShapeError, match="2 terms for 1 operands"):
        T.einsum("ij,jk", T.constant(x))
    with pytest.raises(ShapeError, match="does not fit an operand with 2 axes"):
        T.einsum("i", T.constant(x))
    with pytest.raises(ShapeError, match="lengths 3 and 2"):
        T.einsum("ij,jk", T.constant(x), T.constant(x))
    with pytest.raises(ShapeError, match="output label"):
        T.einsum("ij->q", T.constant(x))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_random_einsums(data):
    length = dict(zip("ijkl", (2, 3, 1, 4), strict=True))
    terms = data.draw(st.lists(st.text("ijkl", min_size=1, max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = "".join(data.draw(st.lists(st.sampled_from(used), unique=True)))
    text = ",".join(terms) + "->" + output
    arrays = [
        np.cos(np.arange(np.prod([length[c] for c in t]))).reshape([length[c] for c in t])
        for t in terms
    ]
    check(
        lambda *v: T.einsum(text, *v),
        *arrays,
        expected=lambda *v: np.asarray(np.einsum(text, *v)).copy(),
        rtol=1e-9,
        atol=1e-12,
        grad=False,
        static="full",
    )


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("text", ["ij->i", "ii", "ij,jk->ik", "ij,ij->", "ij,jk,kl->il", "i,j->"])
def test_dtypes(text, dtype):
    """Sums keep the dtype of the operands: no 64-bit integers as in ``sum``."""
    shape = {"ii": (3, 3), "i,j->": (3,)}.get(text, (3, 3))
    values = [
        (np.arange(np.prod(shape)).reshape(shape) + k) % 2 for k in range(text.count(",") + 1)
    ]
    check(
        lambda *v: T.einsum(text, *v),
        *(v.astype(dtype) for v in values),
        expected=lambda *v: np.asarray(np.einsum(text, *v)).copy(),
        grad=dtype in ("float32", "complex128"),
    )


def test_sums_of_integers_wrap():
    x = np.array([100, 100], "int8")
    check(lambda v: T.einsum("i->", v), x, expected=lambda v: np.asarray(np.einsum("i->", v)))


def test_sums_of_stretched_integers():
    x, y = np.array([100, 100, 1], "int8"), np.array([2], "int8")
    check(lambda a, b: T.einsum("i,i->", a, b), x, y, expected=np.int8(-110))


def test_two_dtypes():
    check(
        lambda a, b: T.einsum("ij,jk", a, b),
        normal(2, 3).astype("float32"),
        np.arange(6).reshape(3, 2) + 1j,
        expected=lambda a, b: np.einsum("ij,jk", a, b),
        rtol=1e-6,
    )
    assert T.einsum(",i", 2.0, T.fvector()).dtype == "float32"


@pytest.mark.parametrize("labels", [[26, 0], [0, 26], [51, 25], [3, 2]], ids=str)
def test_order_of_implicit_labels(labels):
    check(
        lambda v: T.einsum(v, labels),
        normal(2, 3),
        expected=lambda v: np.einsum(v, labels).copy(),
    )


def test_ellipsis_in_lists():
    check(
        lambda a, b: T.einsum(a, [..., 0, 1], b, [..., 1, 2], [..., 0, 2]),
        normal(5, 2, 3),
        normal(3, 4),
        expected=lambda a, b: a @ b,
        rtol=1e-11,
        atol=1e-14,
    )


@pytest.mark.parametrize(
    ("text", "shapes", "said"),
    [
        ("ij,ij->", [(2, 3), (3, 2)], "axis 0 of the first has length 2, axis 0 of the second 3"),
        ("aij,aij->a", [(2, 2, 3), (2, 3, 2)], "einsum 'aij,aij->a': shapes"),
        ("ij,jk->ik", [(2, 3), (2, 3)], "the inner lengths must be equal"),
        ("ij,jk->ik", [(0, 3), (2, 0)], "the inner lengths must be equal"),
        ("bi,bi->b", [(2, 3), (3, 3)], "axis 0 must be equal"),
        ("i,i->i", [(2,), (3,)], r"shapes \(2,\) \(3,\)"),
        ("i,i->", [(3,), (1,)], "the inner lengths must be equal"),
        ("ii->i", [(2, 3)], "axis 0 of the first has length 2, axis 1 of the second 3"),
        ("ii", [(1, 3)], "axis 0 of the first has length 1, axis 1 of the second 3"),
    ],
    ids=str,
)
def test_lengths_that_differ(text, shapes, said):
    inputs = [T.tensor(dtype="float64", shape=(None,) * len(s)) for s in shapes]
    values = {x: np.ones(s) for x, s in zip(inputs, shapes, strict=True)}
    with pytest.raises(ValueError, match=said):
        T.einsum(text, *inputs).eval(values)
    if 1 not in [n for s in shapes for n in s] or text == "ii":
        with pytest.raises(ShapeError, match="a label has lengths|must be equal"):
            T.einsum(text, *(T.tensor(dtype="float64", shape=s) for s in shapes))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: T.einsum("...i->i", m), "lacks the '...' of its operands"),
        (lambda m: T.einsum("...i...->i", m), "does not fit an operand with 2 axes"),
        (lambda m: T.einsum("i.->i", m), "does not fit an operand with 2 axes"),
        (lambda m: T.einsum("i1->i", m), "does not fit an operand with 2 axes"),
        (lambda m: T.einsum("ij->ii", m), "output label 'i'"),
        (lambda m: T.einsum("ij->i->j", m), "output label '-'"),
        (lambda m: T.einsum("ij"), "is given no operand"),
        (lambda m: T.einsum(m, [0, -1]), "-1 is no label"),
        (lambda m: T.einsum(m, [0, 52]), "52 is no label"),
        (lambda m: T.einsum(m, ["i", "j"]), "'i' is no label"),
    ],
)
def test_subscripts_are_checked(call, said):
    with pytest.raises(ShapeError, match=said):
        call(T.dmatrix("m"))


def largest(lengths):
    """Return the most elements of an intermediate of a chain product with these lengths."""
    shapes = list(zip(lengths, lengths[1:], strict=False))
    x, y, z = (T.tensor(dtype="float64", shape=s) for s in shapes)
    nodes = toposort([T.einsum("ij,jk,kl->il", x, y, z)])
    return max(int(np.prod(out.type.shape)) for node in nodes for out in node.outputs)


def test_the_cheaper_order_is_taken():
    """With known lengths, (x y) z or x (y z), whichever has the smaller intermediate."""
    assert largest([2, 50, 3, 60]) < 200 < 50 * 60
    assert largest([60, 3, 50, 2]) < 200 < 60 * 50


def test_plain_products_are_dots():
    x, y = T.dmatrices("x", "y")
    assert [type(node.op) for node in toposort([T.einsum("ij,jk", x, y)])] == [T.Dot]
    v = T.dvector("v")
    assert [type(node.op) for node in toposort([T.einsum("i,i", v, v)])] == [T.Dot]
