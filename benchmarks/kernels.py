"""Generated kernels beside hand-written C with the same flags, and NumPy: GB/s and times.

Run as ``python benchmarks/kernels.py``.
"""

import ctypes
import time
from functools import partial

import numpy as np

import symcomp
from symcomp import tensor
from symcomp.codegen.compiler.driver import load
from symcomp.codegen.kernel import kernel_of, whole_kernel
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Literal, Result, Step
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.ops.reductions.reduce import REDUCTIONS, Reduce

COUNT = 10**7
# With the exponential of kernels, and with that of the C library, one number at a time.
BY_HAND = """
int by_hand(char *const *data, const int64_t *shape, const int64_t *strides,
            const struct team *team)
{
    const double *a = (const double *)data[0], *b = (const double *)data[1];
    const double *c = (const double *)data[2];
    double *restrict z = (double *)data[3];
    int64_t n = shape[0];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        z[i] = 2 * a[i] + 3 * (b[i] * b[i]) - FUNCTION(-c[i]);
    return 0;
}
"""


def row(name):
    return ROWS[name]()


def example():
    """2 a + 3 b^2 - exp(-c)."""
    kind = "float64"
    steps = (
        Step(row("mul"), (3, 0), kind),
        Step(row("sqr"), (1,), kind),
        Step(row("mul"), (4, 6), kind),
        Step(row("add"), (5, 7), kind),
        Step(row("neg"), (2,), kind),
        Step(row("exp"), (9,), kind),
        Step(row("sub"), (8, 10), kind),
    )
    literals = (Literal.of(np.float64(2)), Literal.of(np.float64(3)))
    return Formula((kind,) * 3, literals, steps, (Result(11),))


def reduction(name, axis, kind="float64"):
    """One reduction of a matrix."""
    step = Step(Reduce(REDUCTIONS[name], (axis,)), (0,), kind)
    return Formula((kind,), (), (step,), (Result(1, (axis,)),))


def softmax(kind):
    """Return softmax of the rows of a matrix."""
    steps = (
        Step(Reduce(REDUCTIONS["max"], (1,)), (0,), kind),
        Step(row("sub"), (0, 1), kind),
        Step(row("exp"), (2,), kind),
        Step(Reduce(REDUCTIONS["sum"], (1,)), (3,), kind),
        Step(row("true_div"), (3, 4), kind),
    )
    return Formula((kind,), (), steps, (Result(5),))


def best(call, repeats=7):
    """Return the shortest time of a call, in seconds, of several that take 0.1 s or more together.
    """
    call()
    times = []
    for _ in range(repeats):
        count = 0
        start = time.perf_counter()
        while (now := time.perf_counter()) - start < 0.1:
            call()
            count += 1
        times.append((now - start) / count)
    return min(times)


def caller(address, arrays, literals, shape, strides=None):
    """Make a function without arguments that runs a kernel."""
    lengths = ctypes.POINTER(ctypes.c_int64)
    kinds = (ctypes.POINTER(ctypes.c_void_p), lengths, lengths, lengths)
    function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)
    numbers = [np.array(literal.array) for literal in literals]
    held = [*arrays, *numbers]
    steps = strides or [step for a in arrays for step in a.strides]
    arguments = (
        (ctypes.c_void_p * len(held))(*(a.ctypes.data for a in held)),
        (ctypes.c_int64 * len(shape))(*shape),
        (ctypes.c_int64 * len(steps))(*steps),
        (ctypes.c_int64 * 7)(1),  # a team of one thread, which shares and keeps nothing
    )

    def call():
        assert function(*arguments) == 0, held

    return call


def kernel_caller(formula, patterns, arrays, shape, strides=None):
    kernel = kernel_of(formula, patterns)
    assert kernel is not None
    (address,) = load(translation_unit([kernel]), [kernel.name]) or [0]
    return caller(address, arrays, kernel.literals, shape, strides)


def show(name, seconds, size, others):
    """Print a line: bytes a second, and how many times faster than the others."""
    text = ", ".join(f"{other / seconds:.2f} x {label}" for label, other in others.items())
    print(f"{name:32} {seconds * 1e3:9.4f} ms {size / seconds / 1e9:7.2f} GB/s   {text}")


