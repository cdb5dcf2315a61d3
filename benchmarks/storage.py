"""Times of float16 and bfloat16 beside those of float32.

    python benchmarks/storage.py [--size N]

Functions of N elements (a million), and products of square matrices of as many. The dtypes are
measured in turn, in one process, and the best of several windows counts. Pin the process to one
core, with one thread (OMP_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import timeit
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T

symcomp.config.early_code = False  # time optimized code only
DTYPES = ("float32", "float16", "bfloat16")
FUNCTIONS: dict[str, Any] = {
    "x * y + 1": lambda x, y: x * y + 1,
    "exp(x)": lambda x, y: T.exp(x),
    "tanh(x) * y": lambda x, y: T.tanh(x) * y,
    "sum(x)": lambda x, y: x.sum(),
    "sum(x, axis=0)": lambda x, y: x.sum(axis=0),
    "softmax(x)": lambda x, y: T.nnet.softmax(x),
    "dot(x, y)": T.dot,
}
WINDOWS, SECONDS = 7, 0.1


def call_of(build: Any, dtype: str, side: int) -> Any:
    """Return a call of the compiled function of two square matrices."""
    x, y = (T.matrix(dtype=dtype) for _ in "xy")
    rng = np.random.default_rng(0)
    values = [rng.random((side, side)).astype(x.type.numpy_dtype) for _ in "xy"]
    f = symcomp.function([x, y], build(x, y), on_unused_input="ignore")
    return lambda: f(*values)


def best(calls: list[Any]) -> list[float]:
    """Return the least microseconds of each call; they take turns."""
    counts = [max(1, int(SECONDS / min(timeit.repeat(c, number=1, repeat=5)))) for c in calls]
    found = [float("inf")] * len(calls)
    for _ in range(WINDOWS):
        for i, (call, n) in enumerate(zip(calls, counts, strict=True)):
            found[i] = min(found[i], 1e6 * timeit.timeit(call, number=n) / n)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1_000_000)
    side = round(parser.parse_args().size ** 0.5)
    print(f"{'microseconds':16}", *(f"{dtype:>10}" for dtype in DTYPES), "    ratios to float32")
    for name, build in FUNCTIONS.items():
        times = best([call_of(build, dtype, side) for dtype in DTYPES])
        ratios = " ".join(f"{t / times[0]:6.2f}" for t in times[1:])
        print(f"{name:16}", *(f"{t:10.1f}" for t in times), "  ", ratios)


if __name__ == "__main__":
    main()
