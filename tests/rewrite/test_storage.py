"""The phase that puts casts around functions of bfloat16."""

import ml_dtypes
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.storage import is_widened
from symcomp.ops.linalg.products import Dot
from symcomp.ops.reductions.reduce import Reduce

BF = np.dtype(ml_dtypes.bfloat16)


def names(f):
    return [str(node.op) for node in f.maker.fgraph.toposort()]


def test_where_it_comes():
    x = T.matrix("x", dtype="bfloat16")
    mode = symcomp.Mode().excluding("fusion")
    f = symcomp.function([x], T.log(T.sum(T.exp(x), axis=1)), mode=mode)
    (report,) = [p for p in f.maker.trace.phases if p.name == "storage"]
    # The stable form is found before.
    assert names(f) == ["cast{float32}", "LogSumExp{axes=(1,)}", "cast{bfloat16}"]
    assert [firing.rule for firing in report.firings] == ["widen"]
    assert not any(map(is_widened, f.maker.fgraph.toposort()))
    y = T.fmatrix("y")
    g = symcomp.function([y], T.exp(y) + 1)
    assert "storage" not in [p.name for p in g.maker.trace.phases]


def test_dtypes_of_ops():
    x = T.matrix("x", dtype="bfloat16")
    total = T.sum(x, dtype="bfloat16", acc_dtype="bfloat16")
    f = symcomp.function([x], total, mode=symcomp.Mode().excluding("fusion"))
    (op,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Reduce)]
    assert (op.dtype, op.acc_dtype) == ("float32", "float32")
    assert symcomp.function([x], T.sum(x, dtype="float64"))(np.ones((3, 3), BF)).dtype == "float64"
    counts = T.sum(T.bmatrix("b"), dtype="bfloat16")
    assert counts.eval({counts.owner.inputs[0]: np.ones((300, 3), "int8")}).dtype == BF


@pytest.mark.parametrize("excluded", ["storage", "fusion", "blas"])
def test_without_it(excluded):
    x, y = T.matrix("x", dtype="bfloat16"), T.vector("y", dtype="bfloat16")
    outputs = [T.dot(x, y) + 1, T.tanh(x) * y, x.sum(axis=0), T.nnet.softmax(x)]
    a = np.random.default_rng(0).normal(size=(3, 4)).astype(BF)
    b = np.arange(4).astype(BF)
    expected = symcomp.function([x, y], outputs)(a, b)
    f = symcomp.function([x, y], outputs, mode=symcomp.Mode().excluding(excluded))
    for z, w in zip(f(a, b), expected, strict=True):
        np.testing.assert_array_equal(z, w)
    nodes = f.maker.fgraph.toposort()
    assert any(map(is_widened, nodes)) == (excluded == "storage")
    assert excluded != "storage" or any(isinstance(n.op, Dot) for n in nodes)


def test_a_matrix_and_its_transpose_share_a_copy():
    x = T.matrix("x", dtype="bfloat16")
    f = symcomp.function([x], T.dot(x, x.T))
    assert names(f) == ["cast{float32}", "DimShuffle{1,0}", "Dot", "cast{bfloat16}"]
    z = T.dot(T.sort(x.T), x)
    assert names(symcomp.function([x], z)).count("cast{float32}") == 2


def test_constants():
    x = T.vector("x", dtype="bfloat16")
    f = symcomp.function([x], x + T.exp(T.constant(np.array([1, 2], BF))) * 0.1)
    assert len(f.maker.fgraph.toposort()) == 1
    factors = np.exp(np.float32([1, 2])), np.float32(0.1)
    exact = np.multiply(*(x.astype(BF).astype("f") for x in factors))
    np.testing.assert_array_equal(f(np.zeros(2, BF)), exact.astype(BF))