def elementwise(count):
    rng = np.random.default_rng(1)
    a, b, c = (rng.random(count) for _ in range(3))
    z, other = np.zeros(count), np.zeros(count)
    formula = example()
    unit = translation_unit([kernel_of(formula, [(False,)] * 3)])
    same, library = (
        load(unit + BY_HAND.replace("FUNCTION", name), ["by_hand"])[0] for name in ("m_exp", "exp")
    )
    ours = kernel_caller(formula, [(False,)] * 3, [a, b, c, z], [count])
    hand = caller(same, [a, b, c, other], (), [count])
    libm = caller(library, [a, b, c, other], (), [count])
    seconds = best(ours)
    others = {
        "by hand": best(hand),
        "by hand with exp of libm": best(libm),
        "NumPy": best(lambda: 2 * a + 3 * b**2 - np.exp(-c), 3),
    }
    assert np.allclose(z, other, 1e-14)
    show(f"2a + 3b^2 - exp(-c), {count}", seconds, 32 * count, others)


def moved(count):
    """Join a transposed matrix to another, and write it to a part, by functions."""
    x, y = np.random.default_rng(1).random((2, count, count))
    v, w = tensor.matrices("v", "w", dtype="float64")
    part = tensor.set_subtensor(w[1:], v.T[1:])

    def numpy():
        z = y.copy()
        z[1:] = x.T[1:]
        return z

    for name, result, bytes_moved, other in (
        ("join(x.T, y)", tensor.join(0, v.T, w), 4 * x.nbytes, lambda: np.concatenate([x.T, y])),
        ("z[1:] = x.T[1:]", part, 4 * x.nbytes, numpy),
    ):
        f = symcomp.function([v, w], result)
        f.trust_input = True
        show(f"{name}, {x.shape}", best(partial(f, x, y)), bytes_moved, {"NumPy": best(other)})


def transposed(count):
    """Return a sum with a transposed matrix, whose rows are strided."""
    x, y = np.random.default_rng(1).random((2, count, count))
    z, kind = np.zeros_like(x), "float64"
    formula = Formula((kind, kind), (), (Step(ROWS["add"](), (0, 1), kind),), (Result(2),))
    call = kernel_caller(formula, [(False, False)] * 2, [x, y.T, z], x.shape)
    others = {"NumPy": best(lambda: x + y.T), "NumPy's x + y": best(lambda: x + y)}
    show(f"x + y.T, {x.shape}", best(call), 3 * x.nbytes, others)


def reductions(shape, kind):
    x = np.random.default_rng(1).random(shape).astype(kind)
    for name in ("sum", "max"):
        for axis in (0, 1):
            z = np.zeros(shape[1 - axis], kind)
            strides = [*x.strides, *((z.itemsize, 0) if axis else (0, z.itemsize))]
            call = kernel_caller(
                reduction(name, axis, kind), [(False, False)], [x, z], shape, strides
            )
            numpy = best(lambda name=name, axis=axis: getattr(x, name)(axis))
            show(f"{name} {shape} axis {axis} {kind}", best(call), x.nbytes, {"NumPy": numpy})


def rows(shape, kind):
    x = np.random.default_rng(1).random(shape).astype(kind)
    z = np.zeros_like(x)
    call = kernel_caller(softmax(kind), [(False, False)], [x, z], shape)

    def numpy():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    others = {"NumPy": best(numpy)}
    show(f"softmax {shape} {kind}", best(call), 2 * x.nbytes, others)


def lines(shape, kind):
    """Softmax and log-softmax exact to the last digits, beside the plain formula in NumPy."""
    x = np.random.default_rng(1).standard_normal(shape).astype(kind)
    z = np.zeros_like(x)

    def softmax():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def log_softmax():
        d = x - x.max(1, keepdims=True)
        return d - np.log(np.exp(d).sum(1, keepdims=True))

    for op, numpy in ((Softmax(1), softmax), (LogSoftmax(1), log_softmax)):
        formula = Formula((kind,), (), (Step(op, (0,), kind),), (Result(1),))
        kernel = whole_kernel(formula, [(False, False)]).kernel
        (address,) = load(translation_unit([kernel]), [kernel.name])
        call = caller(address, [x, z], kernel.literals, shape)
        others = {"NumPy": best(numpy), "the op in NumPy": best(lambda op=op: op.perform(x))}
        show(f"{type(op).__name__} {shape} {kind}", best(call), 2 * x.nbytes, others)


def main():
    """Print all."""
    for count in (100, 10_000, COUNT):
        elementwise(count)
    for count in (256, 500, 512, 1000, 1024, 2048):
        transposed(count)
        moved(count)
    for kind in ("float64", "float32"):
        for shape in ((20, 30), (200, 300), (2000, 3000)):
            reductions(shape, kind)
    for shape in ((60, 10), (60, 500), (2000, 3000)):
        rows(shape, "float32")
    for kind in ("float64", "float32"):
        for shape in ((60, 10), (1000, 1000)):
            lines(shape, kind)


if __name__ == "__main__":
    main()
