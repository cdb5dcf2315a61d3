"""Gradients of loops in loops, each of which may have no steps."""

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import config

MOST = 3
COUNTS = ("known", "number", "row", "rows")
READS = ("last", "sum", "products", "last of all")
OUTPUTS = ("none", "sum", "products", "last")
COSTS = ("last", "all", "last of all")
LOOPS = st.fixed_dictionaries({
    "outer": st.sampled_from(["state", "taps", "map"]),
    "inner": st.sampled_from(["state", "taps", "fixed"]),
    "count": st.sampled_from(COUNTS),
    "read": st.sampled_from(READS),
    "output": st.sampled_from(OUTPUTS),
    "cost": st.sampled_from(COSTS),
})  # fmt: skip
RNG = np.random.default_rng(4)
ROWS, H, W, PAIR = (0.5 * RNG.normal(size=s) for s in [(MOST, 2), (2,), (2, 2), (2, 2)])


def last(first: Any, rows: Any) -> Any:
    """Return the last one of some rows, of which ``first`` is one."""
    return T.concatenate([first.dimshuffle("x", 0), rows])[-1]


def cost_of(loops: dict[str, str], x: Any, h: Any, w: Any, pair: Any, m: Any) -> Any:
    """Build a cost that an outer loop with a step for each row of x, and an inner one compute."""

    def inner(i: Any, v: Any, state: Any) -> Any:
        taps = {"initial": pair, "taps": [-2, -1]}
        start = {"state": state, "taps": taps, "fixed": h}[loops["inner"]]

        def step(*given: Any) -> Any:
            taken = 2 if loops["inner"] == "taps" else 1
            row, states = given[:-taken], given[-taken:]
            state = states[0] - states[1] if taken == 2 else states[0]
            new = T.tanh(T.dot(state, w) + (row[0] if row else v))
            return new, T.outer(new, v)

        steps = {"known": 2, "number": m, "row": i, "rows": None}[loops["count"]]
        sequence = x[:i] if loops["count"] == "rows" else None
        return symcomp.scan(step, sequence, [start, None], n_steps=steps)[0]

    def step(i: Any, v: Any, *states: Any) -> Any:
        state = sum(states, h) if states else h
        s, products = inner(i, v, state)
        new = {
            "last": lambda: last(state, s),
            "sum": lambda: state + s.sum(axis=0),
            "products": lambda: state + products.sum(axis=(0, 1)),
            "last of all": lambda: last(state, T.concatenate([s, products.sum(axis=0)])),
        }[loops["read"]]()  # fmt: skip
        more = {
            "none": list,
            "sum": lambda: [s.sum() * v],
            "products": lambda: [products.sum(axis=0)[0]],
            "last": lambda: [last(new, s)],
        }[loops["output"]]()  # fmt: skip
        return [0.3 * new, *more]

    info = {"state": h, "taps": {"initial": pair, "taps": [-2, -1]}, "map": None}[loops["outer"]]
    infos = [info, *[None] * (loops["output"] != "none")]
    outs, _ = symcomp.scan(step, [T.arange(x.shape[0]), x], infos, return_list=True)
    if loops["cost"] == "all":
        return sum((y**2).sum() for y in outs)
    rows = outs[0] if loops["cost"] == "last" else T.concatenate(outs)
    return (last(h, rows) ** 2).sum()


@settings(max_examples=12, deadline=None)
@given(loops=LOOPS, steps=st.integers(0, MOST), m=st.integers(0, MOST))
@example(
    loops={"outer": "state", "inner": "fixed", "count": "rows", "read": "last", "output": "sum",
           "cost": "last"}, steps=0, m=0,
)  # fmt: skip
@example(
    loops={"outer": "map", "inner": "state", "count": "row", "read": "last", "output": "products",
           "cost": "last of all"}, steps=2, m=0,
)  # fmt: skip
def test_gradients(loops: dict[str, str], steps: int, m: int) -> None:
    x, h, w, pair = inputs = [T.dmatrix("x"), T.dvector("h"), T.dmatrix("w"), T.dmatrix("pair")]
    n = T.lscalar("m")
    cost = cost_of(loops, x, h, w, pair, n)
    grads = symcomp.grad(cost, inputs, disconnected_inputs="ignore")

    def compiled(linker: str) -> Any:
        with config.change_flags(linker=linker, on_opt_error="raise"):
            return symcomp.function([*inputs, n], [cost, *grads], on_unused_input="ignore")

    at = [ROWS[:steps], H, W, PAIR]
    f = compiled("cvm")
    found, wanted = f(*at, m), compiled("py")(*at, m)
    for y, z in zip(found, wanted, strict=True):
        assert y.shape == z.shape
        np.testing.assert_allclose(y, z, rtol=1e-10, atol=1e-12)
    rng = np.random.default_rng(steps)
    along = [rng.normal(size=v.shape) for v in at]
    ends = [f(*(v + e * d for v, d in zip(at, along, strict=True)), m)[0] for e in (1e-6, -1e-6)]
    slope = sum((g * d).sum() for g, d in zip(found[1:], along, strict=True))
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)
