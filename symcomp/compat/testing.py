"""``theano.tests.unittest_tools``: helpers for the tests of programs written for Theano."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.compat.config import config
from symcomp.compat.tensor import verify_grad as verify_gradient
from symcomp.compile.function import function
from symcomp.ops.shapes.shape import shape

__all__ = ["assert_allclose", "fetch_seed", "InferShapeTester", "seed_rng", "verify_grad"]


def fetch_seed(pseed: Any = None) -> int:
    """Return ``pseed``, or the seed of ``config.unittests.rseed``; a new one if that is "random".
    """
    seed = config.unittests.rseed if pseed is None else pseed
    return int(np.random.default_rng().integers(2**31)) if seed == "random" else int(seed)


def seed_rng(pseed: Any = None) -> int:
    """Seed NumPy's global generator."""
    seed = fetch_seed(pseed)
    np.random.seed(seed)
    return seed


def verify_grad(
    op: Callable[..., Any], pt: Any, n_tests: int = 2, rng: Any = None, **more: Any
) -> None:
    """Compare the gradient of a function with finite differences."""
    verify_gradient(op, pt, n_tests, rng or np.random.RandomState(fetch_seed()), **more)


def assert_allclose(
    expected: Any, value: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """Fail unless the arrays, which may broadcast, agree to the precision of the coarser dtype."""
    dtypes = {np.asarray(a).dtype.name for a in (expected, value)}
    if dtypes & {"float16"}:
        usual = (5e-3, 5e-3)
    elif dtypes & {"float32", "complex64"}:
        usual = (1e-5, 1e-5)
    else:
        usual = (1e-5, 1e-8)
    rtol, atol = usual[0] if rtol is None else rtol, usual[1] if atol is None else atol
    if not np.allclose(value, expected, rtol, atol, equal_nan=True):
        raise AssertionError(f"rtol={rtol}, atol={atol}: {value!r} is not {expected!r}")


class InferShapeTester(unittest.TestCase):
    """A test case that compares inferred shapes with those of computed values."""

    def _compile_and_check(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        numeric_inputs: Sequence[Any],
        cls: type,
        excluding: Any = None,
        warn: bool = True,
        check_topo: bool = True,
    ) -> None:
        """Fail if the shapes of ``outputs`` are wrong, or if inferring them runs an op ``cls``."""
        values = function(inputs, list(outputs))(*numeric_inputs)
        of_shapes = function(inputs, [shape(y) for y in outputs], on_unused_input="ignore")
        found = of_shapes(*numeric_inputs)
        for value, lengths in zip(values, found, strict=True):
            assert np.array_equal(np.shape(value), lengths), f"{np.shape(value)} != {lengths}"
        if check_topo:
            ops = [node.op for node in of_shapes.maker.fgraph.toposort()]
            assert not any(isinstance(op, cls) for op in ops), f"{cls} runs for its shape"
