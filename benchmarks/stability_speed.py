"""Measure the time of expressions in their stable forms, over that of the forms as written.

    python benchmarks/stability_speed.py             values, and values with gradients
    python benchmarks/stability_speed.py divergence  expressions whose names contain the text

Processor time, the shortest of many calls of both in turn. Above 1 the stable form is slower.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T

# Time optimized code only.
symcomp.config.early_code = False

ROUNDS, LEAST_SECONDS = 60, 0.002
# Elements in and beyond the caches of a core, and short slices of a matrix.
SHAPES = [(300,), (20_000,), (2_000_000,), (1000, 64)]


def _softmax(x: Any) -> Any:
    return T.exp(x) / T.sum(T.exp(x), axis=-1, keepdims=True)


def _divergence(x: Any, y: Any) -> Any:
    return T.sum(_softmax(x) * T.log(_softmax(x) / _softmax(y)), axis=-1)


def _correlation(x: Any, y: Any) -> Any:
    products = (x - x.mean(axis=-1, keepdims=True)) * (y - y.mean(axis=-1, keepdims=True))
    return products.mean(axis=-1) / (x.std(axis=-1) * y.std(axis=-1))


def _moment(k: int, x: Any) -> Any:
    d = x - x.mean(axis=-1, keepdims=True)
    return (d**k).mean(axis=-1) / (d**2).mean(axis=-1) ** (k / 2)


# Name: the rules, and the expression.
CASES: dict[str, tuple[str, Callable[..., Any]]] = {
    "exp(-x**2)": ("exponential_of_square", lambda x, y: T.exp(-(x**2))),
    "sum(abs(x)**3)**(1 / 3)": (
        "norm_of_powers", lambda x, y: T.sum(abs(x) ** 3, axis=-1) ** (1 / 3)
    ),
    "divergence": ("divergence_of_softmaxes:divergence_of_entropies", _divergence),
    "x / norm(x)": (
        "unit_vector", lambda x, y: x / T.sqrt(T.sum(x**2, axis=-1, keepdims=True))
    ),
    "(x - mean(x)) / std(x)": (
        "root_of_squares:unit_vector",
        lambda x, y: (x - T.mean(x, axis=-1, keepdims=True)) / T.std(x, axis=-1, keepdims=True),
    ),
    "std(x) / mean(x)": (
        "root_of_squares", lambda x, y: T.std(x, axis=-1) / T.mean(x, axis=-1)
    ),
    "sum((x - y)**2) / sum(x**2)": (
        "quotient_of_squares", lambda x, y: T.sum((x - y) ** 2, axis=-1) / T.sum(x**2, axis=-1)
    ),
    "mean(x)**2 / var(x)": (
        "quotient_of_squares", lambda x, y: T.mean(x, axis=-1) ** 2 / T.var(x, axis=-1)
    ),
    "cosine of x and y": (
        "root_of_squares:product_over_norm",
        lambda x, y: T.sum(x * y, axis=-1)
        / (T.sqrt(T.sum(x**2, axis=-1)) * T.sqrt(T.sum(y**2, axis=-1))),
    ),
    "correlation of x and y": ("root_of_squares:product_over_norm", _correlation),
    "sum(x * y) / sum(x**2)": (
        "product_over_norm", lambda x, y: T.sum(x * y, axis=-1) / T.sum(x**2, axis=-1)
    ),
    "sum(x * y) / sum(abs(x))": (
        "product_over_sizes", lambda x, y: T.sum(x * y, axis=-1) / T.sum(abs(x), axis=-1)
    ),
    "skewness": ("power_sum_over_norm:product_over_norm", lambda x, y: _moment(3, x)),
    "kurtosis": ("power_sum_over_norm:quotient_of_squares", lambda x, y: _moment(4, x)),
    "exp(mean(log(x)))": (
        "geometric_mean", lambda x, y: T.exp(T.mean(T.log(abs(x)), axis=-1))
    ),
    "log(x) - log(y)": ("log_difference", lambda x, y: T.log(abs(x)) - T.log(abs(y))),
    "x / y - y / x": ("rational_difference", lambda x, y: x / y - y / x),
    "x**3 - y**3": ("cube_difference", lambda x, y: x**3 - y**3),
    "1 / sqrt(x) - 1 / sqrt(y)": (
        "root_difference", lambda x, y: 1 / T.sqrt(abs(x)) - 1 / T.sqrt(abs(y))
    ),
    "sqrt(x**2 + y**2)": ("root_of_squares", lambda x, y: T.sqrt(x**2 + y**2)),
    "sqrt(x**2 + y**2) / x": (
        "root_of_squares:hypot_over", lambda x, y: T.sqrt(x**2 + y**2) / x
    ),
    "x**2 * y**2 / (x**2 + y**2)": (
        "over_squares:height", lambda x, y: x**2 * y**2 / (x**2 + y**2)
    ),
    "1 - x**2 / (1 + x**2)": (
        "over_squares:one_minus_leg_squared", lambda x, y: 1 - x**2 / (1 + x**2)
    ),
    "1 / (1 / x + 1 / y)": ("parallel", lambda x, y: 1 / (1 / x + 1 / y)),
    "exp(-(log(y) - x)**2 / 2)": (
        "exponential_of_functions", lambda x, y: T.exp(-((T.log(y) - x) ** 2) / 2)
    ),
    "exp(2.5 * log(y) - x)": (
        "exponential_of_functions", lambda x, y: T.exp(2.5 * T.log(y) - x)
    ),
    "exp(-exp(-x))": ("exponential_of_functions", lambda x, y: T.exp(-T.exp(-x))),
    "sqrt(1 + exp(x))": ("root_of_squares", lambda x, y: T.sqrt(1 + T.exp(x))),
    "exp(x) / max(exp(x))": (
        "extreme_of_exponentials:product_of_exponentials",
        lambda x, y: T.exp(x) / T.max(T.exp(x), axis=-1, keepdims=True),
    ),
    "1 - softmax(x)": ("rest_of_softmax", lambda x, y: 1 - T.nnet.softmax(x, axis=-1)),
    "log(1 - softmax(x))": (
        "rest_of_softmax:log_of_rest", lambda x, y: T.log(1 - T.nnet.softmax(x, axis=-1))
    ),
    "exp(x - y)": ("exponential_of_sum", lambda x, y: T.exp(x - y)),
    "tanh(x) / x": ("over_argument", lambda x, y: T.tanh(x) / x),
    "y / exp(x)": ("product_with_exponential", lambda x, y: y / T.exp(x)),
    "y * exp(-x)": ("product_with_exponential", lambda x, y: y * T.exp(-x)),
    "x * y / exp(x)": ("product_with_exponential", lambda x, y: x * y / T.exp(x)),
    "(exp(x) - 1) / x": ("over_argument", lambda x, y: (T.exp(x) - 1) / x),
    "log(1 + x) / x": ("over_argument", lambda x, y: T.log(1 + x) / x),
    "arctan(x) / x": ("over_argument", lambda x, y: T.arctan(x) / x),
    "erf(x) / x": ("over_argument", lambda x, y: T.erf(x) / x),
    "sin(x * y) / x": ("over_argument", lambda x, y: T.sin(x * y) / x),
    "tanh(x * y) / x": ("over_argument", lambda x, y: T.tanh(x * y) / x),
    "log(1 + x * y) / x": ("over_argument", lambda x, y: T.log1p(x * y) / x),
}  # fmt: skip


def compiled(expression: Callable[..., Any], shape: Sequence[int], gradient: bool) -> Any:
    """Compile the value, or it with its gradient, by the rules of the configuration."""
    kind = T.TensorType("float64", (None,) * len(shape))
    x, y, way = kind("x"), kind("y"), kind("way")
    z = expression(x, y)
    outputs = [z]
    if gradient:
        outputs.append(symcomp.grad((way * z).sum() if z.ndim == x.ndim else z.sum(), x))
    return symcomp.function([x, y, way], outputs, on_unused_input="ignore", trust_input=True)


def shortest(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Return the shortest processor time of each call, measured in turn."""
    repeats = []
    for call in calls:
        call()
        start = time.process_time()
        call()
        repeats.append(int(LEAST_SECONDS / max(time.process_time() - start, 1e-6)) + 1)
    best = [np.inf] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / repeats[i])
    return best


def main() -> None:
    rng = np.random.default_rng(0)
    for name, (rules, expression) in CASES.items():
        if not all(text in name for text in sys.argv[1:]):
            continue
        for shape in SHAPES:
            arguments = [rng.normal(size=shape) for _ in range(3)]
            ratios = []
            for gradient in (False, True):
                stable = compiled(expression, shape, gradient)
                with symcomp.config.change_flags(optimizer_excluding=rules):
                    written = compiled(expression, shape, gradient)
                times = shortest([partial(f, *arguments) for f in (stable, written)])
                ratios.append(times[0] / times[1])
            value, both = ratios
            print(f"{name}, {shape}: value {value:.2f}, with gradient {both:.2f}", flush=True)


if __name__ == "__main__":
    main()
