"""Decompositions by cuSOLVER: a stand-in with its names, on the emulator.

Signs of eigenvectors and of singular vectors are free, so what does not depend on them is compared.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.lowerings import determinants
from symcomp.tests.gpu.libraries import stand_ins
from symcomp.tests.gpu.running import (
    DEVICE,
    array,
    check,
    check_loops,
    compile_both,
    ops_on_device,
    ops_on_host,
)

pytestmark = pytest.mark.skipif(DEVICE != "emu", reason="stand-ins are for the emulator")
L = T.linalg
DTYPES = ("float32", "float64")
# Rounding errors are at most some units times the number of elements, of at most 35 here.
UNITS = 256
OPS = "SVD", "SingularValues", "QR", "Eig", "SLogDet", "LUFactor", "Det"


@pytest.fixture
def cusolver(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cusolver") as (library,):
        yield library


def turned(x: Any) -> Any:
    return T.swapaxes(x, -1, -2)


def of_any(x: Any) -> list[Any]:
    """Return what decompositions of any matrices are."""
    found = [*L.qr(x), *L.qr(x, mode="complete"), L.qr(x, mode="r"), *L.qr(x, mode="raw")]
    for full in (True, False):
        u, s, vh = L.svd(x, full_matrices=full)
        found += [T.matmul(turned(u), u), s, T.matmul(vh, turned(vh))]
    return [*found, T.matmul(u * s[..., None, :], vh), L.svd(x, compute_uv=False)]


def of_square(x: Any) -> list[Any]:
    """Return what decompositions of square matrices are."""
    found = [*L.slogdet(x), *L.lu_factor(x), L.det(x)]
    for side in "LU":
        w, v = L.eigh(x, UPLO=side)
        found += [w, T.matmul(v * w[..., None, :], turned(v)), T.matmul(turned(v), v)]
    return [*found, L.eigvalsh(x), L.eigvalsh(x, lower=False)]


def is_all_on_device(f: Any) -> bool:
    return not any(name.startswith(OPS) for name in ops_on_host(f))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", [(), (2, 2), (1,), (0,)])
def test_stacks(cusolver: Any, emu: Emulator, stack: Any, dtype: str) -> None:
    names = "tall", "wide", "square"
    inputs = [T.TensorType(dtype, (None,) * (len(stack) + 2))(name) for name in names]
    tall, wide, square = inputs
    outputs = [*of_any(tall), *of_any(wide), *of_any(square), *of_square(square)]
    values = [array(*stack, *n, dtype=dtype) for n in ((4, 3), (2, 4), (4, 4))]
    before = cusolver.fake_calls()
    f = check(inputs, outputs, values, UNITS, orders=[0], on_host=True)
    assert is_all_on_device(f)
    assert (cusolver.fake_calls() > before) is (0 not in stack)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (0, 3), (3, 0), (0, 0), (7, 5), (2, 7)])
def test_lengths(cusolver: Any, emu: Emulator, shape: Any) -> None:
    x = T.dmatrix("x")
    outputs = of_any(x) + (of_square(x) if shape[0] == shape[1] else [])
    values = array(*shape, dtype="float64")
    f = check([x], outputs, [values], UNITS, orders=[0], on_host=True)
    assert is_all_on_device(f)


def test_views(cusolver: Any, emu: Emulator) -> None:
    x = T.dtensor3("x")
    views = [x[:, ::-1, :4], x[1:, :4, 1:].transpose(0, 2, 1)]
    outputs = [z for view in views for z in (*of_any(view), *of_square(view))]
    values = array(3, 4, 5, dtype="float64")
    assert is_all_on_device(check([x], outputs, [values], UNITS, orders=[0], on_host=True))


def test_matrices_of_low_rank(cusolver: Any, emu: Emulator) -> None:
    x = T.dmatrix("x")
    one = np.outer([1.0, 2.0, 3.0, -1.0], [1.0, -1.0, 2.0])
    for values in (one, np.zeros((4, 3)), np.diag([2.0, 0.0, 1.0])):
        u, s, vh = L.svd(x)
        outputs = [
            T.matmul(turned(u), u), s, T.matmul(vh, turned(vh)), L.svd(x, compute_uv=False),
            T.matmul(u[:, :3] * s, vh), T.matmul(*L.qr(x, mode="complete")),
        ]  # fmt: skip
        check([x], outputs, [values], UNITS, orders=[0], on_host=True)


@pytest.mark.parametrize("names", [("cusolver",), ("cublas", "cusolver")])
def test_determinants(emu: Emulator, names: Any) -> None:
    with stand_ins(emu, *names):
        _check_determinants()


def _check_determinants() -> None:
    x = T.dtensor3("x")
    values = array(5, 4, 4, dtype="float64")
    values[1, 2] = values[1, 0]  # singular, but for rounding
    values[2, :, 1] = 0  # singular
    values[3] = np.eye(4)[[1, 0, 3, 2]] * 1e-200
    values[4] = np.eye(4)[[1, 2, 0, 3]] * -1e200
    _, f = compile_both([x], [*L.slogdet(x), L.det(x)])
    sign, logabs, det = f(values)
    wanted = np.linalg.slogdet(values)
    for found, one in ((sign, wanted[0]), (logabs, wanted[1])):
        # The logarithm of a rounding error is any number.
        np.testing.assert_allclose(np.delete(found, 1), np.delete(one, 1), rtol=1e-13)
    assert logabs[1] < -30
    np.testing.assert_allclose(det[0], np.linalg.det(values[0]), rtol=1e-13)
    assert abs(det[1]) < 1e-13 and det[2:].tolist() == [0, 0, np.inf]


@pytest.mark.parametrize("most", [1024, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_that_are_large_on_the_way(
    cusolver: Any, emu: Emulator, monkeypatch: Any, dtype: str, most: int
) -> None:
    monkeypatch.setattr(determinants, "MOST_FACTORS", most)
    x = T.tensor3("x", dtype=dtype)
    _, f = compile_both([x], [*L.slogdet(x), L.det(x)])
    rows = [
        [0.5] * 14, [100] * 7 + [-100] * 7, [-100] * 7 + [100] * 7, [-149, 120] * 7, [90] * 14,
        [-90] * 14, [3.25, -0.75] * 7, [120, -149 + 30, 0, 0.5] * 3 + [0, 0], [-20] * 7 + [0] * 7,
    ]  # fmt: skip
    signs = np.array([1, -1, 1, 1, -1, -1, 1] * 2)
    d = (signs * 2.0 ** np.array(rows)).astype(dtype)
    matrices = np.array([np.diag(row)[:, ::-1] for row in d])
    sign, logabs, det = f(matrices)
    exchanges = (-1) ** 7
    exact = [math.prod(map(Fraction, row.tolist())) * exchanges for row in d]
    limit = float(np.finfo(dtype).max)
    wanted = [(np.inf if z > 0 else -np.inf) if abs(z) > limit else float(z) for z in exact]
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(det, np.array(wanted, dtype), rtol=8 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(sign, [1 if z > 0 else -1 for z in exact])
    logarithms = np.log(np.abs(d.astype("float64"))).sum(1)
    np.testing.assert_allclose(logabs, logarithms, rtol=1e-6, atol=1e-9)


def test_gradients(cusolver: Any, emu: Emulator) -> None:
    x, s = T.dmatrix("x"), T.dmatrix("s")
    u, values, vh = L.svd(x, full_matrices=False)
    q, r = L.qr(x)
    w, v = L.eigh(s)
    losses = [
        T.sqr(T.matmul(u * T.exp(values), vh)).sum(), L.svd(x, compute_uv=False).sum(),
        (q * x).sum() + T.sqr(r).sum(),
    ]  # fmt: skip
    outputs = [symcomp.grad(loss, x) for loss in losses]
    of_s = [T.matmul(v * T.exp(w), turned(v)).sum(), T.log(w - w[0] + 1).sum(), L.slogdet(s)[1]]
    outputs += [symcomp.grad(loss, s) for loss in of_s]
    values = [array(4, 3, dtype="float64"), array(4, 4, dtype="float64")]
    check([x, s], outputs, values, 64 * UNITS, orders=[0], on_host=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda x: L.eigh(x)[0], r"^Eigh.*\(.*test_dec.*\): the eigenvalues of matrix 1 were not"),
        (L.eigvalsh, r"^Eigvalsh.*the eigenvalues of matrix 1 were not found"),
        (lambda x: L.svd(x)[0], r"^SVD.*the singular values of matrix 1 were not found"),
        (lambda x: L.svd(x, compute_uv=False), r"^SingularValues.*values of matrix 1 were not"),
    ],
)
def test_matrices_that_fail(cusolver: Any, emu: Emulator, make: Any, said: str) -> None:
    x = T.dtensor3("x")
    plain, f = compile_both([x], abs(make(x)))
    good = array(3, 4, 4, dtype="float64")
    bad = good.copy()
    bad[1, 2, 1] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match=said):
        f(bad)
    np.testing.assert_allclose(f(good), plain(good), rtol=1e-9, atol=1e-12)  # the error is gone


def test_bad_shapes(cusolver: Any, emu: Emulator) -> None:
    x = T.dmatrix("x")
    for make in (L.slogdet, L.eigh, L.eigvalsh, L.lu_factor):
        plain, f = compile_both([x], make(x))
        for function in (plain, f):
            with pytest.raises(symcomp.errors.ShapeError, match="must be square"):
                function(array(2, 3, dtype="float64"))


def test_in_loops(cusolver: Any, emu: Emulator) -> None:
    x, s = T.dtensor3("x"), T.dmatrix("s")

    def step(one: Any, h: Any) -> Any:
        w, v = L.eigh(one + h)
        return T.matmul(v * T.tanh(w), turned(v)) + L.slogdet(one)[1] * 0.1

    states, _ = symcomp.scan(step, x, s)
    values = [array(5, 3, 3, dtype="float64"), array(3, 3, dtype="float64")]
    check_loops([x, s], [states, states[-1]], values, 16 * UNITS)


def test_where_cusolver_is_missing(emu: Emulator) -> None:
    x = T.dmatrix("x")
    f = check([x], T.exp(L.svd(x)[1]), [array(3, 3, dtype="float64")], on_host=True)
    assert any(name.startswith("SVD") for name in ops_on_host(f))


def test_complex_matrices_stay_on_the_host(cusolver: Any, emu: Emulator) -> None:
    x, z = T.dmatrix("x"), T.zmatrix("z")
    outputs = [T.exp(L.svd(x)[1]), T.exp(L.svd(z)[1]), L.eigvalsh(z) + 1]
    values = [array(3, 3, dtype="float64"), array(3, 3, dtype="float64") + 0j]
    f = check([x, z], outputs, values, UNITS, orders=[0], on_host=True)
    names = ops_on_host(f)
    assert [sum(n.startswith(kind) for n in names) for kind in ("SVD", "Eigvalsh")] == [1, 1]
    assert sum(name.startswith("SVD") for name in ops_on_device(f)) == 1
