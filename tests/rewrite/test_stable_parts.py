"""Stable forms as parts of larger expressions: powers, complements and logarithms of each."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.compile.mode import Mode
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.phases import rewrite
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import run, values_of
from symcomp.tests.rewrite.test_stabilize import CASES

AROUND = {
    "inverse square": lambda f: 1 / T.sqr(f),
    "twice the complement": lambda f: 2 - 2 * f,
    "logarithm of the inverse square": lambda f: T.log(f**-2.0),
    "entropy": lambda f: f * T.log(f),
    "quotient": lambda f: 3 * f / (1 + f),
}


@pytest.mark.parametrize("around", AROUND)
def test_values_stay(around):
    """Where the plain form has them, up to its own rounding errors, seen by a small step."""
    for case in CASES:
        values = [np.asarray(v) for v in case.values]
        inputs = variables_for(tuple(values), "full" if case.static == "full" else "none")
        outputs = [AROUND[around](case.build(*inputs))]
        graph = FunctionGraph(inputs, outputs)
        rewrite(graph, Mode(optimizer="fast_run").selects, on_error="raise")
        (old,), (new,) = values_of(inputs, outputs, values), run(graph, values)
        step, least, times = (1e-6, 4e-6, 1e2) if old.dtype == "float32" else (1e-14, 1e-7, 1e4)
        (beside,) = values_of(inputs, outputs, [(v * (1 + step)).astype(v.dtype) for v in values])
        assert new.dtype == old.dtype and new.shape == old.shape, case
        known = np.isfinite(old) & np.isfinite(beside)
        old, new, beside = old[known], new[known], beside[known]
        allowed = least * np.abs(old) + 1e-9 + times * np.abs(beside - old)
        assert (np.abs(new - old) <= allowed).all(), f"{case}: {old} became {new}"
