"""Bytes and operations, counted by hand."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.walk import graph_inputs
from symcomp.profiling.work import bytes_moved, operations

X, Y = T.dmatrices("X", "Y")
V, F = T.dvector("V"), T.fmatrix("F")
I = T.lvector("I")


def only(outputs, *values):
    """Return the bytes and operations of the instruction that computes ``outputs``."""
    inputs = [v for v in (X, Y, V, F, I) if v in graph_inputs([outputs])]
    mode = symcomp.Mode("vm", "merge")
    f = symcomp.function(inputs, outputs, mode=mode, profile=True)
    f(*values)
    code = f.program.instructions
    counted = [c for c in f.profiled.tally.counted() if code[c.position].node is not None][-1]
    step = code[counted.position]
    (variant,) = counted.variants
    shapes = variant.inputs, variant.outputs
    return bytes_moved(step, *shapes), operations(step.node, *shapes)


A, B, C = np.ones((3, 4)), np.ones((4, 5)), np.ones(4)


@pytest.mark.parametrize(
    ("outputs", "values", "moved", "count"),
    [
        (T.exp(X), [A], 2 * 96, 12),
        (X + V, [A, C], 32 + 2 * 96, 12),
        (T.exp(F), [A.astype("float32")], 96, 12),
        (X.sum(axis=0), [A], 96 + 32, 12),
        (X.sum(), [A], 96 + 8, 12),
        (T.nnet.softmax(X), [A], 192, 60),
        (T.dot(X, Y), [A, B], 96 + 160 + 120, 2 * 3 * 4 * 5),
        (T.dot(X, V), [A, C], 96 + 32 + 24, 24),
        (T.dot(V, V), [C], 64 + 8, 8),
        (X[I], [A, np.array([0, 2])], 2 * 64 + 16, None),
        (X[1:], [A], 0, None),
        (X.T, [A], 0, None),
        (T.zeros((3, 4)) + X, [A], 96 + 96 + 96, 12),
        (X.shape[0], [A], 8, None),
        (T.set_subtensor(X[I], 0.0), [A, np.array([1])], 8 + 8 + 8 + 192, None),
        (T.exp(X), [np.ones((0, 4))], 0, 0),
        (T.dot(X, Y), [np.ones((3, 0)), np.ones((0, 5))], 120, 0),
        (T.slinalg.cholesky(X), [np.eye(3)], 144, 9),
        (T.nlinalg.det(X), [np.eye(3)], 72 + 8, 18),
        (T.slinalg.solve(X, Y), [np.eye(3), np.ones((3, 2))], 72 + 48 + 48, 18 + 36),
        (T.slinalg.solve(X, V, "pos"), [np.eye(3), np.ones(3)], 72 + 24 + 24, 9 + 18),
        (T.slinalg.solve_triangular(X, Y), [np.eye(3), np.ones((3, 2))], 72 + 48 + 48, 18),
    ],
)
def test_by_hand(outputs, values, moved, count):
    assert only(outputs, *values) == (moved, count)


def test_products_with_blas():
    c = symcomp.shared(np.ones((3, 5)), "c")
    f = symcomp.function([X, Y], [], updates=[(c, c + 0.5 * T.dot(X, Y))], profile=True)
    f(A, B)
    rows = f.profile.to_dict()["functions"][0]["instructions"]
    (row,) = [row for row in rows if row["class"] == "Gemm"]
    assert row["variants"][0]["operations"] == 120
    assert row["variants"][0]["bytes"] == 96 + 160 + 120 + 120 + 16


def test_what_is_fused_counts_every_step():
    with symcomp.config.change_flags(optimizer="fast_run"):
        f = symcomp.function([X], T.exp(X) * 2 + T.sin(X), profile=True)
    f(A)
    (row,) = f.profile.to_dict()["functions"][0]["instructions"]
    assert row["variants"][0]["operations"] == 4 * 12 and row["variants"][0]["bytes"] == 192
