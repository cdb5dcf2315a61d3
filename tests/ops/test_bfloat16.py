"""bfloat16: conversions bit by bit, and functions beside those of float32, rounded."""

import inspect
import json
import pickle
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import symcomp
import symcomp.tensor as T
from symcomp.core import dtype as dtypes
from symcomp.core.evaluate import evaluate
from symcomp.errors import DTypeError, LoadError
from symcomp.gradient import verify_grad
from symcomp.ifelse import ifelse
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.formulas.fused import Fused

BF = np.dtype(ml_dtypes.bfloat16)
EVERY = np.arange(1 << 16, dtype=np.uint16).view(BF)
MODES = [
    symcomp.Mode("cvm", "fast_run"), symcomp.Mode("vm", "fast_run"),
    symcomp.Mode("cvm", "fast_compile"), symcomp.Mode("vm", "None"),
]  # fmt: skip


def rounded(x):
    return np.asarray(x).astype(np.float32).astype(BF)


def wide(x):
    return x.astype(np.float32)


def same(found, expected):
    """Check that bits are equal, where none of the two is NaN in both."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    nan = np.isnan(found) & np.isnan(expected)
    word = f"u{found.dtype.itemsize}"
    bits = [np.where(nan, 0, np.ascontiguousarray(x).view(word)) for x in (found, expected)]
    np.testing.assert_array_equal(*bits)


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(BF)


# -- conversions


@pytest.mark.parametrize("mode", MODES[:2])
def test_to_wider_dtypes(mode):
    x = T.vector("x", dtype="bfloat16")
    kinds = ["float32", "float64", "float16", "complex64"]
    with np.errstate(all="ignore"):
        found = symcomp.function([x], [T.cast(x, kind) for kind in kinds], mode=mode)(EVERY)
        for kind, z in zip(kinds[:3], found[:3], strict=True):
            same(z, EVERY.astype(kind))
        same(found[3].real, EVERY.astype("float32"))
    # float32 keeps the bits of NaN, too.
    np.testing.assert_array_equal(found[0].view("u4"), np.arange(1 << 16, dtype="u4") << 16)


def test_to_integers_and_bool():
    x = T.vector("x", dtype="bfloat16")
    kinds = ["int8", "uint8", "int16", "int32", "int64", "bool"]
    values = EVERY[np.isfinite(EVERY.astype("f"))]
    values = values[np.abs(values.astype("f")) < 127]
    small = np.where(values < 0, -values, values)
    f = symcomp.function([x], [T.cast(x, kind) for kind in kinds])
    for kind, z in zip(kinds, f(small), strict=True):
        np.testing.assert_array_equal(z, wide(small).astype(kind))
    for kind, z in zip(kinds, f(values), strict=True):
        if kind[0] != "u":
            np.testing.assert_array_equal(z, wide(values).astype(kind))


def hard_numbers():
    """Return numbers of float32: those of bfloat16, the ties between them, and their neighbours."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (high[:, None] | low).view(np.float32).ravel()


@pytest.mark.parametrize("mode", MODES[:2])
def test_from_float32(mode):
    x = T.fvector("x")
    values = hard_numbers()
    with np.errstate(all="ignore"):
        expected = values.astype(BF)
        found = symcomp.function([x], T.cast(x, "bfloat16"), mode=mode)(values)
    np.testing.assert_array_equal(found.view("u2"), expected.view("u2"))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "uint8", "bool"])
def test_from_others(dtype):
    x = T.vector("x", dtype=dtype)
    rng = np.random.default_rng(1)
    if dtype == "float16":
        values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    elif dtype == "float64":
        values = np.ldexp(rng.normal(size=4000), rng.integers(-160, 140, 4000))
        values = np.concatenate([values, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1 + 2.0**-8]])
    else:
        values = rng.integers(-(2**62), 2**62, 4000).astype(dtype)
    with np.errstate(all="ignore"):
        same(symcomp.function([x], T.cast(x, "bfloat16"))(values), values.astype(BF))


# -- dtypes


