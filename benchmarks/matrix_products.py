"""The gain of the rules for matrix products and for updates of rows: before and after, in turn.

    python benchmarks/matrix_products.py [--size N] [--dtype float64]

Each expression is evaluated as it was written and as it was rewritten, by the same evaluator; the
best of several runs counts. Pin the process to one core (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import timeit
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.rewrite.blas import BLAS_RULES
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.matrix_products import MATRIX_PRODUCTS
from symcomp.rewrite.phases import CANONICALIZE
from symcomp.rewrite.rule import RuleSet


def expressions(a: Any, b: Any, v: Any, s: Any, i: Any) -> dict[str, Any]:
    """Return expressions by name, of square matrices, a vector, a scalar and a vector of positions.
    """
    cost = T.sqr(a[i]).sum()
    return {
        "a - s * dot(a.T, b)": a - s * T.dot(a.T, b),
        "a - s * outer(v, v)": a - s * T.outer(v, v),
        "v - s * dot(a, v)": v - s * T.dot(a, v),
        "exp(s * dot(a, b))": T.exp(s * T.dot(a, b)),
        "trace(dot(a, b))": T.trace(T.dot(a, b)),
        "diagonal(dot(a, b))": T.diagonal(T.dot(a, b)),
        "sum(dot(a, b))": T.sum(T.dot(a, b)),
        "dot(dot(a, b), v)": T.dot(T.dot(a, b), v),
        "dot(a, ones)": T.dot(a, T.ones_like(a)),
        "sum(a * b)": T.sum(a * b),
        "sum(a * b, axis=1)": T.sum(a * b, axis=1),
        "sum(a * b, axis=0)": T.sum(a * b, axis=0),
        "sum(a * v, axis=1)": T.sum(a * v, axis=1),
        "a - s * grad of a[i]": a - s * symcomp.grad(cost, a),
    }


def best(graph_outputs: list[Any], given: dict[Any, Any]) -> float:
    """Seconds of one evaluation."""
    timer = timeit.Timer(lambda: evaluate(graph_outputs, given))
    number, _ = timer.autorange()
    number = max(1, number // 4)
    return min(timer.repeat(5, number)) / number


def main() -> None:
    """Print a line for each expression."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--dtype", default="float64")
    n, dtype = (options := parser.parse_args()).size, options.dtype
    rng = np.random.default_rng(0)
    inputs = [
        T.matrix("a", dtype=dtype), T.matrix("b", dtype=dtype), T.vector("v", dtype=dtype),
        T.scalar("s", dtype=dtype), T.lvector("i"),
    ]  # fmt: skip
    values = [np.asarray(rng.normal(size=shape), dtype) for shape in ((n, n), (n, n), (n,), ())]
    values.append(rng.integers(0, n, 16))
    print(f"{n} x {n}, {dtype}: microseconds as written and rewritten")
    for name, out in expressions(*inputs).items():
        graph = FunctionGraph(inputs, [out])
        for rules in (CANONICALIZE, MATRIX_PRODUCTS, BLAS_RULES):
            Engine(graph, RuleSet(rules), on_error="raise").run()
        before = best([out], dict(zip(inputs, values, strict=True)))
        after = best(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
        print(f"{name:24} {before * 1e6:12.1f} {after * 1e6:12.1f}   {before / after:8.2f} x")


if __name__ == "__main__":
    main()
