"""Random loops: reverse against forward mode and finite differences, before and after the rules."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.ifelse import ifelse
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.scan.rules import SCAN_RULES

SHAPES = {"x": (6, 3), "h": (3,), "k": (3, 3), "w": (3, 3), "u": (3, 3), "b": (3,)}
INPUTS = {name: T.tensor(name, shape=(None,) * len(shape)) for name, shape in SHAPES.items()}
TAPS = ([-2, -1], [-2], [-3, -1], [-1, -3, -2])


def values() -> list[Any]:
    rng = np.random.default_rng(1)
    return [0.5 * rng.normal(size=shape) for shape in SHAPES.values()]


def expression(rng: Any, pool: list[Any], depth: int) -> Any:
    """Draw a function of vectors of 3."""
    if depth == 0:
        return pool[rng.integers(len(pool))]

    def part() -> Any:
        return expression(rng, pool, depth - 1)

    w, u, b = INPUTS["w"], INPUTS["u"], INPUTS["b"]
    makers = [
        lambda: T.tanh(part()),
        lambda: part() * part(),
        lambda: part() + part(),
        lambda: T.dot(part(), w),
        lambda: T.dot(part(), u),
        lambda: T.sin(part()) * b,
        lambda: part() - part().sum(),
        lambda: T.dot(w, part()),
        lambda: T.switch(T.gt(part(), 0), part(), b),
        lambda: branch(part(), w, b),
        lambda: symcomp.scan(lambda e, s: T.tanh(e + s * b[0]), part(), b[1])[0],
    ]
    return makers[rng.integers(len(makers))]()


def branch(x: Any, w: Any, b: Any) -> Any:
    """Build a choice of which one side is computed."""
    return ifelse(T.gt(x.sum(), 0), T.dot(x, w), x * b)


def random_info(rng: Any) -> Any:
    """Draw a state with one tap, or with several."""
    if rng.random() < 0.5:
        return INPUTS["h"] * (1 + rng.integers(2))
    return {"initial": INPUTS["k"], "taps": TAPS[rng.integers(4)]}


def random_options(rng: Any, until: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"go_backwards": bool(rng.random() < 0.3)}
    if rng.random() < 0.2:
        options["truncate_gradient"] = int(rng.integers(1, 4))
    elif rng.random() < 0.3 and not until:
        options["checkpoint"] = ("auto", 2)[rng.integers(2)]
    if rng.random() < 0.3:
        options["n_steps"] = int(rng.integers(0, 4))
    return options


def random_loop(seed: int) -> tuple[Any, dict[str, Any]]:
    """Draw a cost computed by a loop, and the options of the loop."""
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(0, 3))
    n_stacked = int(rng.integers(0 if n_states else 1, 3))
    taps = [int(t) for t in rng.choice([-1, 0, 1], size=rng.integers(1, 3), replace=False)]
    infos = [random_info(rng) for _ in range(n_states)] + [None] * n_stacked
    until = rng.random() < 0.2

    def step(*pool: Any) -> Any:
        given = [*pool, INPUTS["b"]]
        outs = [expression(rng, given, int(rng.integers(1, 4))) for _ in infos]
        outs = [0.3 * T.tanh(y) if i < n_states else y for i, y in enumerate(outs)]
        return (outs, symcomp.until(outs[0].sum() > 0.5)) if until else outs

    options = random_options(rng, bool(until))
    sequences = {"input": INPUTS["x"], "taps": taps}
    outs, _ = symcomp.scan(step, sequences, infos, return_list=True, **options)
    last = options.get("n_steps", 1) > 0
    reads = [
        y[-1].sum() if last and rng.random() < 0.3 else (y ** int(rng.integers(1, 3))).sum()
        for y in outs
    ]
    return sum(reads[1:], reads[0]), options


@pytest.mark.parametrize("seed", range(9))
def test_random_loop(seed: int) -> None:
    cost, options = random_loop(seed)
    inputs, at = list(INPUTS.values()), values()
    directions = [T.constant(v) for v in at]
    grads = symcomp.grad(cost, inputs, disconnected_inputs="ignore")
    slope = symcomp.Rop(cost, inputs, directions, disconnected_outputs="ignore")
    products = symcomp.Rop(grads, inputs, directions, disconnected_outputs="ignore")
    targets = [cost, *grads, slope, *products]
    before = evaluate(targets, dict(zip(inputs, at, strict=True)))
    moved = [
        evaluate([cost], {x: v * (1 + s) for x, v in zip(inputs, at, strict=True)})[0]
        for s in (1e-6, -1e-6)
    ]
    np.testing.assert_allclose(before[7], (moved[0] - moved[1]) / 2e-6, rtol=1e-4, atol=1e-6)
    if "truncate_gradient" not in options:
        reverse = sum(float((g * v).sum()) for g, v in zip(before[1:7], at, strict=True))
        np.testing.assert_allclose(reverse, before[7], rtol=1e-8, atol=1e-10)
    graph = FunctionGraph(inputs, targets)
    Engine(graph, SCAN_RULES + CANONICALIZE, "scan", on_error="raise").run()
    after = evaluate(graph.outputs, dict(zip(graph.inputs, at, strict=True)))
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-8, atol=1e-10)
