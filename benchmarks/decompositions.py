"""Decompositions and systems beside NumPy, SciPy and, where it is given, JAX: microseconds a call.

Run as ``python benchmarks/decompositions.py [--jax PYTHON] [--dtype float64]``, on one core, with
one thread (OMP_NUM_THREADS=1); PYTHON is an interpreter that has JAX. The last line is a Kalman
filter of 4 states as a loop of 1000 steps, of which one step is told: ``scan`` of symcomp and of
JAX, a ``for`` of Python with NumPy. Several rounds, each of all, and the best of each.
"""

import argparse
import importlib
import json
import subprocess
import time
from functools import partial
from typing import Any

import numpy as np

SIZES = (4, 20, 100, 500)
STEPS, STATES = 1000, 4
ROUNDS = 3


def best(call, seconds=0.05):
    """Return the shortest time of a call, in microseconds; short ones are timed a hundred at once.
    """
    call()
    start = time.perf_counter()
    call()
    at_once = 100 if time.perf_counter() - start < 1e-4 else 1
    times = []
    stop = time.perf_counter() + seconds
    while (start := time.perf_counter()) < stop or len(times) < 3:
        for _ in range(at_once):
            call()
        times.append((time.perf_counter() - start) / at_once)
    return min(times) * 1e6


def arguments(n, dtype):
    """Return a positive definite matrix, its Cholesky decomposition, a general one and a vector."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n))
    s = a @ a.T / n + np.eye(n)
    return [x.astype(dtype) for x in (s, np.linalg.cholesky(s), a, rng.normal(size=n))]


# Functions of a library that has the names of NumPy, and those of SciPy in ``scipy``.
FORMS = {
    "cholesky(s)": lambda np, scipy, s, c, a, b: np.linalg.cholesky(s),
    "solve(a, b)": lambda np, scipy, s, c, a, b: np.linalg.solve(a, b),
    "solve(a, s)": lambda np, scipy, s, c, a, b: np.linalg.solve(a, s),
    "solve_triangular(c, b)": lambda np, scipy, s, c, a, b: scipy.solve_triangular(
        c, b, lower=True
    ),
    "inv(a) @ b": lambda np, scipy, s, c, a, b: np.dot(np.linalg.inv(a), b),
    "log(det(s))": lambda np, scipy, s, c, a, b: np.log(np.linalg.det(s)),
    "qr(a)": lambda np, scipy, s, c, a, b: np.linalg.qr(a),
    "eigh(s)": lambda np, scipy, s, c, a, b: np.linalg.eigh(s),
    "svd(a)": lambda np, scipy, s, c, a, b: np.linalg.svd(a),
}


def kalman_step(np, drift, noise, y, mean, spread):
    """Mean and spread after the next observation, and the logarithm of its probability."""
    mean, spread = np.dot(drift, mean), np.dot(np.dot(drift, spread), drift.T) + noise
    total = spread + noise
    inverse, rest = np.linalg.inv(total), y - mean
    gain = np.dot(spread, inverse)
    likely = np.log(np.linalg.det(total)) + np.dot(rest, np.dot(inverse, rest))
    return mean + np.dot(gain, rest), spread - np.dot(gain, spread), likely


def kalman_values(dtype):
    """Drift, noise, observations, and where it begins."""
    rng = np.random.default_rng(0)
    noise = arguments(STATES, dtype)[0]
    drift = (0.9 * np.eye(STATES) + 0.05).astype(dtype)
    rows = rng.normal(size=(STEPS, STATES)).astype(dtype)
    return [drift, noise, rows, np.zeros(STATES, dtype), np.eye(STATES, dtype=dtype)]


def of_jax(dtype):
    """Return the times of JAX."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    scipy = importlib.import_module("jax.scipy.linalg")
    times = []
    for n in SIZES:
        values = [jax.device_put(x) for x in arguments(n, dtype)]
        for form in FORMS.values():
            f = jax.jit(partial(form, jax.numpy, scipy))
            times.append(best(lambda f=f, v=values: jax.block_until_ready(f(*v))))

    def filtered(drift, noise, rows, mean, spread):
        def step(state, y):
            *state, likely = kalman_step(jax.numpy, drift, noise, y, *state)
            return tuple(state), likely

        return jax.lax.scan(step, (mean, spread), rows)

    f, values = jax.jit(filtered), [jax.device_put(x) for x in kalman_values(dtype)]
    return [*times, best(lambda: jax.block_until_ready(f(*values))) / STEPS]


class Names:
    """symcomp under the names of NumPy."""

    def __init__(self):
        tensor: Any = importlib.import_module("symcomp.tensor")
        self.dot, self.log, self.linalg = tensor.dot, tensor.log, self
        for name in ("det", "qr", "eigh", "svd"):
            setattr(self, name, getattr(tensor.nlinalg, name))
        self.inv = tensor.nlinalg.matrix_inverse
        self.solve, self.cholesky = tensor.slinalg.solve, tensor.slinalg.cholesky
        self.solve_triangular = tensor.slinalg.solve_triangular


def of_symcomp(dtype):
    """Return the times of symcomp."""
    symcomp: Any = importlib.import_module("symcomp")
    symcomp.config.early_code = False  # time optimized code only
    tensor: Any = importlib.import_module("symcomp.tensor")
    names = Names()
    inputs = [tensor.TensorType(dtype, (None,) * k)() for k in (2, 2, 2, 1)]
    functions = [
        symcomp.function(inputs, form(names, names, *inputs), on_unused_input="ignore")
        for form in FORMS.values()
    ]
    times = []
    for n in SIZES:
        values = arguments(n, dtype)
        times += [best(partial(f, *values)) for f in functions]
    values = kalman_values(dtype)
    drift, noise, *rest = (tensor.TensorType(dtype, (None,) * v.ndim)() for v in values)
    outputs = symcomp.scan(
        lambda y, *state: kalman_step(names, drift, noise, y, *state),
        rest[0], [*rest[1:], None], return_updates=False,
    )  # fmt: skip
    f = symcomp.function([drift, noise, *rest], outputs)
    return [*times, best(partial(f, *values)) / STEPS]


def of_numpy(dtype):
    """Return the times of NumPy, and of SciPy where NumPy has no such function."""
    scipy = importlib.import_module("scipy.linalg")
    times = []
    for n in SIZES:
        values = arguments(n, dtype)
        times += [best(partial(form, np, scipy, *values)) for form in FORMS.values()]

    def filtered(drift, noise, rows, mean, spread):
        for y in rows:
            mean, spread, _ = kalman_step(np, drift, noise, y, mean, spread)

    return [*times, best(partial(filtered, *kalman_values(dtype))) / STEPS]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--alone", action="store_true", help="print only the times of JAX, as JSON")
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(of_jax(given.dtype)))
        return
    found = {}
    for _ in range(ROUNDS):
        now = {"symcomp": of_symcomp(given.dtype), "NumPy": of_numpy(given.dtype)}
        if given.jax:
            command = [given.jax, __file__, "--alone", "--dtype", given.dtype]
            now["JAX"] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for who, times in now.items():
            found[who] = [min(t) for t in zip(times, found.get(who, times), strict=True)]
    names = [f"{form:24}{n:>5}" for n in SIZES for form in FORMS]
    names.append(f"{'a step of a filter':24}{STATES:>5}")
    print(f"{given.dtype:29}" + "".join(f"{who:>12}" for who in found) + "   ahead of the best")
    for name, *times in zip(names, *found.values(), strict=True):
        print(name + "".join(f"{t:12.2f}" for t in times) + f"{min(times[1:]) / times[0]:12.2f}")


if __name__ == "__main__":
    main()
