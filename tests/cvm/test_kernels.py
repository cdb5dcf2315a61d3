"""Functions whose loops are generated C give what the Python machine gives with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.cvm.kernels import formula_of
from symcomp.tests.cvm.looking import kinds_of

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def kernels(tmp_path_factory):
    with config.change_flags(kernels=True):
        yield


def pair(inputs, outputs):
    """Return the same function with kernels and without; the first has some."""
    native = symcomp.function(inputs, outputs, mode=symcomp.Mode("cvm"))
    assert "kernel" in kinds_of(native)
    return native, symcomp.function(inputs, outputs, mode=symcomp.Mode("vm"))


def compare(functions, *values, rtol=1e-13):
    """Call both, twice, and compare; the arguments stay as they are."""
    before = [v.copy() for v in values]
    native, python = functions
    want = python(*values)
    for _ in range(2):
        for got, right in zip(native(*values), want, strict=True):
            assert got.dtype == right.dtype and got.shape == right.shape
            np.testing.assert_allclose(got, right, rtol=rtol, atol=rtol)
    for v, old in zip(values, before, strict=True):
        np.testing.assert_array_equal(v, old)


def test_elementwise_and_broadcast():
    x, r, s = T.dmatrix("x"), T.drow("r"), T.dscalar("s")
    both = pair([x, r, s], [T.exp(x) * r + s, T.maximum(x, r), (x > s).sum(axis=0)])
    for n, m in ((0, 3), (3, 0), (1, 1), (4, 5), (300, 70)):
        x_ = RNG.normal(size=(n, m))
        for v in (x_, np.asfortranarray(x_), np.repeat(x_, 2, axis=1)[:, ::2], x_[::-1]):
            compare(both, v, RNG.normal(size=(1, m)), np.asarray(0.3))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
)
def test_dtypes(dtype):
    x, y = (T.tensor(dtype, shape=(None,)) for _ in "xy")
    both = pair([x, y], [x + y, T.eq(x, y), T.switch(x > y, x, y), x.sum(), x.max()])
    values = [(10 * RNG.normal(size=37)).astype(dtype) for _ in "xy"]
    compare(both, *values, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), None])
def test_reductions(axis):
    x = T.dtensor3("x")
    outputs = [
        getattr(y, reduce)(axis=axis)
        for y in (x, T.tanh(x))
        for reduce in ("sum", "prod", "max", "min", "mean")
    ]
    both = pair([x], outputs)
    for shape in ((2, 3, 4), (1, 5, 1), (40, 3, 70)):
        v = RNG.normal(size=shape)
        compare(both, v, rtol=1e-12)
        compare(both, v.transpose(2, 0, 1), rtol=1e-12)
    special = RNG.normal(size=(2, 3, 4))
    special[0, 1, 2] = np.nan
    compare(both, special, rtol=1e-12)


def test_a_training_step():
    x, t = T.fmatrix("x"), T.ivector("t")
    w = symcomp.shared(RNG.normal(size=(7, 3)).astype("float32"), "w")
    b = symcomp.shared(np.zeros(3, "float32"), "b")
    p = T.nnet.softmax(T.tanh(T.dot(x, w) + b))
    loss = -T.log(p)[T.arange(t.shape[0]), t].mean()
    grads = symcomp.grad(loss, [w, b])
    results = []
    for linker in ("cvm", "vm"):
        w.set_value(np.ones((7, 3), "float32"))
        b.set_value(np.zeros(3, "float32"))
        step = symcomp.function(
            [x, t], loss, updates=[(p, p - 0.1 * g) for p, g in zip([w, b], grads, strict=True)],
            mode=symcomp.Mode(linker),
        )  # fmt: skip
        rng = np.random.default_rng(0)
        losses = [
            float(
                step(
                    rng.normal(size=(5, 7)).astype("float32"), rng.integers(0, 3, 5).astype("int32")
                )
            )
            for _ in range(20)
        ]
        results.append((losses, w.get_value(), b.get_value()))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_lengths_that_differ():
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], T.exp(x) + y, mode=symcomp.Mode("cvm"))
    with pytest.raises(ValueError, match=r"\(2,\) \(3,\)"):
        f(np.ones(2), np.ones(3))
    assert f(np.zeros(2), np.ones(2)).tolist() == [2.0, 2.0]


def test_which_nodes_have_kernels():
    x = T.dmatrix("x")
    f = symcomp.function([x], [T.exp(x), x.sum(axis=0), T.dot(x, x)], mode=symcomp.Mode("cvm"))
    code = f.program.instructions
    found = {i for i, kind in enumerate(kinds_of(f)) if kind == "kernel"}
    assert {i for i, step in enumerate(code) if formula_of(step.node) is not None} == found
    with config.change_flags(kernels=False):
        g = symcomp.function([x], T.exp(x), mode=symcomp.Mode("cvm"))
    assert "kernel" not in kinds_of(g)
    np.testing.assert_allclose(g(np.eye(2)), np.exp(np.eye(2)))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_random_functions(data):
    x, y = T.dmatrices("x", "y")
    pool = [x, y]
    ops = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * T.tanh(b),
        "exp": lambda a, b: T.exp(-T.sqr(a)),
        "T": lambda a, b: T.dot(a, b.T),
        "center": lambda a, b: a - b.mean(axis=0, keepdims=True),
        "softmax": lambda a, b: T.nnet.softmax(a),
        "norm": lambda a, b: a / T.sqrt((b**2).sum(axis=1, keepdims=True) + 1),
        "choose": lambda a, b: T.switch(a > b, a, -b),
        "take": lambda a, b: T.inc_subtensor(a[0], b[1]),
    }
    for _ in range(data.draw(st.integers(1, 8))):
        a, b = (pool[data.draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        pool.append(ops[data.draw(st.sampled_from(sorted(ops)))](a, b))
    outputs = [pool[-1], *pool[2:-1:2], pool[-1].sum()]
    native = symcomp.function([x, y], outputs, mode=symcomp.Mode("cvm"), on_unused_input="ignore")
    python = symcomp.function([x, y], outputs, mode=symcomp.Mode("vm"), on_unused_input="ignore")
    compare((native, python), RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4)), rtol=1e-10)
