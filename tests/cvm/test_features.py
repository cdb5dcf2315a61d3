"""A feature from outside of symcomp: an op with a rewrite, a lowering and native code."""

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.cvm
import symcomp.tensor as T
from symcomp.codegen.compiler.driver import find_compiler
from symcomp.compile.features import register_feature, unregister_feature
from symcomp.core.node import Apply
from symcomp.core.op import Op
from symcomp.core.record import record
from symcomp.core.tensor import TensorType
from symcomp.cvm.machine import native_call
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.tests.cvm.looking import asked, kinds_of
from symcomp.vm.features import Feature

SOURCE = r"""
#include "native_call.h"

/* Sums of windows of a vector: z[i] = x[i] + ... + x[i + width - 1]. */
int plan_sums(const void *params, int n, const NativeArray *x, int64_t *const *shapes)
{
    const int64_t width = *(const int64_t *)params;
    if (x->shape[0] < width)
        return NATIVE_DECLINED;
    shapes[0][0] = x->shape[0] - width + 1;
    return NATIVE_DONE;
}

int run_sums(const void *params, const NativeArray *x, const NativeArray *z)
{
    const int64_t width = *(const int64_t *)params;
    double *sums = (double *)z->data;
    int64_t i, k;
    for (i = 0; i < z->shape[0]; i++) {
        sums[i] = 0;
        for (k = 0; k < width; k++) {
            const double value = *(const double *)(x->data + (i + k) * x->strides[0]);
            if (value < 0)
                return NATIVE_DECLINED;
            sums[i] += value;
        }
    }
    return NATIVE_DONE;
}
"""


@record
class WindowSums(Op):
    """Sums of ``width`` neighbours of a vector of float64."""

    width: int

    def output_types(self, x: Any) -> list[TensorType]:
        return [TensorType("float64", (None,))]

    def perform(self, x: Any) -> Any:
        if len(x) < self.width:
            return np.zeros(0)
        return np.lib.stride_tricks.sliding_window_view(x, self.width).sum(axis=1)

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        (x,), (g,) = inputs, output_grads
        padded = T.zeros(x.shape[0] + self.width - 1)
        return [WindowSums(self.width)(T.set_subtensor(padded[self.width - 1 : x.shape[0]], g))]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self(tangents[0])]


@rule(WindowSums, why="a window of one element is that element")
def sums_of_one(node: Apply, known: Any) -> Any:
    """Windows of one element are the elements."""
    return node.inputs[0] if node.op.width == 1 else None  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    found = find_compiler(symcomp.config.cc)
    if found is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("feature")
    (folder / "sums.c").write_text(SOURCE)
    headers = Path(symcomp.cvm.__file__).parent
    command = [found, "-shared", "-fPIC", f"-I{headers}", "sums.c", "-o", "sums.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "sums.so"))


@pytest.fixture
def sums(library: ctypes.CDLL) -> Iterator[Feature]:
    plan, run = (
        ctypes.cast(function, ctypes.c_void_p).value
        for function in (library.plan_sums, library.run_sums)
    )

    def lowered(step: Any) -> Any:
        return native_call(step, plan, run, step.node.op.width.to_bytes(8, "little"), work=2.0)

    phase = Phase("sums", "windows of one element", RuleSet([sums_of_one], FULL))
    feature = Feature("sums", (("merge", phase),), {(WindowSums, "cpu"): lowered})
    register_feature(feature)
    yield feature
    unregister_feature("sums")


def test_an_op_from_outside_runs_natively(sums: Feature) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], WindowSums(3)(x * 2) + 1, profile=True)
    assert "C function" in kinds_of(f)
    for value in (np.arange(6.0), np.arange(12.0)[::2], np.arange(6.0)[::-1], np.ones(3)):
        want = WindowSums(3).perform(value * 2) + 1
        for _ in range(2):
            np.testing.assert_array_equal(f(value), want)
            assert asked(f, [value]) == []
    assert "WindowSums" in f.profile.text()


def test_what_it_declines_python_computes(sums: Feature) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], WindowSums(3)(x))
    for value in (np.ones(4), np.array([1.0, -1.0, 2.0, 3.0]), np.ones(2), np.ones(0), np.ones(4)):
        np.testing.assert_array_equal(f(value), WindowSums(3).perform(value))
    assert asked(f, [np.array([1.0, -1.0, 2.0, 3.0])]) == ["WindowSums"]


def test_its_rewrites_fire_and_it_is_differentiated(sums: Feature) -> None:
    x = T.dvector("x")
    assert not symcomp.function([x], WindowSums(1)(x) * 2).program.listing().count("WindowSums")
    symcomp.gradient.verify_grad(lambda v: T.sqr(WindowSums(2)(v)), [np.arange(1.0, 6.0)])


def test_in_loops_and_graphs(sums: Feature) -> None:
    x = T.dvector("x")
    rows, _ = symcomp.scan(
        lambda s: T.concatenate([WindowSums(2)(s), s[:1]]), outputs_info=x, n_steps=4
    )
    f = symcomp.function([x], rows[-1])
    want = np.arange(5.0)
    for _ in range(4):
        want = np.append(WindowSums(2).perform(want), want[0])
    np.testing.assert_allclose(f(np.arange(5.0)), want)


def test_bad_features_are_refused(sums: Feature) -> None:
    with pytest.raises(ValueError, match="there is a feature 'sums' already"):
        register_feature(sums)
    with pytest.raises(ValueError, match="no feature 'other'"):
        unregister_feature("other")
