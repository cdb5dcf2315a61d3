"""Lines that hold infinities: softmax, its logarithm and log-sum-exp, written in any way and run
by either machine, and their derivatives, do not depend on how large the finite elements are.
"""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

inf, nan = np.inf, np.nan
LARGE = {
    "float64": (3.0, 750.0, 1.7e308),
    "float32": (3.0, 95.0, 3e38),
    "float16": (3.0, 95.0, 6e4),
}


def lines(large, dtype):
    return np.array(
        [
            [1.0, inf, 0.5], [inf, inf, large], [-inf, inf, large], [nan, inf, large],
            [large, -1.0, inf], [-large, large, inf], [-inf, -inf, -inf], [nan, 1.0, large],
        ],
        dtype,
    )  # fmt: skip


def softmax_of(x, axis):
    e = T.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def weighted(x, axis):
    w = np.array([1.0, 2.0, 3.0]).astype(x.dtype)
    return T.constant(w[None] if axis else w[:, None]) * T.exp(x)


FUNCTIONS = {
    "softmax": lambda x, axis: T.nnet.softmax(x, axis=axis),
    "written softmax": softmax_of,
    "shifted softmax": lambda x, axis: softmax_of(x - x.max(axis=axis, keepdims=True), axis),
    "log_softmax": lambda x, axis: T.nnet.log_softmax(x, axis=axis),
    "written log_softmax": lambda x, axis: T.log(softmax_of(x, axis)),
    "logsumexp": lambda x, axis: T.logsumexp(x, axis=axis),
    "written logsumexp": lambda x, axis: T.log(T.exp(x).sum(axis=axis)),
    "weighted softmax": lambda x, axis: (
        weighted(x, axis) / weighted(x, axis).sum(axis=axis, keepdims=True)
    ),
    "weighted logsumexp": lambda x, axis: T.log(weighted(x, axis).sum(axis=axis)),
    "one label": lambda x, axis: (
        T.nnet.log_softmax(x if axis else x.T)[T.arange(8), np.zeros(8, int)]
    ),
}  # fmt: skip
# Each letter is one element of a slice's result: NaN, a number, or plus or minus infinity.
SOFT = "fnf nnf fnf nnn ffn ffn nnn nnn"
LOG = "-n- nn- -n- nnn --n --n nnn nnn"
EXPECTED = {
    "softmax": SOFT, "written softmax": SOFT, "weighted softmax": SOFT,
    "shifted softmax": SOFT,
    "log_softmax": LOG, "written log_softmax": LOG,
    "logsumexp": "+ + + n + + - n", "written logsumexp": "+ + + n + + - n",
    "weighted logsumexp": "+ + + n + + - n", "one label": "- n - n - - n n",
}  # fmt: skip


def kinds(z):
    """Return a letter for each number: NaN, +, -, or f for a finite one."""
    return np.select([np.isnan(z), z == inf, z == -inf], ["n", "+", "-"], "f")


def compiled(dtype, axis, mode):
    """Return a function of all results, gradients and R-ops of along-axis functions."""
    x, dx = T.matrices("x", "dx", dtype=dtype)
    results = []
    for function in FUNCTIONS.values():
        z = function(x, axis)
        assert z.dtype == dtype
        scale = np.arange(1, 4 if z.ndim == 2 else 9).astype(dtype)
        scale = scale[:, None] if z.ndim == 2 and axis == 0 else scale
        results += [z, T.grad((z * scale).sum(), x), T.Rop(z, x, dx)]
    return symcomp.function([x, dx], results, mode=mode)


@pytest.mark.parametrize("dtype, axis", [("float64", 1), ("float32", 0), ("float16", 1)])
def test_results_do_not_depend_on_finite_elements(dtype, axis):
    found = {}
    for linker, kernels in (("vm", False), ("cvm", True)):
        with symcomp.config.change_flags(kernels=kernels):
            f = compiled(dtype, axis, symcomp.Mode(linker))
        for large in LARGE[dtype]:
            x = lines(large, dtype)
            tangent = np.ones_like(x) * np.array([1, 2, 3], dtype)
            given = (x, tangent) if axis else (x.T, tangent.T)
            found[linker, large] = [kinds(z if axis else z.T) for z in f(*given)]
    first, *others = found.values()
    for name, value in zip(FUNCTIONS, first[::3], strict=True):
        assert " ".join("".join(np.atleast_1d(line)) for line in value) == EXPECTED[name], name
    for results in others:
        for i, (got, want) in enumerate(zip(results, first, strict=True)):
            np.testing.assert_array_equal(got, want, f"{[*FUNCTIONS][i // 3]}, {i % 3}")
