"""Time to the first result in a new process: importing, building, compiling, one step of training.

    python benchmarks/cold.py [--peers PYTHON] [--repeats N]

The task is a classifier of 784 inputs, 500 hidden tanh units and 10 classes, in float32, trained
by plain gradient descent on batches of 60. Each measurement is a process of its own, from its start
to its end, after it has printed the loss: with an empty cache of compiled code, and with what that
left there, when what goes on in the background has ended, too.
`--peers` names a Python that has PyTensor or JAX; those it has are measured in the same sitting.
The times of `import` are beside NumPy's, with bytecode that has been written. Pin the process to
one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = """
import numpy as np
rng = np.random.default_rng(0)
images = rng.random((60, 784), dtype=np.float32)
labels = rng.integers(0, 10, 60).astype(np.int32)
W, V = (rng.normal(0, n**-0.5, (n, m)).astype(np.float32) for n, m in ((784, 500), (500, 10)))
b, c = np.zeros(500, np.float32), np.zeros(10, np.float32)
rate = np.float32(0.01)
"""

SYMBOLIC = """
import LIBRARY
import LIBRARY.tensor as T
from LIBRARY import function, grad, shared
parameters = [shared(a) for a in (W, b, V, c)]
x, y = T.fmatrix("x"), T.ivector("y")
h = T.tanh(T.dot(x, parameters[0]) + parameters[1])
z = T.dot(h, parameters[2]) + parameters[3]
log_p = LOG_SOFTMAX
loss = -log_p[T.arange(y.shape[0]), y].mean()
updates = [(p, p - rate * g) for p, g in zip(parameters, grad(loss, parameters))]
f = function([x, y], loss, updates=updates)
print(float(f(images, labels)))
"""

JAX = """
import jax
import jax.numpy as jnp

def loss(parameters, x, y):
    w, b, v, c = parameters
    log_p = jax.nn.log_softmax(jnp.tanh(x @ w + b) @ v + c)
    return -log_p[jnp.arange(y.shape[0]), y].mean()

@jax.jit
def step(parameters, x, y):
    value, slopes = jax.value_and_grad(loss)(parameters, x, y)
    return value, [p - rate * g for p, g in zip(parameters, slopes)]

print(float(step([W, b, V, c], images, labels)[0]))
"""

OURS = SYMBOLIC.replace("LIBRARY", "symcomp").replace("LOG_SOFTMAX", "T.nnet.log_softmax(z)")

# For each library: its program, and how it is told where to keep compiled code.
PROGRAMS = {
    "symcomp": (
        OURS,
        {"SYMCOMP_FLAGS": "compiledir={}"},
    ),
    "symcomp, early_code=False": (
        OURS,
        {"SYMCOMP_FLAGS": "compiledir={},early_code=False"},
    ),
    "pytensor": (
        SYMBOLIC.replace("LIBRARY", "pytensor").replace(
            "LOG_SOFTMAX", "T.special.log_softmax(z, axis=1)"
        ),
        {"PYTENSOR_FLAGS": "base_compiledir={},floatX=float32"},
    ),
    "jax": (
        JAX,
        {
            "JAX_COMPILATION_CACHE_DIR": "{}",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
            "JAX_PLATFORMS": "cpu",
        },
    ),
}


def run(python: str, program: str, settings: dict[str, str]) -> tuple[float, str]:
    """Run a program in a process of its own; return the seconds it takes, and its output.

    With `-P`, the packages of `python` are imported, whatever lies in the current folder.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(
        [python, "-P", "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(done.stderr)
    return seconds, done.stdout.strip()


def settle(cache: Path) -> None:
    """Wait until nothing is written any more for a second: symcomp optimizes in the background."""
    before = None
    while before != (now := {path.name for path in cache.rglob("*")}) or any(
        name.startswith("new-") for name in now
    ):
        before = now
        time.sleep(1)


def first_result(python: str, library: str, repeats: int) -> tuple[float, float, float]:
    """Return the shortest times with an empty cache and with a filled one, and the loss."""
    program, settings = PROGRAMS[library]
    cold, warm, loss = [], [], 0.0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            here = {name: value.format(cache) for name, value in settings.items()}
            for times in (cold, warm):
                seconds, printed = run(python, DATA + program, here)
                times.append(seconds)
                settle(cache)
                loss = float(printed)
    return min(cold), min(warm), loss


def imports(python: str, repeats: int) -> dict[str, float]:
    """Return the shortest times of processes that import NumPy, and symcomp."""
    best = {}
    for _ in range(repeats):
        for name in ("numpy", "symcomp"):
            best[name] = min(best.get(name, 9e9), run(python, f"import {name}", {})[0])
    return best


def has(python: str, module: str) -> bool:
    """Tell whether that Python can import a module."""
    test = f"import importlib.util as u; print(u.find_spec({module!r}) is not None)"
    return run(python, test, {})[1] == "True"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peers", help="a Python that has PyTensor or JAX")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    runners = [(sys.executable, name) for name in PROGRAMS if PROGRAMS[name][0] == OURS]
    if options.peers:
        names = [name for name, (text, _) in PROGRAMS.items() if text != OURS]
        runners += [(options.peers, name) for name in names if has(options.peers, name)]
    print("| first result | empty cache (s) | filled cache (s) | loss |\n|---|---|---|---|")
    for python, library in runners:
        cold, warm, loss = first_result(python, library, options.repeats)
        print(f"| {library} | {cold:.2f} | {warm:.2f} | {loss:.6f} |", flush=True)
    best = imports(sys.executable, 2 * options.repeats)
    ratio = best["symcomp"] / best["numpy"]
    print(
        f"\nimport symcomp: {best['symcomp']:.3f} s, import numpy: {best['numpy']:.3f} s, "
        f"ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
