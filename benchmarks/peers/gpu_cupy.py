"""CuPy's side of ``benchmarks/gpu.py``: arrays, reductions, products and loops, no gradients."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpu_data
from gpu_data import CHAIN, uniform

try:
    import cupy as cp
    import cupyx.scipy.sparse
except ImportError:
    print(json.dumps({"missing": "CuPy"}))
    sys.exit()


def copy(n, m):
    source = cp.asarray(uniform(n, m))
    target = cp.empty_like(source)

    def step():
        cp.copyto(target, source)
        return target

    return step


def elementwise(n, m):
    x, y = cp.asarray(uniform(n, m)), cp.asarray(uniform(n, m, seed=1))
    fused = cp.fuse(kernel_name="root_of_squares")(lambda x, y: cp.sqrt(x * x + y * y))
    return lambda: fused(x, y)


def reduction(axis):
    def build(n, m):
        x = cp.asarray(uniform(n, m))
        return lambda: x.sum(axis)

    return build


def softmax(n, m):
    x = cp.asarray(uniform(n, m))

    def step():
        z = x * 8
        e = cp.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return step


def of_rows(compute):
    def build(n, m):
        x = cp.asarray(uniform(n, m))
        return lambda: compute(x)

    return build


def transposed(n, m):
    x, y = cp.asarray(uniform(n, m)), cp.asarray(uniform(m, n, seed=1))
    return lambda: x + y.T


def gather(n, m):
    x, codes = cp.asarray(uniform(n, m)), cp.asarray(gpu_data.labels(n, classes=n))
    return lambda: x[codes]


def cholesky(number, n):
    a = cp.asarray(gpu_data.positive(number, n))
    return lambda: cp.linalg.cholesky(a)


def sparse_matrix(n, entries):
    given = tuple(map(cp.asarray, gpu_data.compressed(n, entries)))
    return cupyx.scipy.sparse.csr_matrix(given, shape=(n, n))


def sparse_dot(n, entries, m):
    s, d = sparse_matrix(n, entries), cp.asarray(uniform(n, m, seed=1))
    return lambda: s @ d


def sparse_product(n, entries):
    s = sparse_matrix(n, entries)
    return lambda: (s @ s).data


def until(steps, n):
    x, start = cp.ones(n, "float32"), cp.zeros(n, "float32")

    def step():
        h = start
        for _ in range(4 * steps):
            h = h + x
            if h[0] >= steps - 0.5:
                break
        return h

    return step


def product(n, k, m):
    x, y = cp.asarray(uniform(n, k)), cp.asarray(uniform(k, m, seed=1))
    return lambda: x @ y


def scan(steps, hidden):
    w, x = (gpu_data.normal(n, hidden, seed=i) for i, n in enumerate((hidden, steps)))
    w, x = cp.asarray(w), cp.asarray(x)

    def step():
        h = cp.zeros(hidden, "float32")
        for v in x:
            h = cp.tanh(v + h @ w)
        return h

    return step


def chain(n, m):
    a = cp.eye(n, m, dtype="float32") * cp.float32(0.9)

    def step():
        z = a
        for _ in range(CHAIN):
            z = cp.tanh(z @ a)
        return z

    return step


BUILDERS = {
    "copy": copy,
    "elementwise": elementwise,
    "sum": reduction(None),
    "sum_rows": reduction(1),
    "sum_columns": reduction(0),
    "softmax": softmax,
    "transposed": transposed,
    "cumsum": of_rows(lambda x: x.cumsum(1)),
    "gather": gather,
    "uniform": lambda n, m: lambda: cp.random.random((n, m), "float32"),
    "sort": of_rows(lambda x: cp.sort(x, 1)),
    "argmax": of_rows(lambda x: x.argmax(1)),
    "fourier": of_rows(lambda x: cp.abs(cp.fft.rfft(x))),
    "cholesky": cholesky,
    "sparse_dot": sparse_dot,
    "sparse_product": sparse_product,
    "until": until,
    "product": product,
    "scan": scan,
    "chain": chain,
}


def build(task, sizes, device):
    """Return the step of a task, and what reads the largest element of its result."""
    return BUILDERS[task.kind](*sizes), lambda z: float(z.max())


if __name__ == "__main__":
    skipped = {task.kind for task in gpu_data.TASKS} - {*BUILDERS}
    gpu_data.work("CuPy", build, lambda device: cp.cuda.Device().synchronize(), skipped)
