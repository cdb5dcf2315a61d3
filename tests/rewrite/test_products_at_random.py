"""Random graphs of matrices and vectors, with their gradients: all rules for products at once."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.rewrite.blas import BLAS_RULES
from symcomp.rewrite.matrix_products import MATRIX_PRODUCTS
from symcomp.tests.rewrite.rules import rewritten, same_values

# (ranks of the arguments, function).
STEPS = [
    ((2, 2), T.dot), ((2, 1), T.dot), ((1, 2), T.dot), ((1, 1), T.dot), ((2, 2), T.add),
    ((2, 2), T.sub), ((2, 2), T.mul), ((1, 1), T.sub), ((0, 2), T.mul), ((0, 1), T.mul),
    ((2,), lambda x: x.T), ((2,), T.sum), ((2,), lambda x: T.sum(x, axis=0)),
    ((2,), lambda x: T.sum(x, axis=1)), ((2,), T.trace), ((2,), T.diagonal), ((1, 1), T.outer),
    ((2,), lambda x: 2.0 * x), ((1,), lambda x: -0.5 * x), ((2,), T.ones_like),
    ((2, 2), lambda x, y: T.sum(x * y)), ((2, 1), lambda x, y: T.sum(x * y, axis=1)),
]  # fmt: skip


def random_graph(rng, dtype):
    """Inputs and outputs; some lengths are known."""
    length = 3 if rng.random() < 0.3 else None
    a, b = (T.tensor(name, dtype=dtype, shape=(length, None)) for name in "ab")
    v, s = T.vector("v", dtype=dtype), T.scalar("s", dtype=dtype)
    pool = {0: [s], 1: [v], 2: [a, b]}
    made = [T.dot(a, b)]
    for _ in range(rng.integers(3, 12)):
        ranks, function = STEPS[rng.integers(len(STEPS))]
        z = function(*(pool[r][rng.integers(len(pool[r]))] for r in ranks))
        pool[z.ndim].append(z)
        made.append(z)
    outputs = [made[-1], made[rng.integers(len(made))]]
    if rng.random() < 0.5:
        cost = sum(T.real(z).sum() if dtype.startswith("c") else z.sum() for z in outputs)
        outputs += symcomp.grad(cost, [a, b, v], disconnected_inputs="ignore")
    return [a, b, v, s], outputs, length


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_compute_the_same(seed):
    rng = np.random.default_rng(seed)
    dtype = ("float64", "complex128")[seed % 3 == 0]
    inputs, outputs, length = random_graph(rng, dtype)
    graph = rewritten(inputs, outputs, MATRIX_PRODUCTS, BLAS_RULES)
    for n in (3,) if length else (3, 1, 0):
        values = [np.asarray(rng.normal(size=(n,) * x.ndim), dtype) for x in inputs]
        same_values(inputs, outputs, graph, values, rtol=1e-8, atol=1e-8)
        for place, bad in ((0, np.nan), (1, np.inf), (2, np.nan), (3, np.inf)):
            worse = [x.copy() for x in values]
            if worse[place].size:
                worse[place].flat[-1] = bad
            same_values(inputs, outputs, graph, worse, rtol=1e-8, atol=1e-8)