COMBINED = {
    "bfloat16": "bfloat16", "bool": "bfloat16", "int8": "bfloat16", "uint8": "bfloat16",
    "int16": "float32", "uint16": "float32", "int32": "float64", "int64": "float64",
    "float16": "float32", "float32": "float32", "float64": "float64",
    "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip


@pytest.mark.parametrize("other", COMBINED)
def test_common_dtypes(other):
    x, y = T.vector(dtype="bfloat16"), T.vector(dtype=other)
    assert dtypes.upcast("bfloat16", other) == dtypes.upcast(other, "bfloat16") == COMBINED[other]
    assert (x + y).dtype == (y * x).dtype == COMBINED[other]
    assert dtypes.upcast("bfloat16", "float16", other) == dtypes.upcast(
        "float32", "float16", other
    )


def test_numbers_adapt():
    x = T.vector("x", dtype="bfloat16")
    for z in (x + 1, x * 0.1, 2 / x, x**2, T.exp(x), -x, T.sum(x), T.mean(x), T.dot(x, x), x // 2):
        assert z.dtype == "bfloat16"
    assert (x * 1j).dtype == "complex64"
    assert (x > 0).dtype == T.isnan(x).dtype == "bool"
    assert T.constant(np.ones(2, BF)).dtype == T.as_tensor_variable(BF.type(1)).dtype == "bfloat16"
    assert T.zeros((2,), dtype="bfloat16").dtype == x.zeros_like().dtype == "bfloat16"
    assert T.vector(dtype=BF).type == T.vector(dtype=ml_dtypes.bfloat16).type == x.type


def test_arguments():
    x = T.vector("x", dtype="bfloat16")
    f = symcomp.function([x], x * 2)
    assert f([1.5, -2.0]).dtype == BF and f(np.ones(2, "int8")).dtype == BF
    assert f(numbers(0, 4)[::2]).shape == (2,)
    for value in ([1.001], np.ones(2, "float32"), np.ones(2, "float16"), np.ones(2, "int16")):
        with pytest.raises(DTypeError, match="may lose precision"):
            f(value)
    y = T.fvector("y")
    np.testing.assert_array_equal(symcomp.function([y], y + 1)(np.ones(2, BF)), [2, 2])


def test_package_is_missing():
    text = """
import sys
import zipfile
sys.modules["ml_dtypes"] = None
import symcomp, symcomp.tensor as T
from symcomp.errors import DTypeError, LoadError
assert T.exp(T.fvector()).dtype == "float32"
try:
    T.vector(dtype="bfloat16")
except DTypeError as problem:
    print(problem)
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "bfloat16 needs the package ml_dtypes" in ran.stdout
    assert "pip install 'symcomp[bfloat16]'" in ran.stdout


# -- functions


def elementwise(x, y):
    return [
        x + y, x * y - x, x / y, T.exp(x) * T.tanh(y), T.maximum(x, y), T.sqrt(abs(x)), T.floor(x),
        T.switch(x > y, x, y), T.erf(x), T.log1p(abs(x)), x % y, T.clip(x, -1, 1), T.sgn(x),
        T.gammaln(abs(x) + 1), T.round(x), x**2 + 1, T.sigmoid(x),
    ]  # fmt: skip


def elements_rounded(x, y):
    with np.errstate(all="ignore"):
        r = lambda z: wide(rounded(z))  # noqa: E731
        x, y = wide(x), wide(y)
        return list(
            map(rounded, [
                x + y, r(x * y) - x, x / y, r(np.exp(x)) * r(np.tanh(y)), np.maximum(x, y),
                np.sqrt(np.abs(x)), np.floor(x), np.where(x > y, x, y),
            ])
        )  # fmt: skip


def test_elements_are_computed_in_float32():
    x, y = T.matrix("x", dtype="bfloat16"), T.matrix("y", dtype="bfloat16")
    a, b = numbers(1, 30, 40), numbers(2, 30, 40)
    a[0, :4] = [np.nan, np.inf, -0.0, 3e38]
    expected = elements_rounded(a, b)
    first = None
    for mode in MODES:
        found = symcomp.function([x, y], elementwise(x, y), mode=mode)(a, b)
        for z, w in zip(found, expected, strict=False):
            np.testing.assert_allclose(wide(z), wide(w), rtol=8e-3, atol=1e-38)
        for z, w in zip(found[:5:4], expected[:5:4], strict=True):  # no function of the C library
            same(z, w)
        first = first or found
        for z, w in zip(found, first, strict=True):
            np.testing.assert_allclose(wide(z), wide(w), rtol=2e-2, atol=1e-38)


def test_every_row_takes_it():
    """Functions that float32 has are computed in it, and rounded."""
    count = 0
    a = [rounded(np.abs(wide(numbers(20 + k, 3, 4))) / 2 + 0.1) for k in range(4)]
    for make in ROWS.values():
        if inspect.signature(make).parameters or (row := make()).arity > 4:
            continue
        kinds = ["float32"] * (row.arity or 2)
        try:
            row.dtype(*kinds)
        except DTypeError:
            with pytest.raises(DTypeError):
                row.dtype(*["bfloat16"] * len(kinds))
            continue
        x = [T.matrix(dtype="bfloat16") for _ in kinds]
        z = Elemwise(row)(*x)
        exact = Elemwise(row)(*(T.cast(v, "float32") for v in x))
        with np.errstate(all="ignore"):
            found, expected = evaluate([z, exact], dict(zip(x, a, strict=False)))
            narrow = exact.dtype == "float32"
            both = (wide(found), wide(rounded(expected))) if narrow else (found, expected)
            np.testing.assert_array_equal(*both)
        assert z.dtype == ("bfloat16" if narrow else exact.dtype)
        count += 1
    assert count > 200


def test_extremes_for_infinities():
    x = T.vector("x", dtype="bfloat16")
    most = ml_dtypes.finfo(BF).max
    found = T.nan_to_num(x).eval({x: np.array([np.nan, np.inf, -np.inf, 2], BF)})
    same(found, np.array([0, most, -most, 2], BF))


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(np.uint16, st.tuples(st.integers(1, 3), st.integers(1, 70))),
    hnp.arrays(np.uint16, st.tuples(st.just(1), st.integers(1, 70))),
)
def test_arithmetic_of_all_bits(first, second):
    a, b = first.view(BF), np.resize(second, (1, first.shape[1])).view(BF)
    with np.errstate(all="ignore"):
        found = _arithmetic()(a, b)
        p, q = wide(a), wide(b)
        for z, w in zip(found, (p + q, p * q, p - q, p / q), strict=True):
            same(z, rounded(w))


_known = []


def _arithmetic():
    if not _known:
        x, y = T.matrix("x", dtype="bfloat16"), T.row("y", dtype="bfloat16")
        _known.append(symcomp.function([x, y], [x + y, x * y, x - y, x / y]))
    return _known[0]


def test_one_loop_without_python():
    x = T.vector("x", dtype="bfloat16")
    f = symcomp.function([x], T.exp(x) * x + 1, profile=True)
    (node,) = f.maker.fgraph.toposort()
    assert isinstance(node.op, Fused)
    steps = [str(s.function) for s in node.op.formula.steps]
    assert steps.count("cast") == 6
    assert all(isinstance(n.op, Fused | Elemwise) for n in f.maker.fgraph.toposort())


# -- reductions and other ops


def test_sums_are_accumulated_in_float32():
    x = T.matrix("x", dtype="bfloat16")
    a = np.ones((3, 5000), BF)
    for mode in MODES:
        outputs = [T.sum(x), x.sum(axis=1), T.mean(x), x.var(), T.max(x)]
        f = symcomp.function([x], outputs, mode=mode)
        total, rows, mean, var, most = f(a)
        assert (total, mean, var, most) == (rounded(15000), 1, 0, 1)
        np.testing.assert_array_equal(rows, np.full(3, 5000).astype(BF))


def various(x, y, i):
    return [
        T.dot(x, y.T), T.sort(x, axis=1), T.argsort(x, axis=1), T.cumsum(x, axis=0),
        T.max(x, axis=0), T.argmax(x, axis=1), T.nnet.softmax(x), T.prod(x[:2], axis=0), x[::-1],
        x[i], x.T.reshape((6, 4)), T.concatenate([x, y]), T.stack([x, y]), T.tile(x, (2, 1)),
        T.any(x > 0, axis=0), T.zeros_like(x) + T.ones((4, 6), dtype="bfloat16"),
        T.set_subtensor(x[i[:2]], y[:2]), T.inc_subtensor(x[i], y[i]),
        T.inc_subtensor(x[1:, 2], y[0, 0]), T.diagonal(x), T.nonzero(x > 0)[0],
        T.batched_dot(x.reshape((2, 2, 6)), y.reshape((2, 6, 2))),
    ]  # fmt: skip


def test_ops_beside_float32():
    x, y = T.matrix("x", dtype="bfloat16"), T.matrix("y", dtype="bfloat16")
    p, q, i = T.fmatrix("p"), T.fmatrix("q"), T.lvector("i")
    a, b, at = numbers(3, 4, 6), numbers(4, 4, 6), np.array([2, 0, 3])
    expected = symcomp.function([p, q, i], various(p, q, i))(wide(a), wide(b), at)
    for mode in MODES:
        found = symcomp.function([x, y, i], various(x, y, i), mode=mode)(a, b, at)
        for z, w in zip(found, expected, strict=True):
            assert z.dtype == (BF if w.dtype == np.float32 else w.dtype)
            np.testing.assert_allclose(wide(z), rounded(w).astype("f"), rtol=2e-2, atol=1e-6)


def test_linear_algebra_and_windows():
    x = T.matrix("x", dtype="bfloat16")
    a = rounded(np.eye(4) * 3 + wide(numbers(5, 4, 4)) / 4)
    inverse, roots = symcomp.function([x], [T.nlinalg.matrix_inverse(x), T.nlinalg.svd(x)[1]])(a)
    assert inverse.dtype == roots.dtype == BF
    np.testing.assert_allclose(wide(inverse), np.linalg.inv(wide(a)), rtol=1e-2, atol=1e-3)
    images, kernels = (T.tensor4(name, dtype="bfloat16") for name in "ik")
    z = symcomp.function([images, kernels], T.nnet.conv2d(images, kernels))
    found = z(np.ones((1, 1, 5, 5), BF), np.ones((2, 1, 3, 3), BF))
    assert found.dtype == BF and (found == 9).all()


def test_additions_at_positions_are_rounded_one_by_one():
    v, y, i = T.vector("v", dtype="bfloat16"), T.vector("y", dtype="bfloat16"), T.lvector("i")
    a, b, at = numbers(6, 20), numbers(7, 300), np.random.default_rng(8).integers(0, 20, 300)
    expected = a.copy()
    np.add.at(expected, at, b)
    for mode in MODES:
        same(symcomp.function([v, y, i], T.inc_subtensor(v[i], y), mode=mode)(a, b, at), expected)
    # In the loop that computes the values.
    table = T.zeros((20,), dtype="bfloat16")
    f = symcomp.function([y, i], T.inc_subtensor(table[i], y * y))
    expected = np.zeros(20, BF)
    np.add.at(expected, at, rounded(wide(b) ** 2))
    same(f(b, at), expected)
    part = T.inc_subtensor(v[2:8:2], y[:3])
    expected = a.copy()
    expected[2:8:2] += b[:3]
    same(symcomp.function([v, y], part)(a, b), expected)


@pytest.mark.parametrize("other", COMBINED)
def test_choices_among_two_dtypes(other):
    c, x, y = T.vector(dtype="bool"), T.vector(dtype="bfloat16"), T.vector(dtype=other)
    chosen, a = np.array([True, False, True]), np.array([1.5, -2, 3], BF)
    b = np.array([1, 0, 1]).astype(other)
    for mode in MODES:
        found = symcomp.function([c, x, y], [T.switch(c, x, y), T.switch(c, y, x)], mode=mode)
        for z, (first, second) in zip(found(chosen, a, b), [(a, b), (b, a)], strict=True):
            assert z.dtype.name == COMBINED[other]
            wide_of_both = (v.astype("complex128") for v in (first, second))
            np.testing.assert_array_equal(z, np.where(chosen, *wide_of_both))


def test_conditions():
    c, x = T.scalar("c", dtype="bfloat16"), T.vector("x", dtype="bfloat16")
    one = np.ones(1, BF)
    for mode in MODES:
        f = symcomp.function([c, x], ifelse(c, x * 2, x * 4), mode=mode)
        g = symcomp.function([c, x], T.assert_op(x, c), mode=mode)
        for value in (1e-40, 256, np.nan):
            assert f(BF.type(value), one) == 2 and g(BF.type(value), one) == 1
        for value in (0.0, -0.0):
            assert f(BF.type(value), one) == 4
            with pytest.raises(AssertionError):
                g(BF.type(value), one)


def test_reads_at_positions_in_a_loop():
    v, i = T.vector("v", dtype="bfloat16"), T.lvector("i")
    f = symcomp.function([v, i], T.exp(v[i]) + v[i])
    assert len(f.maker.fgraph.toposort()) == 1
    a, at = numbers(9, 50), np.arange(49, -1, -1)
    same(f(a, at), rounded(wide(rounded(np.exp(wide(a[at])))) + wide(a[at])))


# -- gradients, loops, shared variables


def test_gradients():
    rng = np.random.default_rng(0)
    values = [numbers(10, 3, 4), numbers(11, 4)]
    verify_grad(lambda x, y: T.tanh(T.dot(x, y)) * T.exp(x[:, 0]), values, rng=rng)
    verify_grad(lambda x, y: T.nnet.softmax(x) * y, values, rng=rng)


def test_training_step():
    x, w = T.matrix("x", dtype="bfloat16"), symcomp.shared(numbers(12, 4, 2), "w")
    cost = T.sum(T.sqr(T.dot(x, w)))
    slope = T.grad(cost, w)
    assert slope.dtype == "bfloat16"
    f = symcomp.function([x], cost, updates=[(w, w - 0.01 * slope)])
    costs = [float(f(numbers(13, 5, 4))) for _ in range(20)]
    assert costs[-1] < 0.5 * costs[0] and w.get_value().dtype == BF


def test_scan():
    x = T.matrix("x", dtype="bfloat16")
    start = T.zeros((3,), dtype="bfloat16")
    rows, _ = symcomp.scan(lambda row, state: state * 0.5 + row, sequences=x, outputs_info=start)
    a, state, expected = numbers(14, 6, 3), np.zeros(3, BF), []
    for row in a:
        state = rounded(wide(rounded(wide(state) * np.float32(0.5))) + wide(row))
        expected.append(state)
    found, slope = symcomp.function([x], [rows, T.grad(T.sum(rows[-1]), x)])(a)
    same(found, np.stack(expected))
    np.testing.assert_array_equal(wide(slope[:, 0]), 0.5 ** np.arange(5, -1, -1))


def test_checking_modes():
    x = T.vector("x", dtype="bfloat16")
    debug = symcomp.function([x], [T.exp(x) * x, T.sum(x)], mode="DebugMode")
    same(debug(numbers(15, 8))[1], rounded(wide(numbers(15, 8)).sum()))
    guarded = symcomp.function([x], T.log(x), mode="NanGuardMode")
    with pytest.raises(AssertionError, match="2 NaN in .* a bfloat16 array"):
        guarded(np.array([-1, -2, 3], BF))


def test_users_ops_get_the_arrays():
    def doubled(x):
        assert x.dtype == BF
        return x + x

    x = T.vector("x", dtype="bfloat16")
    z = symcomp.as_op([x.type], [x.type])(doubled)(x)
    for mode in MODES:
        assert symcomp.function([x], z, mode=mode)(np.ones(2, BF)).tolist() == [2, 2]


def test_random_numbers():
    start = T.random.state("start")
    _, u = T.random.standard_uniform(start, size=(20000,), dtype="bfloat16")
    z = u.eval({start: np.random.default_rng(0)})
    assert z.dtype == BF and 0 <= z.min() and z.max() < 1
    assert abs(wide(z).mean() - 0.5) < 0.01


# -- files


def _saved(tmp_path):
    x, w = T.vector("x", dtype="bfloat16"), symcomp.shared(numbers(16, 3), "w")
    f = symcomp.function([x], T.exp(x) * w + T.constant(numbers(17, 3)), updates=[(w, w * 2)])
    symcomp.save(tmp_path / "f.zip", {"f": f, "w": w})
    return f, tmp_path / "f.zip"


def test_saved_casts(tmp_path):
    x = T.fvector("x")
    symcomp.save(tmp_path / "f.zip", T.cast(T.cast(x, "bfloat16"), "float32"))
    text = f"import symcomp; print(symcomp.load({str(tmp_path / 'f.zip')!r}).type)"
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout == "float32 vector\n"


def test_saved_functions(tmp_path):
    f, path = _saved(tmp_path)
    found = symcomp.load(path)
    same(found["w"].get_value(), numbers(16, 3))
    a = numbers(18, 3)
    first = f(a)
    same(found["f"](a), first)
    # In a process that has seen no bfloat16 before, by both kinds of files.
    (tmp_path / "f.pickle").write_bytes(pickle.dumps(f))
    np.save(tmp_path / "a.npy", a.view("u2"))
    text = f"""
import pickle, numpy as np, symcomp
bits = np.load({str(tmp_path / "a.npy")!r})
file = open({str(tmp_path / "f.pickle")!r}, "rb")
for f in (symcomp.load({str(path)!r})["f"], pickle.load(file)):
    print(f(bits.view("bfloat16")).view("u2").tolist())
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [str(z.view("u2").tolist()) for z in (first, f(a))]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (["bfloat16", 99], "there is no array 99"),
        (["float8", 0], "cannot hold 'float8'"),
        ([["bfloat16"], 0], "cannot"),
        (["bfloat16"], "cannot be read"),
        (0, "cannot be read"),
    ],
)
def test_crafted_files(tmp_path, stored, message):
    _, path = _saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    graph = json.loads(parts["graph.json"])
    graph["shared"][0]["value"] = {"stored": stored}
    parts["graph.json"] = json.dumps(graph).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(LoadError, match=message):
        symcomp.load(path)


def test_files_without_the_package(tmp_path):
    _, path = _saved(tmp_path)
    text = f"""
import sys
import zipfile
sys.modules["ml_dtypes"] = None
import symcomp
from symcomp.errors import LoadError
try:
    symcomp.load({str(path)!r})
except LoadError as problem:
    print(problem)
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "bfloat16 needs the package ml_dtypes" in ran.stdout
