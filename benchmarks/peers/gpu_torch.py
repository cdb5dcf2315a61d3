"""PyTorch's side of ``benchmarks/gpu.py``, eager or compiled: the equations of ``gpu_tasks.py``."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpu_data
from gpu_data import CHAIN, RATE, uniform

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print(json.dumps({"missing": "PyTorch"}))
    sys.exit()

COMPILED = os.environ.get("GPU_TORCH_COMPILED") == "1"
# Loops that a compiler would unroll into a thousand steps.
LOOPS = ("scan", "scan_gradient", "until")


def ready(function):
    """Return a function compiled, if that is asked for."""
    return torch.compile(function) if COMPILED else function


class Place:
    """A device."""

    def __init__(self, device):
        self.device = device

    def put(self, values):
        """Return a tensor there."""
        return torch.from_numpy(values).to(self.device)

    def step(self, function, *values):
        """Return a function without arguments."""
        function = ready(function)

        def step():
            with torch.no_grad():
                return function(*values)

        return step

    def training(self, loss, weights):
        """Return a step of plain gradient descent."""
        loss = ready(loss)
        for w in weights:
            w.requires_grad_()

        def step():
            value = loss(*weights)
            slopes = torch.autograd.grad(value, weights)
            with torch.no_grad():
                torch._foreach_add_(weights, slopes, alpha=-float(RATE))
            return value.detach()

        return step


def copy(place, n, m):
    source = place.put(uniform(n, m))
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def elementwise(place, n, m):
    values = place.put(uniform(n, m)), place.put(uniform(n, m, seed=1))
    return place.step(lambda x, y: torch.sqrt(x * x + y * y), *values)


def reduction(compute):
    return lambda place, n, m: place.step(compute, place.put(uniform(n, m)))


def transposed(place, n, m):
    values = place.put(uniform(n, m)), place.put(uniform(m, n, seed=1))
    return place.step(lambda x, y: x + y.T, *values)


def gather(place, n, m):
    codes = place.put(gpu_data.labels(n, classes=n))
    return place.step(lambda x: x[codes], place.put(uniform(n, m)))


def draws(place, n, m):
    return place.step(lambda: torch.rand(n, m, device=place.device))


def cholesky(place, number, n):
    return place.step(torch.linalg.cholesky, place.put(gpu_data.positive(number, n)))


def sparse_matrix(place, n, entries):
    data, columns, pointers = map(place.put, gpu_data.compressed(n, entries))
    return torch.sparse_csr_tensor(pointers, columns, data, (n, n))


def sparse_dot(place, n, entries, m):
    s, d = sparse_matrix(place, n, entries), place.put(uniform(n, m, seed=1))
    return place.step(lambda d: s @ d, d)


def sparse_gradient(place, n, entries, m):
    s = sparse_matrix(place, n, entries)
    d = place.put(uniform(n, m, seed=1)).requires_grad_()
    loss = ready(lambda d: torch.square(s @ d).sum())
    return lambda: torch.autograd.grad(loss(d), d)[0]


def sparse_product(place, n, entries):
    s = sparse_matrix(place, n, entries)
    return place.step(lambda: (s @ s).values())


def batch_norm(place, batch, channels, size):
    shape = batch, channels, size, size
    y = place.put(uniform(*shape, seed=1))

    def loss(x, gamma, beta):
        out = F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-4)
        return (F.relu(out) * y).mean()

    weights = uniform(*shape), uniform(channels), uniform(channels, seed=1)
    return place.training(loss, [place.put(w) for w in weights])


def pooling(place, batch, channels, size):
    shape = batch, channels, size, size
    y = place.put(uniform(*shape[:2], size // 2, size // 2, seed=1))
    x = place.put(uniform(*shape)).requires_grad_()
    loss = ready(lambda x: (F.max_pool2d(x, 2) * y).sum())
    return lambda: torch.autograd.grad(loss(x), x)[0]


def embedding(place, batch, words, size):
    codes = place.put(gpu_data.labels(batch, classes=words))
    y = place.put(uniform(batch, size, seed=1))
    loss = lambda u: torch.square(F.embedding(codes, u) - y).sum()  # noqa: E731
    return place.training(loss, [place.put(uniform(words, size))])


def until(place, steps, n):
    x, start = torch.ones(n, device=place.device), torch.zeros(n, device=place.device)

    def run():
        h = start
        for _ in range(4 * steps):
            h = h + x
            if h[0] >= steps - 0.5:
                break
        return h

    return run


def product(place, n, k, m):
    return place.step(torch.mm, place.put(uniform(n, k)), place.put(uniform(k, m, seed=1)))


def mlp(place, batch, *sizes):
    x, y = place.put(uniform(batch, sizes[0])), place.put(gpu_data.labels(batch))

    def loss(*weights):
        h = x
        for k in range(0, len(weights), 2):
            h = torch.addmm(weights[k + 1], h, weights[k])
            if k + 2 < len(weights):
                h = torch.tanh(h)
        return F.cross_entropy(h, y)

    return place.training(loss, [place.put(w) for w in gpu_data.layers(sizes)])


def lenet(place, batch, size, *others):
    x, y = place.put(uniform(batch, 1, size, size)), place.put(gpu_data.labels(batch))

    def loss(w1, b1, w2, b2, w3, b3, w4, b4):
        h = torch.tanh(F.max_pool2d(F.conv2d(x, w1, b1), 2))
        h = torch.tanh(F.max_pool2d(F.conv2d(h, w2, b2), 2))
        h = torch.tanh(torch.addmm(b3, h.flatten(1), w3))
        return F.cross_entropy(torch.addmm(b4, h, w4), y)

    return place.training(loss, [place.put(w) for w in gpu_data.lenet(size, *others)])


def gru(x, w, h):
    """Return the states after each row of gates."""
    rows = []
    for row in x:
        xr, xz, xn = row.chunk(3, 1)
        ar, az, an = (h @ w).chunk(3, 1)
        r, z = torch.sigmoid(xr + ar), torch.sigmoid(xz + az)
        n = torch.tanh(xn + r * an)
        h = n + z * (h - n)
        rows.append(h)
    return torch.stack(rows)


def lstm(x, w, h):
    """Return the states after each row of gates; cells begin with zeros, as the states do."""
    rows, c = [], h
    for row in x:
        i, f, o, g = torch.addmm(row, h, w).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        rows.append(h)
    return torch.stack(rows)


def language(kind):
    def build(place, batch, length, hidden, characters):
        codes = place.put(gpu_data.labels(length + 1, batch, classes=characters))
        start = torch.zeros(batch, hidden, device=place.device)
        run = gru if kind == "gru" else lstm

        def loss(u, w, v, b):
            h = run(F.embedding(codes[:-1], u), w, start)
            return F.cross_entropy(torch.addmm(b, h.flatten(0, 1), v), codes[1:].flatten())

        weights = gpu_data.language(kind, hidden, characters)
        return place.training(loss, [place.put(w) for w in weights])

    return build


def last_state(w, x):
    h = torch.zeros_like(x[0])
    for v in x:
        h = torch.tanh(v + h @ w)
    return h


def scan(place, steps, hidden):
    w, x = (gpu_data.normal(n, hidden, seed=i) for i, n in enumerate((hidden, steps)))
    return place.step(last_state, place.put(w), place.put(x))


def scan_gradient(place, steps, hidden):
    w, x = (gpu_data.normal(n, hidden, seed=i) for i, n in enumerate((hidden, steps)))
    w, x = place.put(w).requires_grad_(), place.put(x)
    return lambda: torch.autograd.grad(last_state(w, x).sum(), w)[0]


def chain(place, n, m):
    def run(a):
        z = a
        for _ in range(CHAIN):
            z = torch.tanh(z @ a)
        return z

    return place.step(run, 0.9 * torch.eye(n, m, device=place.device))


BUILDERS = {
    "copy": copy,
    "elementwise": elementwise,
    "sum": reduction(lambda x: x.sum()),
    "sum_rows": reduction(lambda x: x.sum(1)),
    "sum_columns": reduction(lambda x: x.sum(0)),
    "softmax": reduction(lambda x: torch.softmax(x * 8, 1)),
    "transposed": transposed,
    "layer_norm": reduction(lambda x: F.layer_norm(x, x.shape[1:])),
    "cumsum": reduction(lambda x: x.cumsum(1)),
    "gather": gather,
    "uniform": draws,
    "sort": reduction(lambda x: x.sort(1)[0]),
    "argmax": reduction(lambda x: x.argmax(1)),
    "fourier": reduction(lambda x: torch.fft.rfft(x).abs()),
    "cholesky": cholesky,
    "sparse_dot": sparse_dot,
    "sparse_gradient": sparse_gradient,
    "sparse_product": sparse_product,
    "batch_norm": batch_norm,
    "pooling": pooling,
    "embedding": embedding,
    "until": until,
    "product": product,
    "mlp": mlp,
    "lenet": lenet,
    "gru": language("gru"),
    "lstm": language("lstm"),
    "scan": scan,
    "scan_gradient": scan_gradient,
    "chain": chain,
}


def build(task, sizes, device):
    """Return the step of a task, and what reads the largest element of its result."""
    return BUILDERS[task.kind](Place(device), *sizes), lambda z: float(z.max())


def wait(device):
    """Wait for a device."""
    if device != "cpu":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    skipped = ("chain_without_graphs", "embedding_atomics", *(LOOPS if COMPILED else ()))
    gpu_data.work("PyTorch", build, wait, skipped)
