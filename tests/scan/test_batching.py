"""Steps without states, done for all rows at once: each op beside its loop."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.scan.op import Scan

RNG = np.random.default_rng(0)
m, c, t, k = T.dmatrix("m"), T.dmatrix("c"), T.dtensor3("t"), T.lvector("k")
VALUES: dict[Any, Any] = {
    m: RNG.normal(size=(5, 4)),
    c: RNG.normal(size=(4, 4)),
    t: RNG.normal(size=(5, 3, 4)),
    k: np.array([2, 0, -1, 3, 2]),
}

# Each step takes a row of m, one of t and one of k; c is the same for all.
STEPS = {
    "elementwise": lambda x, a, i: T.exp(x) * c[0] + a,
    "number": lambda x, a, i: x.sum() + i,
    "transposed": lambda x, a, i: a.T + 1,
    "part": lambda x, a, i: a[1:, ::-1] * 2,
    "one": lambda x, a, i: a[-1, 2] * x,
    "row of the same": lambda x, a, i: T.sin(c[i]),
    "write a number": lambda x, a, i: T.set_subtensor(x[1], 7.0) * 2,
    "write rows": lambda x, a, i: T.inc_subtensor(a[1:], x) + 1,
    "write to the same": lambda x, a, i: T.set_subtensor(c[0], x) * 2,
    "write the same": lambda x, a, i: T.set_subtensor(a[::2], c[0]) * 2,
    "write at": lambda x, a, i: T.inc_subtensor(c[i], x) * 2,
    "write the same at": lambda x, a, i: T.set_subtensor(c[i], c[1] * 2) * 2,
    "filled": lambda x, a, i: T.alloc(x[0], 2, 3) + 1,
    "repeated": lambda x, a, i: T.alloc(x, 3, 4) + a,
    "reshaped": lambda x, a, i: a.reshape((2, -1)) + 1,
    "reshaped by lengths": lambda x, a, i: a.reshape((a.shape[1], a.shape[0])) + 1,
    "flat": lambda x, a, i: T.sqr(a.flatten()),
    "joined": lambda x, a, i: T.concatenate([x, c[1], a[0]]) + 1,
    "joined rows": lambda x, a, i: T.concatenate([a, c], axis=0) + 1,
    "joined columns": lambda x, a, i: T.concatenate([a, a + 1, c[:3]], axis=1) + 1,
    "stacked": lambda x, a, i: T.stack([x, c[1], a[0]]) * 2,
    "stacked alone": lambda x, a, i: T.stack([x]) * 2,
    "split": lambda x, a, i: T.split(a, [1, 3], 2, axis=1)[1] * 2,
    "sorted": lambda x, a, i: T.sort(a, axis=0) + T.sort(x),
    "summed so far": lambda x, a, i: T.cumsum(a, axis=1) * T.cumprod(x),
    "softmax": lambda x, a, i: T.nnet.softmax(a) + T.nnet.logsoftmax(x),
    "log of a sum": lambda x, a, i: T.logsumexp(a, axis=0) + T.logsumexp(x),
    "max": lambda x, a, i: a.max(axis=1) * x.min(),
    "vector and matrix": lambda x, a, i: T.dot(x, c) + T.dot(c, x),
    "matrix and matrix": lambda x, a, i: T.dot(a, c) + 1,
    "both change": lambda x, a, i: T.dot(a, x) + T.dot(x, x) + T.dot(x, a.T),
    "matrices change": lambda x, a, i: T.dot(a, a.T) + 1,
    "gradient": lambda x, a, i: symcomp.grad((T.tanh(T.dot(a, x)) ** 2).sum(), x),
    "lengths": lambda x, a, i: x * x.shape[0] + a.shape[0],
}


@pytest.mark.parametrize("rows", [5, 1, 0])
@pytest.mark.parametrize("name", STEPS)
def test_all_rows_at_once(name: str, rows: int) -> None:
    y, _ = symcomp.map(STEPS[name], [m, t, k])
    values = {x: value if x is c else value[:rows] for x, value in VALUES.items()}
    f = symcomp.function([*values], y, on_unused_input="ignore")
    assert not any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())
    found, wanted = f(*values.values()), evaluate([y], values)[0]
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "step",
    [
        lambda x, a, i: T.arange(i + 2),
        lambda x, a, i: a[i % 2 : 2],
        lambda x, a, i: T.set_subtensor(x[i], 7.0),
        lambda x, a, i: T.alloc(x[0], abs(i)),
        lambda x, a, i: T.slinalg.solve(c, x),
    ],
)
def test_what_is_done_row_by_row(step: Any) -> None:
    y, _ = symcomp.map(step, [m, t, k])
    values = {**VALUES, k: np.array([2, 2, 2, 2, 2])}
    f = symcomp.function([*values], y, on_unused_input="ignore")
    assert any(isinstance(node.op, Scan) for node in f.maker.fgraph.toposort())
    np.testing.assert_allclose(f(*values.values()), evaluate([y], values)[0], rtol=1e-10)


def test_no_copies_of_matrices_for_scalars() -> None:
    """An array that a step writes to would exist once for each step."""
    copy = lambda x, i: T.set_subtensor(c[i], x)  # noqa: E731
    for step, loops in ((copy, 0), (lambda x, i: (copy(x, i) ** 2).sum(), 1)):
        y, _ = symcomp.map(step, [m, k])
        f = symcomp.function([*VALUES], y, on_unused_input="ignore")
        assert sum(isinstance(n.op, Scan) for n in f.maker.fgraph.toposort()) == loops
        np.testing.assert_allclose(f(*VALUES.values()), evaluate([y], VALUES)[0])
    # Nor behind a loop.
    (_, y), _ = symcomp.scan(lambda x, s: [s + x, (T.outer(s, c[0]) ** 2).max()], m, [c[0], None])
    f = symcomp.function([*VALUES], y, on_unused_input="ignore")
    np.testing.assert_allclose(f(*VALUES.values()), evaluate([y], VALUES)[0])
    assert all(x.ndim < 3 for n in f.maker.fgraph.toposort() for x in n.outputs)
