"""Theano's names of sparse matrices: what programs and other libraries call, as they call it."""

import pickle
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
from symcomp.compat.missing import Missing
from symcomp.compat.names import OTHERS
from symcomp.compat.sparse import OP_CLASSES

MODE = symcomp.Mode(optimizer="None")
X = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 4]]))
Y = sp.csr_matrix(np.array([[0.0, 5, 1], [1, 0, 0], [0, 0, 4]]))
D = np.arange(9.0).reshape(3, 3)
V = np.array([2.0, 3.0, 4.0])
A, B = X.toarray(), Y.toarray()


@pytest.fixture
def S(theano: Any) -> Any:
    return theano.sparse


def dense(value: Any) -> Any:
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def computed(*outputs: Any) -> list[Any]:
    return symcomp.function([], list(outputs), mode=MODE)()


def test_every_name_is_there(S: Any) -> None:
    for module in ("theano.sparse", "theano.sparse.sharedvar", "theano.sparse.type"):
        for name in OTHERS[module].split():
            found = getattr(sys.modules[module], name)
            assert not isinstance(found, Missing) or name == "SparseConstantSignature"
    assert S.enable_sparse is True
    assert sys.modules["theano.sparse.basic"].hstack is S.hstack
    assert S.tensor is sys.modules["theano.tensor"]


#: name of the class, parameters, arguments, what it gives
CASES: list[tuple[str, Any, Any, Any]] = [
    ("AddSD", (), (X, D), A + D),
    ("AddSS", (), (X, Y), A + B),
    ("AddSSData", (), (X, X), A + A),
    ("Cast", ("float32",), (X,), A),
    ("ColScaleCSC", (), (X.tocsc(), V), A * V),
    ("ConstructSparseFromList", (), (D, D[:2], [2, 0]), [D[1], [0, 0, 0], D[0]]),
    ("CSM", ("csr",), (X.data, X.indices, X.indptr, [3, 3]), A),
    ("CSMGrad", (), (X.data, X.indices, X.indptr, [3, 3], Y.data, Y.indices, Y.indptr, [3, 3]),
     B[A != 0]),
    ("DenseFromSparse", (), (X,), A),
    ("Diag", (), (X,), A.diagonal()),
    ("Dot", (), (X, D), A @ D),
    ("Dot", (), (D, X), D @ A),
    ("EnsureSortedIndices", (False,), (X,), A),
    ("GetItem2d", (), (X, (slice(1, 3), 2)), A[1:3, 2:]),
    ("GetItem2Lists", (), (X, [0, 2], [2, 1]), [2.0, 3.0]),
    ("GetItem2ListsGrad", (), (X, [0, 2], [2, 1], V[:2]), [[0, 0, 2], [0, 0, 0], [0, 3, 0]]),
    ("GetItemList", (), (X, [2, 0]), A[[2, 0]]),
    ("GetItemListGrad", (), (X, [2, 0], Y[:2]), [B[1], [0, 0, 0], B[0]]),
    ("GetItemScalar", (), (X, [2, 1]), 3.0),
    ("HStack", (), (X, Y), np.hstack([A, B])),
    ("MulSD", (), (X, D), A * D),
    ("MulSS", (), (X, Y), A * B),
    ("MulSV", (), (X, V), A * V),
    ("Neg", (), (X,), -A),
    ("Remove0", (), (X * 0,), A * 0),
    ("RowScaleCSC", (), (X.tocsc(), V), A * V[:, None]),
    ("SamplingDot", (), (D, D, X), (D @ D.T) * A),
    ("SparseFromDense", ("csc",), (A,), A),
    ("SpSum", (0,), (X,), A.sum(axis=0)),
    ("SpSum", (None, True), (X,), A.sum()),
    ("SquareDiagonal", (), (V,), np.diag(V)),
    ("StructuredAddSV", (), (X, V), A + V * (A != 0)),
    ("StructuredDot", (), (X, D), A @ D),
    ("StructuredDotGradCSC", (), (X.tocsc().indices, X.tocsc().indptr, D, B),
     (B @ D.T).T[A.T != 0]),
    ("StructuredDotGradCSR", (), (X.indices, X.indptr, D, B), (B @ D.T)[A != 0]),
    ("Transpose", (), (X,), A.T),
    ("TrueDot", (), (X, Y), A @ B),
    ("TrueDot", (False,), (X, D), A @ D),
    ("Usmm", (), (2.0, X, D, B), 2 * A @ D + B),
    ("VStack", ("csr", "float32"), (X, Y), np.vstack([A, B])),
    ("EqualSS", (), (X, Y), A == B),
    ("NotEqualSD", (), (X, D), A != D),
    ("LessThanSS", (), (X, Y), A < B),
    ("GreaterThanSD", (), (X, D), A > D),
    ("LessEqualSS", (), (X, Y), A <= B),
    ("GreaterEqualSD", (), (X, D), A >= D),
]  # fmt: skip


