"""Linear algebra by cuSOLVER and cuBLAS: stand-ins with their names, on the emulator."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.libraries import batches
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
DTYPES = ("float32", "float64")
L = T.linalg
# Condition numbers of the matrices here are below 50, and errors grow with them.
UNITS = 512


@pytest.fixture
def cusolver(emu: Emulator) -> Iterator[Any]:
    with stand_ins(emu, "cublas", "cusolver") as (_, library):
        yield library


def positive(*shape: int, dtype: str = "float64") -> Any:
    """Return positive definite matrices."""
    x = array(*shape, shape[-1], dtype="float64")
    return (x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])).astype(dtype)


def general(*shape: int, dtype: str = "float64") -> Any:
    """Return matrices whose elimination needs exchanges of rows."""
    return positive(*shape, dtype=dtype)[..., ::-1, :].copy()


def functions(a: Any, p: Any, b: Any) -> list[Any]:
    """Return results for general and positive definite matrices, and right sides."""
    return [
        L.cholesky(p), L.cholesky(p, lower=False), L.cholesky(p, on_error="nan"),
        L.matrix_inverse(a), L.solve(a, b), L.solve(a, b[..., 0], b_ndim=1),
        L.solve(p, b, assume_a="pos"), L.solve(p, b, assume_a="pos", lower=True),
        *(
            L.solve_triangular(a, b, lower=lower, unit_diagonal=unit, trans=trans)
            for lower in (True, False) for unit in (True, False) for trans in (0, 1)
        ),
        L.solve(a[..., ::-1], b[..., ::-1]), L.cholesky(T.swapaxes(p, -1, -2) * 2),
        L.solve_triangular(p[..., ::-1, ::-1], b, lower=True),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", [(), (3,), (2, 2), (1,), (0,)])
def test_each_function(cusolver: Any, emu: Emulator, stack: Any, dtype: str) -> None:
    a, p, b = (T.TensorType(dtype, (None,) * (len(stack) + 2))(name) for name in "apb")
    values = [general(*stack, 4, dtype=dtype), positive(*stack, 4, dtype=dtype)]
    values.append(array(*stack, 4, 3, dtype=dtype))
    before = cusolver.fake_calls()
    f = check([a, p, b], functions(a, p, b), values, UNITS, orders=[0], on_host=True)
    assert not any(n.startswith(("Solve", "Chol", "MatrixInv")) for n in ops_on_host(f))
    assert (cusolver.fake_calls() > before) is (0 not in stack)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks_of_large_matrices(
    cusolver: Any, emu: Emulator, monkeypatch: Any, dtype: str
) -> None:
    monkeypatch.setattr(batches, "MOST_ROWS", 3)
    a, p, b = (T.tensor3(name, dtype=dtype) for name in "apb")
    values = [general(3, 4, dtype=dtype), positive(3, 4, dtype=dtype), array(3, 4, 2, dtype=dtype)]
    before = cusolver.fake_calls()
    check([a, p, b], functions(a, p, b), values, UNITS, orders=[0], on_host=True)
    calls = cusolver.fake_calls() - before
    assert calls and calls % 3 == 0


def test_a_stack_of_small_matrices_is_one_call(emu: Emulator) -> None:
    p, b = T.dtensor3("p"), T.dtensor3("b")
    z = L.cholesky(p)
    outputs = [
        (z, 0, 1), (L.solve_triangular(z, b, lower=True), 1, 1), (L.solve(p, b), 2, 0),
        (L.solve(p, b, assume_a="pos"), 2, 1), (L.matrix_inverse(p), 2, 0),
    ]  # fmt: skip
    with stand_ins(emu, "cublas", "cusolver") as libraries:
        for output, *wanted in outputs:
            plain, f = compile_both([p, b], output, on_unused_input="ignore")
            values = positive(20, 3), array(20, 3, 2, dtype="float64")
            before = [library.fake_calls() for library in libraries]
            np.testing.assert_allclose(f(*values), plain(*values), rtol=1e-9, atol=1e-12)
            after = [library.fake_calls() for library in libraries]
            assert np.subtract(after, before).tolist() == wanted


@pytest.mark.parametrize(("n", "k"), [(0, 2), (1, 1), (3, 0), (1, 0), (7, 1)])
def test_lengths(cusolver: Any, emu: Emulator, n: int, k: int) -> None:
    a, p, b = T.dmatrices("a", "p", "b")
    values = [general(n), positive(n), array(n, k, dtype="float64")]
    outputs = functions(a, p, b) if k else [y for y in functions(a, p, b) if y.ndim == 2]
    outputs = [y for i, y in enumerate(outputs) if k or i != 5]
    check([a, p, b], outputs, values, UNITS, orders=[0], on_host=True)


@pytest.mark.parametrize("layout", ["by rows", "by columns", "backwards", "apart", "stretched"])
def test_layouts(cusolver: Any, emu: Emulator, layout: str) -> None:
    x = general(4)
    given = {
        "by rows": x, "by columns": x.T.copy().T, "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "apart": np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3], "stretched": x,
    }[layout]  # fmt: skip
    a, b = T.dmatrices("a", "b")
    c = T.broadcast_to(T.addbroadcast(b[:, :1], 1), b.shape) if layout == "stretched" else b
    outputs = [
        L.solve(a, c), L.matrix_inverse(a), L.solve_triangular(a, c, lower=True),
        L.cholesky(T.dot(a, a.T)),
    ]  # fmt: skip
    check([a, b], outputs, [given, given], UNITS, orders=[0], on_host=True)


def test_triangular_systems_read_matrices_in_place(cusolver: Any, emu: Emulator) -> None:
    a, b = T.dmatrices("a", "b")
    for matrix in (a, a.T, a[:, :4], a[:4, :4].T):
        with config.change_flags(device="emu"):
            f = symcomp.function([a, b], L.solve_triangular(matrix[:4, :4], b, lower=True))
        f(general(5) + 1, array(4, 2, dtype="float64"))
        region = next(n.op for n in f.maker.fgraph.toposort() if hasattr(n.op, "program"))
        kinds = [call.kind for call in region.program.plans[0].plan.calls]
        assert kinds.count("library") == 1 and kinds.count("copy") == 0


def test_gradients(cusolver: Any, emu: Emulator) -> None:
    p, b = T.dmatrix("p"), T.dvector("b")
    z = L.cholesky(p)
    loss = T.sqr(L.solve_triangular(z, b, lower=True)).sum() + 2 * T.log(T.diagonal(z)).sum()
    more = T.sqr(L.solve(p + 1, b)).sum() + L.matrix_inverse(p).sum()
    outputs = [loss, *symcomp.grad(loss, [p, b]), *symcomp.grad(more, [p, b])]
    values = [positive(5), array(5, dtype="float64")]
    f = check([p, b], outputs, values, UNITS, orders=[0], on_host=True)
    assert sum(name.startswith("Cholesky") for name in ops_on_device(f)) == 1


@pytest.mark.parametrize("most", [0, 4])
def test_matrices_that_fail(cusolver: Any, emu: Emulator, monkeypatch: Any, most: int) -> None:
    monkeypatch.setattr(batches, "MOST_ROWS", most)
    s, b = T.dtensor3("s"), T.dtensor3("b")
    bad = positive(3, 4)
    bad[1, 2:] = bad[1, :, 2:] = 0
    right = array(3, 4, 2, dtype="float64")
    cases = [
        (L.cholesky(s), r"Cholesky.*matrix 1 is not positive definite: its leading .* order 3"),
        (L.solve(s, b, assume_a="pos"), r"Solve.*matrix 1 is not positive definite"),
        (L.solve(s, b), r"Solve.*matrix 1 is singular"),
        (L.matrix_inverse(s), r"MatrixInverse.*\(.*test_cusolver.*\): matrix 1 is singular"),
        (L.solve_triangular(s, b, lower=True), r"Solve.*matrix 1 is singular"),
    ]  # fmt: skip
    for output, said in cases:
        plain, f = compile_both([s, b], output, on_unused_input="ignore")
        for function, match in ((plain, None), (f, said)):
            with pytest.raises(np.linalg.LinAlgError, match=match):
                function(bad, right)
        found = f(positive(3, 4), right)  # the error is gone
        np.testing.assert_allclose(found, plain(positive(3, 4), right), rtol=1e-9, atol=1e-12)


def test_nan_in_place_of_errors(cusolver: Any, emu: Emulator) -> None:
    s, b = T.dtensor3("s"), T.dtensor3("b")
    bad = positive(3, 4)
    bad[1, 2:] = bad[1, :, 2:] = 0
    outputs = [L.cholesky(s, on_error="nan"), L.cholesky(s, lower=False, on_error="nan")]
    solvers = "general", "positive_definite", "lower_triangular", "upper_triangular"
    outputs += [T.linalg.Solve(how, on_error="nan")(s, b) for how in solvers]
    f = check([s, b], outputs, [bad, array(3, 4, 2, dtype="float64")], UNITS, [0], on_host=True)
    assert np.isnan(f(bad, array(3, 4, 2, dtype="float64"))[0][1]).all()


def test_bad_shapes(cusolver: Any, emu: Emulator) -> None:
    a, b = T.dmatrices("a", "b")
    _, f = compile_both([a, b], [L.solve(a, b), L.cholesky(a)])
    with pytest.raises(symcomp.errors.ShapeError, match="do not fit"):
        f(general(3), general(2))
    _, f = compile_both([a], L.cholesky(a))
    with pytest.raises(symcomp.errors.ShapeError, match="must be square"):
        f(array(2, 3, dtype="float64"))


def test_in_loops(cusolver: Any, emu: Emulator) -> None:
    x, p, s = T.dmatrix("x"), T.dmatrix("p"), T.dtensor3("s")

    def step(row: Any, h: Any) -> Any:
        z = L.cholesky(p + T.outer(row, row))
        return L.solve_triangular(z, h + row, lower=True) + L.matrix_inverse(s).sum((0, 1))

    states, _ = symcomp.scan(step, x, x[0])
    outputs = [states, *symcomp.grad(T.sqr(states).sum(), [x, p])]
    values = [array(5, 3, dtype="float64"), positive(3), general(2, 3)]
    check_loops([x, p, s], outputs, values, 16 * UNITS)


def test_graphs_have_calls_of_cublas_alone(emu: Emulator) -> None:
    driver = Emulator(keeps_blocks=True)
    set_driver("emu", driver)  # the fixture sets the one before again
    v = T.dtensor3("v")
    kinds: list[Any] = [
        lambda x: T.matmul(L.cholesky(x), T.swapaxes(L.cholesky(x), -1, -2)),
        lambda x: L.solve_triangular(x, T.tanh(x), lower=True), L.matrix_inverse,
    ]  # fmt: skip
    with stand_ins(driver, "cublas", "cusolver"):
        for number, make in enumerate(kinds):
            w = symcomp.shared(positive(2, 3))
            host = symcomp.function([v], make(v))
            with config.change_flags(device="emu"):
                f = symcomp.function([], gpu.to_gpu(make(w), "emu"), updates=[(w, make(w) + 1)])
            wanted, before = positive(2, 3), driver.counters.graphs
            for _ in range(10):
                np.testing.assert_allclose(f().get(), host(wanted), rtol=1e-7)
                wanted = host(wanted) + 1
            assert (driver.counters.graphs - before > 3) is (number > 0)


@pytest.mark.parametrize("names", [(), ("cublas",), ("cusolver",)])
def test_where_a_library_is_missing(emu: Emulator, names: Any) -> None:
    a = T.dmatrix("a")
    with stand_ins(emu, *names):
        f = check([a], T.exp(L.cholesky(a)), [positive(3)], UNITS, orders=[0], on_host=True)
        assert any(name.startswith("Cholesky") for name in ops_on_host(f))


def test_what_has_no_call_stays_on_the_host(cusolver: Any, emu: Emulator) -> None:
    a, z = T.dmatrix("a"), T.zmatrix("z")
    outputs = [T.exp(L.solve(a, a, assume_a="sym")), T.exp(a), abs(L.matrix_inverse(z))]
    f = check([a, z], outputs, [positive(3), positive(3) + 0j], UNITS, orders=[0], on_host=True)
    assert sum(n.startswith(("Solve", "MatrixInverse")) for n in ops_on_host(f)) == 2


def test_errors_of_the_library(cusolver: Any, emu: Emulator) -> None:
    a = T.dmatrix("a")
    _, f = compile_both([a], L.cholesky(a))
    f(positive(3))
    cusolver.fake_failure(6)
    with pytest.raises(DeviceError, match=r"^Cholesky.*cuSOLVER answers 6 \(execution failed\)"):
        f(positive(3))
