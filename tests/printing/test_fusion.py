"""explain_fusion: each reason why loops over elements are not one is told, and is true."""

from __future__ import annotations

import io
from typing import Any

import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.walk import graph_inputs
from symcomp.ifelse import ifelse
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.formulas.fused import Fused
from symcomp.printing import explain_fusion
from symcomp.rewrite.apart import kernels_of
from symcomp.tests.golden import functions  # noqa: F401 - registers the builders
from symcomp.tests.golden.registry import BUILDERS

X, M, I = T.dvector("x"), T.dmatrix("m"), T.lvector("i")


def long_chain() -> Any:
    z: Any = X
    for k in range(70):
        z = T.sin(z) + k
    return z


def many_arrays() -> tuple[list[Any], Any]:
    vectors = [T.dvector(f"v{i}") for i in range(30)]
    z: Any = vectors[0]
    for v in vectors[1:]:
        z = T.tanh(z + v)
    return vectors, z


@pytest.mark.parametrize(
    ("z", "reason"),
    [
        (T.exp(T.cumsum(T.sin(X) * 2)), "between them is CumOp{axis=0, mode='add'}"),
        (T.exp(X)[:-1] + T.exp(X)[1:], "between them is Subtensor{"),
        (T.exp(M - T.exp(X)), "its result of (1, n) is stretched to (n, n)"),
        (T.exp(M / M.sum()), "it reduces elements, and the other needs the result"),
        (T.exp(M - T.sin(M).sum()), "it reduces elements, and the other needs the result"),
        (T.sin(M).sum() * 2, "the one passes over 2 axes, the other over 0: (n, n) and ()"),
        (T.sin(X) + T.cos(T.sort(T.sin(X))), "Sort{axis=0}, which is no loop over elements"),
        (I**I + 1, "pow has no C for int64, int64 -> int64"),
        (long_chain(), "a loop has at most 128 steps and 24 arrays"),
        (ifelse(T.lt(X[0], 0), T.sin(X), T.cos(X)) * 2, "between them is ifelse"),
    ],
)
def test_reasons(z: Any, reason: str) -> None:
    f = symcomp.function([v for v in (X, M, I) if v in graph_inputs([z])], z)
    assert reason in explain_fusion(f, file="str")


def test_too_many_arrays() -> None:
    inputs, z = many_arrays()
    text = explain_fusion(symcomp.function(inputs, z), file="str")
    assert "a loop has at most 128 steps and 24 arrays" in text


def test_one_branch_alone() -> None:
    c = T.dscalar("c")
    made = T.sin(X)
    f = symcomp.function([c, X], [ifelse(c, T.exp(made), X), made])
    assert "runs in a branch of an ifelse alone" in explain_fusion(f, file="str")


@pytest.mark.parametrize(
    ("x", "z"),
    [
        (X, T.exp(T.sin(X) * 2) + X),
        (M, T.nnet.softmax(T.exp(M))),
        (M, [T.sin(M).sum(0), T.sin(M).sum(1)]),
    ],
)
def test_one_loop_has_no_reasons(x: Any, z: Any) -> None:
    f = symcomp.function([x], z)
    (kernel,) = kernels_of(f.maker.fgraph)
    assert isinstance(kernel.node.op, Fused) and not kernel.alone and not kernel.apart


def test_modes_without_fusion_and_functions_without_loops() -> None:
    f = symcomp.function([X], T.exp(X) * 2, mode=symcomp.Mode(optimizer="fast_compile"))
    text = explain_fusion(f, file="str")
    assert text.startswith("the mode leaves out the phase fusion") and "apart" not in text
    assert explain_fusion(symcomp.function([M], M.T), file="str") == "no loops over elements"
    file = io.StringIO()
    explain_fusion(f, file)
    assert file.getvalue().strip() == text.strip()
    with pytest.raises(TypeError, match="must be a compiled function, got TensorVariable"):
        explain_fusion(X)  # type: ignore[arg-type]


def test_each_scalar_function_is_told() -> None:
    f = symcomp.function([X, M], [T.exp(M).sum(0) * X, T.sort(T.cos(X)) + 1, T.dot(T.tanh(M), X)])
    nodes = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, (Elemwise, Fused))]
    told = {kernel.node for kernel in kernels_of(f.maker.fgraph)}
    assert told.issuperset(nodes)


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_golden_functions(name: str) -> None:
    """Each kernel that feeds another is told with a reason, in the order of computation."""
    made = BUILDERS[name]()
    with config.change_flags(kernels=False):
        f = symcomp.function(made.inputs, made.outputs, updates=dict(made.updates))
    seen = set()
    for kernel in kernels_of(f.maker.fgraph):
        assert all(maker in seen and reason for maker, reason in kernel.apart)
        seen.add(kernel.node)