def test_classes_of_ops(S: Any) -> None:
    """Values are right, results of constructors can be pickled, and comparisons are of dtype uint8.
    """
    made = [getattr(S, name)(*parameters) for name, parameters, _, _ in CASES]
    outputs = [op(*arguments) for op, (_, _, arguments, _) in zip(made, CASES, strict=True)]
    for (name, _, _, wanted), found in zip(CASES, computed(*outputs), strict=True):
        np.testing.assert_allclose(dense(found), wanted, err_msg=name)
        if name.endswith(("SS", "SD")) and name[:3] not in ("Add", "Mul"):
            assert found.dtype == "uint8"
    assert pickle.loads(pickle.dumps(S.SpSum(1))) == S.SpSum(1) != S.SpSum(0)
    assert isinstance(S.SpSum(1), S.SpSum)
    assert not isinstance(S.Dot(), sys.modules["theano.tensor"].Dot)
    assert {name for name, *_ in CASES} >= {
        name for name in OP_CLASSES if not name.endswith(("SS", "SD"))
    } - {"Binomial", "CSMProperties", "Multinomial", "Poisson"}
    with pytest.raises(NotImplementedError, match="CSM: kmap"):
        S.CSM("csr", [0])


def test_nodes_are_instances(S: Any) -> None:
    x, y = S.csr_matrix("x"), S.csr_matrix("y")
    assert isinstance((x + y).owner.op, S.AddSS)
    assert isinstance(S.dot(x, D).owner.op, S.StructuredDot)
    assert isinstance(S.CSR(V, [0, 1, 2], [0, 1, 2, 3], [3, 3]).owner.op, S.CSM)
    assert isinstance(S.csm_data(x).owner.op, S.CSMProperties)
    assert isinstance(S.vstack([x, y]).owner.op, S.VStack)
    assert not isinstance(S.vstack([x, y]).owner.op, S.HStack)


def test_stacks_are_csc(S: Any) -> None:
    x = S.csr_matrix("x")
    assert S.hstack([x, x]).format == S.vstack([x, x]).format == "csc"
    assert S.vstack([x, x], format="csr").format == "csr"
    assert S.construct_sparse_from_list(D, D, [0, 1, 2]).format == "csc"


def test_gradient_of_structured_dot(S: Any) -> None:
    for x in (X, X.tocsc()):
        (g,) = computed(S.structured_dot_grad(S.as_sparse(x), D, B))
        assert g.format == x.format and g.nnz == x.nnz
        np.testing.assert_allclose(g.toarray(), (B @ D.T) * (A != 0))


def test_text_classification_as_in_the_tutorial(theano: Any, S: Any) -> None:
    """Logistic regression on sparse features, a shared matrix of examples, updates of weights."""
    rng = np.random.default_rng(0)
    features = sp.random(60, 20, 0.2, "csr", rng=rng, dtype=np.float64)
    truth = rng.normal(size=20)
    labels = (features @ truth > 0).astype("int64")
    x = theano.shared(sp.csr_matrix(features), name="x")
    assert isinstance(x, S.sharedvar.SparseTensorSharedVariable)
    T = theano.tensor
    w, b, y = theano.shared(np.zeros(20), "w"), theano.shared(0.0, "b"), T.lvector("y")
    p = T.nnet.sigmoid(S.structured_dot(x, w.dimshuffle(0, "x")).flatten() + b)
    cost = T.nnet.binary_crossentropy(p, y).mean() + 1e-4 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    train = theano.function([y], cost, updates=[(w, w - 10 * gw), (b, b - 10 * gb)])
    costs = [float(train(labels)) for _ in range(100)]
    assert costs[-1] < 0.35 * costs[0]


def test_draws_are_seeded_by_numpy(S: Any) -> None:
    sp2 = sys.modules["theano.sparse.sandbox.sp2"]

    def draw() -> list[Any]:
        np.random.seed(3)
        outputs = [
            sp2.poisson(X), sp2.Binomial("csc", "float32")(5, 0.5, (3, 2)), sp2.multinomial(7, X),
            sp2.csr_dbinomial(5, 0.5, (3, 2)),
        ]  # fmt: skip
        return computed(*outputs)

    one, two = draw(), draw()
    for a, b in zip(one, two, strict=True):
        assert (a != b).nnz == 0
    assert [z.format for z in one] == ["csr", "csc", "csr", "csr"]
    assert [z.dtype.name for z in one] == ["float64", "float32", "float64", "float64"]
    assert np.asarray(one[2].sum(1)).ravel().tolist() == [7, 0, 7]


def test_what_kind_of_thing_it_is(S: Any) -> None:
    basic = sys.modules["theano.sparse.basic"]
    x, d = S.csr_matrix("x"), symcomp.tensor.dmatrix("d")
    assert basic._is_sparse_variable(x) and not basic._is_sparse_variable(d)
    assert basic._is_dense_variable(d) and not basic._is_dense_variable(x)
    assert basic._is_sparse(X) and basic._is_dense(A) and not basic._is_sparse(A)
    assert isinstance(x.type, S.SparseType) and "float16" not in S.all_dtypes
