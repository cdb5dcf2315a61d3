"""Nodes to kernels."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.codegen.lowering import formula_of, kernel_for
from symcomp.ops.formula import Formula, Result, Step
from symcomp.ops.fused import Fused
from symcomp.tests.codegen.running import addresses, call

x, b = T.dmatrix("x"), T.drow("b")
EXP = T.exp.op.scalar
FUSED = Fused(Formula(("float64",), (), (Step(EXP, (0,), "float64"),), (Result(1),)))


@pytest.mark.parametrize(
    "z", [x + b, T.exp(x), x.sum(axis=0), x.max(axis=(0, 1)), T.switch(x > b, x, b), FUSED(x)[0]]
)
def test_a_node_is_its_kernel(z):
    node = z.owner
    values = [np.random.default_rng(3).standard_normal((40, 30)) for _ in node.inputs]
    values = [
        (v[:1] if x.broadcastable[0] else v).astype(x.dtype)
        for x, v in zip(node.inputs, values, strict=True)
    ]
    (function,) = addresses([kernel_for(node)])
    (got,) = call(function, formula_of(node), values)
    want = node.op.perform(*values)
    np.testing.assert_allclose(got, want[0] if node.op.multiple_outputs else want, rtol=1e-13)


def test_other_nodes_run_in_python():
    assert formula_of(T.dot(x, x).owner) is None
    assert kernel_for(T.dot(x, x).owner) is None
    assert kernel_for(T.j0(x).owner) is None
