"""Every rule of canonicalize/indexing.py and indexed_updates.py: what it leaves, that values stay;
where it is mute.
"""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.canonicalize.indexing import INDEXING
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.indexed_updates import INDEXED_UPDATES
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.rewrite.rule import RuleSet
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import RULES, Case, check_rule, same_values

V = np.array([0.5, -1.5, 3.0, 8.0])
W = np.array([2.0, 0.25, -4.0, 1.0])
M = np.arange(12.0).reshape(3, 4) - 5.5
P = np.arange(8.0).reshape(2, 4)
R = np.arange(4.0) + 0.25
I = np.array([3, -2, 7, 1])
F = V.astype("float32")
S = np.array(2.5)
N = np.array(1)
ROWS = np.array([2, 0])
SAME = np.array([1, 1])
MASK = M > 1


def rows(x, i, y):
    """zeros but y at i."""
    return T.inc_subtensor(T.zeros_like(x)[i], y)


def replaced(x, i, y):
    return T.set_subtensor(x[i], y)


CASES = [
    Case("whole_slice", lambda x: x[:], (V,), ""),
    Case("whole_slice", lambda x: x[:, :], (M,), "", note="matrix"),
    Case("read_of_write", lambda x, y: replaced(x, slice(1, 3), y)[1:3], (V, V[:2]), "",
         static="full"),
    Case("read_of_write", lambda x, y: replaced(x, 2, y)[2], (M, R), "", static="full",
         note="row"),
    Case("read_of_elemwise", lambda x: T.exp(x)[1], (V,), "Subtensor exp", rtol=1e-15),
    Case("read_of_elemwise", lambda x: (x * 2.0)[1:, 0], (M,), "Subtensor mul", note="number"),
    Case("read_of_elemwise", lambda x, y: (x + y)[::-1], (V, W), "Subtensor Subtensor add",
         static="full", note="two"),
    Case("read_of_elemwise", lambda x, i: T.sin(x)[i, 1:], (M, N), "Subtensor sin",
         rtol=1e-15, note="symbol"),
    Case("read_of_elemwise", lambda x: T.exp(x)[None, 1], (M,), "Subtensor exp", rtol=1e-15,
         note="new axis"),
    Case("read_of_read", lambda x: x[1:][1:3], (V,), "Subtensor"),
    Case("read_of_read", lambda x: x[:, 1:][2], (M,), "Subtensor", note="other axis"),
    Case("read_of_read", lambda x: x[:, 1:][2, 1:], (M,), "Subtensor", note="both"),
    Case("read_of_read", lambda x: x[1:][:, ::2], (M,), "Subtensor", note="step"),
    Case("read_of_read", lambda x: x[1:][1], (V,), "Subtensor", note="one"),
    Case("read_of_read", lambda x: x[2:, 1:][0], (M,), "Subtensor", note="row"),
    Case("read_of_read", lambda x: x[2:][1:], (V,), "Subtensor", note="open"),
    Case("read_of_read", lambda x: x[:-1][:-2], (V,), "Subtensor", note="ends"),
    Case("read_of_read", lambda x: x[1:-1][1:], (V,), "Subtensor", note="both ends"),
    Case("read_of_read", lambda x: x[:, 1:][1:, :-3], (M,), "Subtensor", note="inner part"),
    Case("read_of_new_axis", lambda x: x.dimshuffle("x", 0, 1)[0], (M,), ""),
    Case("read_of_new_axis", lambda x: x.dimshuffle("x", 0)[-1, 1:], (V,), "Subtensor",
         note="more"),
    Case("read_of_new_axis", lambda x: x.dimshuffle("x", 0, "x")[0], (V,), "DimShuffle",
         note="two"),
    Case("read_of_product", lambda x, y: T.dot(x, y)[-1], (M, M.T), "Dot Subtensor",
         rtol=1e-12),
    Case("read_of_product", lambda x, y: T.dot(x, y)[1:], (M, R), "Dot Subtensor", note="vector",
         rtol=1e-12),
    Case("read_of_elemwise", lambda x, y: T.exp(T.dot(x, y) * T.dot(x, y))[1], (M, R),
         "Dot Subtensor exp mul", rtol=1e-12, extremes=False, note="of products"),
    Case("read_of_product", lambda x: T.dot(T.dot(x, x.T), x)[1:], (M,),
         "DimShuffle Dot Dot Subtensor", rtol=1e-12, extremes=False, note="of a product"),
    Case("read_of_product", lambda x, y, i: T.dot(x, y)[i], (M, R, N), "Dot Subtensor",
         note="number", rtol=1e-12),
    Case("read_of_join", lambda x, y: T.join(0, x, y)[4:8], (V, W), "", static="full"),
    Case("read_of_join", lambda x, y: T.join(1, x, y)[:, :4], (M, M), "", static="full",
         note="first"),
    Case("read_of_alloc", lambda s: T.alloc(s, 4)[1:3], (S,), "Alloc"),
    Case("read_of_alloc", lambda x: T.alloc(1.5, x.shape[0])[1:], (V,), "", static="full",
         note="length"),
    Case("add_to_zeros", lambda x, y: rows(x, slice(None), y), (V, W), "", static="full"),
    Case("add_to_zeros", lambda x, y: replaced(x, slice(None), y), (M, M), "", static="full",
         note="set"),
    Case("scale_rows", lambda x, y: 3.0 * rows(x, 1, y), (M, R),
         "IncSubtensor mul", static="full"),
    Case("scale_rows", lambda x: 3.0 * rows(x, slice(1, 2), np.full(1, 2.0)), (V,),
         "Alloc IncSubtensor ShapeI", static="none", note="one number"),
    Case("negate_rows", lambda x: -rows(x, slice(1, 2), np.full(1, 2.0)), (V,),
         "Alloc IncSubtensor ShapeI", static="none", note="one number"),
    Case("scale_rows", lambda x, y, i: rows(x, i, y) * -0.5, (M, P, ROWS),
         "Alloc IncSubtensor ShapeI ShapeI mul", static="none", note="array"),
    Case("negate_rows", lambda x, y: -rows(x, slice(1, 2), y), (V, V[:1]),
         "Alloc IncSubtensor ShapeI neg", static="none"),
    Case("negate_rows", lambda x, y: -replaced(T.zeros_like(x), 1, y), (I, N),
         "Alloc SetSubtensor ShapeI neg", static="none", note="ints"),
    Case("write_at_mask", lambda x: replaced(x, x < 1.0, 2.0), (V,), "lt switch"),
    Case("write_at_mask", lambda x, m, s: T.inc_subtensor(x[m], s), (M, MASK, S),
         "DimShuffle DimShuffle MaskFits ShapeI ShapeI ShapeI ShapeI add switch", static="none",
         note="added"),
    Case("write_at_mask", lambda x, m, y: replaced(x, m, y), (M, MASK[:, 0], R),
         "DimShuffle DimShuffle DimShuffle switch", static="full", note="rows"),
    Case("write_at_mask", lambda x, m, s: replaced(x, (slice(None), m), s), (M, MASK[0], S),
         "DimShuffle DimShuffle DimShuffle switch", static="full", note="columns"),
    Case("write_at_mask", lambda x, s: T.inc_subtensor(x[x > 1], s), (I, N),
         "DimShuffle DimShuffle add gt switch", note="ints"),
    Case("add_rows", lambda x, y: x + rows(x, 1, y), (M, R), "IncSubtensor", static="full"),
    Case("add_rows", lambda x, y: rows(x, 1, y) + x, (M, R), "IncSubtensor", note="left"),
    Case("add_rows", lambda x, y: x - rows(x, 1, y), (M, R), "IncSubtensor neg", note="minus"),
    Case("add_rows", lambda x, y, s: x - s * rows(x, 1, y), (M, R, S),
         "DimShuffle DimShuffle DimShuffle IncSubtensor PlusScalar mul mul neg", rtol=1e-15,
         extremes=False, note="scaled"),
    Case("add_rows", lambda x, y: x + replaced(T.zeros_like(x), 1, y), (M, R), "IncSubtensor",
         note="replaced"),
    Case("add_rows", lambda x, y, i: x + rows(x, i, y), (M, P, SAME), "IncSubtensor", rtol=1e-13,
         atol=1e-13, extremes=False, note="twice the same"),
    Case("add_rows", lambda x, y: x + rows(x, slice(0, None, 2), y), (F, F[:2]), "IncSubtensor",
         note="float32"),
    Case("add_rows", lambda x, y: x + rows(x, 3, y), (I, N), "IncSubtensor", note="ints"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


def test_every_rule_has_a_case():
    assert {rule.name for rule in (*INDEXING, *INDEXED_UPDATES)} == {case.rule for case in CASES}


def _used_twice(x):
    y = T.exp(x)
    return [y[1], y]


# Name of the rule, expression, arrays: what looks like a case and is none.
STAYS = {
    "part": ("whole_slice", lambda x: x[1:], (V,)),
    "new axis": ("whole_slice", lambda x: x[None], (V,)),
    "backwards": ("whole_slice", lambda x: x[::-1], (V,)),
    "another place": ("read_of_write", lambda x: T.set_subtensor(x[1], 2.0)[2], (V,)),
    "stretched": ("read_of_write", lambda x, y: replaced(x, slice(1, 3), y)[1:3], (V, S)),
    "adds": ("read_of_write", lambda x: T.inc_subtensor(x[1], 2.0)[1], (V,)),
    "last of two": ("read_of_write", lambda x, y, i: replaced(x, i, y)[i], (V, V[:2], SAME)),
    "may be out of range": ("read_of_write", lambda x, y: replaced(x, 2, y)[2], (V, S)),
    "symbol": ("read_of_write", lambda x, y, i: replaced(x, i, y)[i], (V, S, N)),
    "used elsewhere": ("read_of_elemwise", _used_twice, (V,)),
    "meets a slice": ("read_of_elemwise", lambda x: T.tanh(T.exp(x[::2]))[1:], (V,)),
    "checks lengths": ("read_of_elemwise", lambda x, y: (x + y)[1], (V, W)),
    "stretched operand": ("read_of_elemwise", lambda x, y: (x + y)[1], (M, R)),
    "gathers": ("read_of_elemwise", lambda x, i: T.exp(x)[i], (V, ROWS)),
    "from the end": ("read_of_read", lambda x: x[-2:][:1], (V,)),
    "ends": ("read_of_read", lambda x: x[:2][-1], (V,)),
    "out of the part": ("read_of_read", lambda x: x[:2][:3], (V,)),
    "steps": ("read_of_read", lambda x: x[::2][1:], (V,)),
    "one from the end": ("read_of_read", lambda x: x[1:][-1], (V,)),
    "new axis of a part": ("read_of_read", lambda x: x[1:][None], (V,)),
    "one of a part": ("read_of_new_axis", lambda x: x.dimshuffle("x", 0)[0:1], (V,)),
    "another axis": ("read_of_new_axis", lambda x: x.dimshuffle(0, "x")[0], (V,)),
    "product used elsewhere": (
        "read_of_product", lambda x, y: [(z := T.dot(x, y))[0], z.sum()], (M, R)
    ),
    "product with a vector": ("read_of_product", lambda x, y: T.dot(x, y)[0], (V[:3], M)),
    "columns": ("read_of_product", lambda x, y: T.dot(x, y)[0, 1:], (M, M.T)),
    "rows of a part": ("read_of_product", lambda x, y: T.dot(T.exp(x[:2]), y)[1:], (M, R)),
    "unknown lengths": ("read_of_join", lambda x, y: T.join(0, x, y)[4:8], (V, W)),
    "vector of rows": ("read_of_alloc", lambda x: T.alloc(x, 3, 4)[:, 1:], (V,)),
    "not zeros": ("add_to_zeros", lambda x, y: T.inc_subtensor(x[:], y), (V, W)),
    "infinity": ("scale_rows", lambda x, y: np.inf * rows(x, 1, y), (M, R)),
    "a NaN": ("scale_rows", lambda x, y: np.nan * rows(x, 1, y), (M, R)),
    "not zeros scaled": ("scale_rows", lambda x, y: 2.0 * T.inc_subtensor(x[1], y), (M, R)),
    "not zeros negated": ("negate_rows", lambda x, y: -T.inc_subtensor(x[1], y), (M, R)),
    "replaces the last": (
        "add_rows", lambda x, y, i: x + replaced(T.zeros_like(x), i, y), (M, P, SAME)
    ),
    "several values": ("write_at_mask", lambda x, m, y: replaced(x, m, y), (V, V > 1, W[:2])),
    "positions": ("write_at_mask", lambda x, i: replaced(x, i, 2.0), (V, ROWS)),
    "positions of several masks": (
        "write_at_mask", lambda x, m, n: replaced(x, (m, n), 2.0), (M, MASK[:, 0], MASK[0])
    ),
    "a mask beside a slice": (
        "write_at_mask", lambda x, m: replaced(x, (m, slice(1, None)), 2.0), (M, MASK[:, 0])
    ),
    "a vector scales": ("add_rows", lambda x, y, z: x - z * rows(x, 1, y), (M, R, R)),
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_rule_does_not_fire(name):
    rule, build, values = STAYS[name]
    inputs = variables_for(values, "none")
    built = build(*inputs)
    graph = FunctionGraph(inputs, built if isinstance(built, list) else [built])
    firings = Engine(graph, RuleSet([RULES[rule]]), folding=False, on_error="raise").run()
    assert [f.rule for f in firings if f.rule == rule] == []


SHORTER = {
    "end": lambda x: x[:-1],
    "start": lambda x: x[1:],
    "steps": lambda x: x[::2],
    "symbol": lambda x: x[: x.shape[0] - 1],
}


@pytest.mark.parametrize("name", SHORTER)
@pytest.mark.parametrize("product", [False, True])
def test_many_slices_take_as_many_rewrites(name, product):
    """Each meets the next, and not all of them the first."""
    x = T.dmatrix("x")
    counts = []
    for n in (20, 40):
        y = x
        for _ in range(n):
            y = SHORTER[name](y)
            y = T.tanh(T.dot(y, R) if product else y + 1.0)
            y = y[:, None] + R if product else y
        graph = FunctionGraph([x], [y])
        counts.append(len(Engine(graph, CANONICALIZE, on_error="raise").run()))
    assert counts[1] <= 2.2 * counts[0]
    values = [np.arange(4 * (n + 3.0)).reshape(n + 3, 4)]
    same_values([x], [y], graph, values)


def test_what_is_read_is_made_stable_before():
    x, y = T.dvector("x"), T.dmatrix("y")
    for key in (0, slice(None, -1)):
        f = symcomp.function([x], (T.exp(x) / T.exp(x).sum())[key])
        np.testing.assert_allclose(f([1000.0, 1000.0]), np.array([0.5, 0.5])[key])
        f = symcomp.function([x, y], T.dot(T.nlinalg.matrix_inverse(y), x)[key])
        assert not any("Inverse" in str(node.op) for node in f.maker.fgraph.toposort())
