"""Reductions over each axis of a matrix, beside NumPy and, where it is given, JAX: milliseconds.

Run as ``python benchmarks/reductions.py [--jax PYTHON] [--shape LENGTH LENGTH]``, on one core;
PYTHON is an interpreter that has JAX. Several rounds, each of all, and the best of each, so that
all meet the same machine; symcomp and NumPy read the same memory, as where that lies counts, too.
"""

import argparse
import importlib
import json
import subprocess
import time
from functools import partial
from typing import Any

import numpy as np

NAMES = ("sum", "prod", "max", "mean", "argmax")
AXES = (0, 1, None)
DTYPES = ("float64", "float32", "int64", "int32")
ROUNDS = 4


def best(call, seconds=0.06):
    """Return the shortest time of a call, in milliseconds."""
    call()
    times = []
    stop = time.perf_counter() + seconds
    while (start := time.perf_counter()) < stop or len(times) < 3:
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def cases(shape):
    """(name, axis, dtype, matrix)"""
    rng = np.random.default_rng(1)
    for dtype in DTYPES:
        x = np.round(rng.random(shape) * 100).astype(dtype) if "int" in dtype else None
        x = rng.random(shape).astype(dtype) if x is None else x
        for name in NAMES:
            for axis in AXES:
                yield name, axis, dtype, x


def of_jax(shape):
    """Measure JAX in an interpreter that has it."""
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    times = []
    for name, axis, _, x in cases(shape):
        reduce = jax.jit(partial(getattr(jax.numpy, name), axis=axis))
        value = jax.device_put(x)
        times.append(best(lambda f=reduce, v=value: f(v).block_until_ready()))
    return times


def of_both(shape):
    """Measure symcomp and NumPy, in turn and with the same array."""
    symcomp: Any = importlib.import_module("symcomp")
    symcomp.config.early_code = False  # time optimized code only
    tensor: Any = importlib.import_module("symcomp.tensor")
    ours, theirs = [], []
    for name, axis, dtype, x in cases(shape):
        v = tensor.tensor(dtype, shape=(None, None))
        f = symcomp.function([v], getattr(tensor, name)(v, axis=axis))
        f.trust_input = True
        g = partial(getattr(np, name), axis=axis)
        pairs = [(best(partial(f, x)), best(partial(g, x))) for _ in range(2)]
        for times, found in zip((ours, theirs), zip(*pairs, strict=True), strict=True):
            times.append(min(found))
    return ours, theirs


def rounds(python, shape):
    """Return the best times of all rounds, by library."""
    found = {}
    for _ in range(ROUNDS):
        now = dict(zip(("symcomp", "NumPy"), of_both(shape), strict=True))
        if python:
            command = [python, __file__, "--alone", "--shape", *map(str, shape)]
            now["JAX"] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for who, times in now.items():
            found[who] = [min(t) for t in zip(times, found.get(who, times), strict=True)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--shape", nargs=2, type=int, default=(2000, 3000), metavar="LENGTH")
    parser.add_argument("--alone", action="store_true", help="print the times of JAX as JSON")
    given = parser.parse_args()
    if given.alone:
        print(json.dumps(of_jax(given.shape)))
        return
    found = rounds(given.jax, given.shape)
    others = [who for who in found if who != "symcomp"]
    print(
        f"{'':30} symcomp " + " ".join(f"{who:>8}" for who in others) + "   how many times faster"
    )
    for i, (name, axis, dtype, _) in enumerate(cases(given.shape)):
        mine = found["symcomp"][i]
        times = " ".join(f"{found[who][i]:8.3f}" for who in others)
        ratios = " ".join(f"{found[who][i] / mine:6.2f}" for who in others)
        print(f"{dtype:8} {name:7} axis {axis!s:8} {mine:8.3f} {times}   {ratios}")


if __name__ == "__main__":
    main()
