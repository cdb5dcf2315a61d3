"""Kernels, convolutions and pools that threads share give the bits of one thread."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.ops.windows.convolution import Convolve
from symcomp.ops.windows.convolve import read_geometry
from symcomp.tests.cvm.looking import kinds_of

RNG = np.random.default_rng(17)
pool = T.signal.pool.pool_2d


def of_threads(threads: int, inputs: Any, outputs: Any, kind: str) -> Any:
    """Compile a function whose calls of a kind are shared by this many threads."""
    with config.change_flags(kernels=True, openmp=True, openmp_threads=threads, blas_threads=1):
        f = symcomp.function(inputs, outputs, mode=symcomp.Mode("cvm", "fast_run"))
    assert kind in kinds_of(f)
    return f


def bits(array: Any) -> bytes:
    return np.asarray(array).tobytes()


def check(inputs: Any, outputs: Any, kind: str, *calls: Any) -> None:
    """Compare threads with one, in the first call of each layout and in calls that repeat it."""
    alone = of_threads(1, inputs, outputs, kind)
    shared = of_threads(3, inputs, outputs, kind)
    for values in (*calls, *calls):
        assert [*map(bits, shared(*values))] == [*map(bits, alone(*values))]


def layouts(x: Any) -> list[Any]:
    """Yield the same numbers in C order, transposed in memory, reversed and with gaps."""
    wide = np.zeros([2 * n for n in x.shape], x.dtype)[:, ::2][::2]
    wide[...] = x
    return [x, np.asfortranarray(x), x[::-1, ::-1].copy()[::-1, ::-1], wide]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int16"])
def test_kernels(dtype: str) -> None:
    x, y = (T.TensorType(dtype, (None, None))(name) for name in "xy")
    v = T.TensorType(dtype, (None,))("v")
    z = x * x + v * y
    outputs = [z, z.sum(axis=0), z.sum(axis=1), z.sum(), x.T + y.T, (x - v).sum(axis=0)]
    if dtype.startswith("float"):
        outputs += [T.exp(x), x.max(axis=0), y.min(), T.nnet.softmax(x), y.var(axis=0)]
        outputs += [(x / T.exp(y).sum(axis=1, keepdims=True)).sum(axis=0)]
    calls = []
    for shape, count in ((460, 333), 4), ((3, 50_001), 1), ((80_001, 2), 1):
        a, b = (RNG.normal(size=shape) * 9 for _ in range(2))
        if dtype.startswith("float"):
            a.flat[[5, 70_000, -1]] = -0.0, np.inf, np.nan
        a, b = a.astype(dtype), b.astype(dtype)
        v_of_call = RNG.normal(size=shape[1]).astype(dtype)
        pairs = [*zip(layouts(a), layouts(b)[::-1], strict=True)]
        calls += [(p, q, v_of_call) for p, q in pairs[:count]]
    with np.errstate(invalid="ignore"):
        check([x, y, v], outputs, "kernel", *calls)


GEOMETRIES = {
    "one axis": ((2, 1, 1, 1), (50, 8, 90), (24, 8, 5), 1),
    "groups": (("half", 1, 1, 2), (21, 8, 13, 12), (12, 4, 5, 3), 2),
    "steps": (((1, 2), (2, 1), (1, 2), 2), (37, 6, 21, 20), (16, 6, 5, 5), 1),
    "few windows": (("valid", 1, 1, 2), (150, 16, 7, 6), (32, 16, 5, 5), 1),
    "large kernels": (("full", 1, 1, 2), (5, 12, 9, 9), (16, 12, 7, 7), 1),
    "volumes": (("half", 1, 1, 3), (9, 4, 7, 8, 9), (8, 4, 3, 3, 3), 1),
}


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolutions_and_their_adjoints(name: str, dtype: str) -> None:
    (*given, axes), images, kernels, groups = GEOMETRIES[name]
    geometry = read_geometry("test", *given, axes)
    kind = T.TensorType(dtype, (None,) * (axes + 2))
    x, w, g = (kind(n) for n in "xwg")
    y = Convolve(geometry, groups)(x, w)
    counts = geometry.counts(images[2:], kernels[2:])
    shapes = images, kernels, (images[0], kernels[0], *counts)
    values = [RNG.normal(size=shape).astype(dtype) for shape in shapes]
    turned = [np.asfortranarray(value) for value in values]
    check([x, w, g], [y, *symcomp.Lop(y, [x, w], g)], "convolution", values, turned)


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pools_and_their_adjoints(mode: str, dtype: str) -> None:
    x = T.tensor4("x", dtype=dtype)
    padded = mode != "sum"
    outputs = [
        pool(x, (3, 2), True, mode=mode),
        pool(x, (3, 3), True, stride=(2, 1), pad=(1, 1) if padded else (0, 0), mode=mode),
    ]
    outputs += [symcomp.grad((y**2).sum(), x) for y in outputs]
    a = RNG.normal(size=(19, 5, 83, 70)).astype(dtype)
    a[3, 1, 5:9, 4] = np.nan
    a[4:6] = np.round(a[4:6])  # equal numbers
    check([x], outputs, "pool", [a], [np.asfortranarray(a)])


def test_volumes_that_are_pooled() -> None:
    x = T.TensorType("float32", (None,) * 5)("x")
    modes = ("max", "average_inc_pad")
    outputs = [T.signal.pool.pool_3d(x, (2, 2, 2), False, mode=mode) for mode in modes]
    outputs += [symcomp.grad((y**3).sum(), x) for y in outputs]
    check([x], outputs, "pool", [RNG.normal(size=(7, 6, 23, 30, 21)).astype("f4")])


SCRIPT = """
import os
import numpy as np
import symcomp, symcomp.tensor as T
from symcomp.config import config
config.openmp, config.blas_threads, config.kernels = True, 1, True
x, w = T.ftensor4("x"), T.ftensor4("w")
a, b = np.ones((40, 8, 64, 64), "f4"), np.ones((8, 8, 3, 3), "f4")
outputs = [
    T.exp(x), T.exp(x).sum(axis=1), T.nnet.conv2d(x, w),
    T.signal.pool.pool_2d(x, (2, 2), ignore_border=True),
]
for threads, output in enumerate(outputs, 2):
    config.openmp_threads = threads
    f = symcomp.function([x, w], output, on_unused_input="ignore", mode="FAST_RUN")
    before = len(os.listdir("/proc/self/task"))
    f(a, b), f(a, b)
    print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are not listed")
def test_large_ones_are_shared() -> None:
    """Each kernel, reduction, convolution and pool starts one more thread than the last."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["1"] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_shares_work() -> None:
    x, w = T.ftensor4("x"), T.ftensor4("w")
    y = T.nnet.conv2d(x, w)
    outputs = [y, pool(T.exp(y), (2, 2), True)]
    f = of_threads(2, [x, w], outputs, "pool")
    values = [RNG.normal(size=shape).astype("f4") for shape in ((40, 8, 40, 40), (8, 8, 3, 3))]
    want = [*map(bits, f(*values))]
    child = os.fork()
    if child == 0:
        try:
            same = [*map(bits, f(*values))] == want and [*map(bits, f(*values))] == want
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
