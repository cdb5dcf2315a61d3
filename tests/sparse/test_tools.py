"""Saving, printing and the checking modes, with sparse matrices."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import symcomp
import symcomp.tensor as T
from symcomp import sparse
from symcomp.compile.debugmode import DebugMode
from symcomp.compile.nanguardmode import NanGuardMode
from symcomp.compile.rewritecheck import DebugModeError
from symcomp.core.record import record
from symcomp.core.sparse_values import pattern_picture
from symcomp.errors import LoadError
from symcomp.sparse.components import Assemble
from symcomp.sparse.op import SparseOp
from symcomp.sparse.values import from_arrays
from symcomp.tests.repository import ROOT
from symcomp.tests.sparse.harness import MODE, random_sparse

S = random_sparse(4, 5)
X = S.toarray()


def saved(thing, folder):
    symcomp.save(folder / "file.zip", thing)
    return symcomp.load(folder / "file.zip")


def test_graphs_are_saved(tmp_path):
    x, d = sparse.csr_matrix("x"), T.dmatrix("d")
    w = sparse.shared(S, name="w")
    z = sparse.structured_exp(x + w + sparse.constant(S.tocsc()))
    cost = sparse.dot(z, d).sum()
    f = symcomp.function([x, d], [cost, symcomp.grad(cost, x)], updates=[(w, w * 2)], mode=MODE)
    g = saved({"f": f, "z": z}, tmp_path)["f"]
    ones = np.ones((5, 2))
    (a, ga), (b, gb) = f(S, ones), g(S, ones)
    assert a == b and (ga != gb).nnz == 0
    np.testing.assert_array_equal(g.get_shared()[0].get_value().toarray(), 2 * X)
    assert g.get_shared()[0].type == w.type


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_values_are_saved(format, index_dtype, tmp_path):
    value = S.asformat(format)
    kind = sparse.SparseType(format, "float64", (4, 5), index_dtype, "array")
    c = kind.make_constant(value)
    loaded = saved({"c": c}, tmp_path)["c"]
    assert loaded.type == c.type and kind.values_eq(loaded.data, c.data)


def test_broken_files_are_refused():
    one, places = np.ones(1), np.zeros(1, "int32")
    for format, shape, arrays in (
        ("csr", (10**15, 1), [one, places, places]),
        ("csr", (1, 1), [one, places + 7, np.array([0, 1], "int32")]),
        ("csr", (1, 1), [one, places, np.array([0, 9], "int32")]),
        ("csr", (1, 1), [one, places.astype("float64"), places]),
        ("dok", (1, 1), [one, places, places]),
        ("coo", (1, 1), [one, places, places + 3]),
    ):
        with pytest.raises((ValueError, LoadError)):
            from_arrays(format, "array", shape, arrays)


def test_prints_tell_the_pattern():
    x = sparse.csr_matrix("x")
    z = x * sparse.constant(S, "c")
    text = symcomp.printing.debugprint(z, print_type=True, file="str")
    assert "MulSS" in text and "<float64 csr matrix>" in text
    words = symcomp.printing.min_informative_str(S)
    assert words.startswith("float64 csr (4, 5), 5 stored (25%), ")
    assert pattern_picture(sp.eye_array(2)) == "#.\n.#"
    w = sparse.shared(sp.eye_array(3, format="csr"), name="w")
    page = symcomp.printing.html(symcomp.function([x], x + w + z, mode=MODE))
    assert "33.3%" in page and "#.." in page and "25%" in page


def test_errors_tell_the_density():
    x, y = sparse.csr_matrix("x"), sparse.csr_matrix("y")
    f = symcomp.function([x, y], x + y, mode=symcomp.Mode(linker="vm", optimizer="None"))
    with pytest.raises(ValueError, match=r"add: shapes \(4, 5\) and \(4, 4\) differ"):
        f(S, sp.csr_array((4, 4)))
    assert "float64 csr matrix of shape (4, 5)" in f.explain_last_error(file="str")


# -- checking modes


@record
class Unsorted(SparseOp):
    """z = x with its indices in the reverse order, which no op may give."""

    def as_inputs(self, x):
        return [sparse.as_sparse_variable(x)]

    def output_types(self, x):
        return [x.type]

    def bind(self, node):
        return self.perform

    def perform(self, x):
        z = x.copy()
        z.indices = z.indices[::-1].copy()
        z.has_sorted_indices = z.has_canonical_format = False
        return z


def test_debug_mode_runs_and_compares():
    x, y, d = sparse.csr_matrix("x"), sparse.csr_matrix("y"), T.dmatrix("d")
    z = sparse.structured_exp(x.T.T + y) * 2.0 - sparse.sqr(x)
    cost = (sparse.dot(z, d) ** 2).sum()
    outputs = [z, sparse.true_dot(z, z.T), *symcomp.grad(cost, [x, d])]
    f = symcomp.function([x, y, d], outputs, mode=DebugMode(linker="vm"))
    other = random_sparse(4, 5, seed=5)
    g = symcomp.function([x, y, d], outputs, mode=MODE)
    values = S, other, np.ones((5, 2))
    for a, b in zip(f(*values), g(*values), strict=True):
        np.testing.assert_allclose(sp.coo_array(a).toarray(), sp.coo_array(b).toarray())


def test_debug_mode_checks_order_and_range():
    x = sparse.csr_matrix("x")
    f = symcomp.function([x], Unsorted()(x), mode=DebugMode(linker="vm"))
    two = sp.csr_matrix(np.array([[1.0, 2.0]]))
    with pytest.raises((DebugModeError, ValueError), match="sorted indices without duplicates"):
        f(two)
    kind = sparse.SparseType("csr", "float64", (1, 2))
    data, places, ends = T.dvector(), T.ivector(), T.ivector()
    z = Assemble(kind)(data, places, ends, T.constant(np.array([1, 2])))
    g = symcomp.function([data, places, ends], z, mode=DebugMode(linker="vm"))
    ends_value = np.array([0, 1], "int32")
    assert g(np.ones(1), np.array([1], "int32"), ends_value).nnz == 1
    with pytest.raises((DebugModeError, ValueError), match="index 5"):
        g(np.ones(1), np.array([5], "int32"), ends_value)


def test_nan_guard_looks_at_entries():
    x = sparse.csr_matrix("x")
    f = symcomp.function([x], sparse.structured_log(x), mode=NanGuardMode(linker="vm"))
    with pytest.raises(AssertionError, match="NaN"):
        f(-abs(S))
    bad = S.copy()
    bad.data[0] = np.nan
    with pytest.raises(AssertionError, match=r"1 NaN in the input x"):
        f(bad)


def test_profiles_and_memory():
    x, d = sparse.csr_matrix("x"), T.dmatrix("d")
    f = symcomp.function([x, d], sparse.dot(x, d), profile=True)
    f(S, np.ones((5, 2)))
    assert "CompressedDot" in f.profile.text(20)


def test_copies_and_swaps():
    w, v = sparse.shared(S, name="w"), sparse.shared(2 * S, name="v")
    f = symcomp.function([], w.sum(), mode=MODE)
    assert f.copy(swap={w: v})() == pytest.approx(2 * f())


def test_the_native_machine_gives_the_same():
    x, d = sparse.csr_matrix("x"), T.dmatrix("d")
    z = sparse.structured_softmax(x)
    out = [z, sparse.dot(z, d), symcomp.grad((sparse.dot(z, d) ** 2).sum(), x)]
    values = S, np.random.default_rng(0).normal(size=(5, 2))
    found = [
        symcomp.function([x, d], out, mode=symcomp.Mode(linker=linker))(*values)
        for linker in ("cvm", "vm")
    ]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(sp.coo_array(a).toarray(), sp.coo_array(b).toarray())


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="installed without documentation")
def test_every_name_is_on_its_page():
    page = (ROOT / "docs" / "sparse.md").read_text(encoding="utf-8")
    assert [name for name in sparse.__all__ if not re.search(rf"\b{name}\b", page)] == []
    assert set(dir(sparse)) >= set(sparse.__all__)
