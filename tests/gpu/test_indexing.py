"""Parts of arrays read and written, joins, shapes and products on the emulator."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.cuda.text import CudaKernel
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.kernels import indexing, products
from symcomp.gpu.region import DeviceGraph
from symcomp.ops.formulas.fused import Fused
from symcomp.tests.gpu.running import DEVICE, check, ops_on_device

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def test_views(emu: Emulator) -> None:
    x = T.ftensor3("x")
    t = x * 2
    z = [
        t[1],
        t[:, -1, None],
        t[::-1, 1:, ::2] + 1,
        t.dimshuffle(2, "x", 0, 1),
        t[..., 0],
        t[0, 0, 0],
    ]
    z += [t.reshape((-1, 2)), t.T.reshape((t.shape[0], -1)), T.diagonal(t[0]), t.flatten()]
    check([x], z, [floats(3, 4, 5)], 0, orders=[0])


def test_symbolic_bounds(emu: Emulator) -> None:
    x, i, j = T.fmatrix("x"), T.lscalar("i"), T.lscalar("j")
    outputs = [(x * 2)[i:j].sum(axis=1), x * 2]
    f = check([x, i, j], outputs, [floats(6, 3), 1, 4], 4, orders=[0])
    for bounds in ((0, 6), (2, 2), (-2, 100)):
        value = floats(6, 3)
        found, _ = f(value, *bounds)
        wanted = (value * 2)[slice(*bounds)].sum(axis=1)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_of_an_argument_only_the_part_is_copied(emu: Emulator) -> None:
    """Elements that are only moved stay where they are, unless others need them on the device."""
    x, i = T.fmatrix("x"), T.lscalar("i")
    value = floats(60, 3)
    with config.change_flags(device=DEVICE):
        part = symcomp.function([x, i], T.tanh(x[i : i + 2]))
        several = symcomp.function([x, i], T.tanh(x[i : i + 2]) * x[::30])
        moved = symcomp.function([x, i], [x[i], T.concatenate([x, x]).T, x.reshape((-1,))[1:]])
    for f, copied in ((part, 2 * 12), (several, 60 * 12), (moved, 0)):
        emu.counters.clear()
        f(value, 3)
        assert emu.counters.to_device == copied
    np.testing.assert_allclose(part(value, 3), np.tanh(value[3:5]), rtol=1e-6)
    assert not ops_on_device(moved)


def test_an_index_out_of_range(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lscalar("i")
    f = check([x, i], [(x * 2)[i] * 3, x * 2], [floats(6, 3), 1], 0, orders=[0])
    with pytest.raises(IndexError):
        f(floats(6, 3), 6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16"])
def test_reading_at_positions(emu: Emulator, dtype: str) -> None:
    x, i, j = T.ftensor3("x"), T.tensor(dtype, (None,)), T.tensor(dtype, (None, None))
    t = x * 2
    z = [t[i], t[:, i], t[j], t[:, :, j], t[i, i], t[:, i, i], t[i, :, i], t[1:, i, ::-1], t[i, j]]
    rows = np.array([2, 0, 1, 2, 2], dtype)
    grid = np.array([[0, 1, 2, 1, 0], [2, 2, 1, 0, 0]], dtype)
    if dtype.startswith("int"):
        rows[1], grid[0, 0] = -1, -3
    check([x, i, j], z, [floats(4, 3, 3), rows, grid], 0)


@pytest.fixture
def gathers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bool]]:
    """Note the rank of selections that are read, the width of packs, and whether by 64 bits."""
    noted: list[tuple[int, int, bool]] = []
    made = indexing.gather_kernel

    def noting(
        itemsize: int, dtypes: tuple[str, ...], rank: int, wide: bool, width: int
    ) -> CudaKernel:
        noted.append((rank, width, wide))
        return made(itemsize, dtypes, rank, wide, width)

    monkeypatch.setattr(indexing, "gather_kernel", noting)
    return noted


@pytest.mark.parametrize(
    ("dtype", "width"),
    [
        ("bool", 8), ("int8", 8), ("float16", 8), ("int32", 4), ("float32", 4), ("float64", 2),
        ("uint64", 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wide", [False, True])
def test_reading_packs_at_positions(
    emu: Emulator,
    gathers: list[tuple[int, int, bool]],
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    width: int,
    wide: bool,
) -> None:
    if wide:
        monkeypatch.setattr(indexing, "needs_wide", lambda numbers, operands: True)
    x, i, j = T.tensor(dtype, (None,) * 3), T.lvector("i"), T.lmatrix("j")
    t = T.as_tensor_variable(to_gpu(x, DEVICE))
    cases = [
        (t[i], (2, width)), (t[j], (2, width)), (t[:, i], (3, width)), (t[i, 1], (2, width)),
        (t[i, i], (2, width)), (t[::-1, :4][i], (2, width)), (t[j, :, :8], (3, width)),
        (t[:, :, i], (2, 1)), (t[i, :, ::-1], (3, 1)), (t[i, :, 1:], (3, 1)),
        (t[:, i, :3], (3, 1)), (t.dimshuffle(0, 2, 1)[i], (3, 1)), (t[i, :, :0], None),
    ]  # fmt: skip
    value = (floats(5, 6, 16) * 9).astype(dtype)
    values = [value, np.array([4, -1, 0, 2]), np.array([[0, 3], [-2, 1]])]
    check([x, i, j], [z for z, _ in cases], values, 0, orders=[0])
    wanted = sorted((*case, wide) for _, case in cases if case is not None)
    # The first plan is enough.
    assert sorted(gathers[: len(wanted)]) == wanted


def test_a_position_of_packs_out_of_range(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    f = check([x, i], (x * 2)[i], [floats(5, 8), np.array([4, -5])], 0, orders=[0])
    for index in (5, -6, 2**32, -(2**32)):
        with pytest.raises(IndexError, match=f"index {index} is out of range for an axis of len"):
            f(floats(5, 8), np.array([1, index]))


def test_no_positions(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    z = [(x * 2)[i], T.inc_subtensor((x * 2)[i], 1), T.set_subtensor((x * 2)[:, i], 3)]
    check([x, i], z, [floats(4, 3), np.zeros(0, "int64")], 0, orders=[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_writing_parts(emu: Emulator, dtype: str) -> None:
    x, y = T.tensor(dtype, (None, None)), T.tensor(dtype, (None,))
    w = T.fscalar("w")
    t, u = x + x, y + y
    z = [
        T.set_subtensor(t[1], u),
        T.inc_subtensor(t[:, ::-1], u),
        T.inc_subtensor(t[1:, 0], t[0, 0]),
    ]
    z = [one * w for one in z]
    a, b = (floats(4, 3) * 9).astype(dtype), (floats(3) * 9).astype(dtype)
    check([x, y, w], z, [a, b, np.float32(1)], 2, orders=[0], on_host=True)


def test_writing_at_positions_that_occur_twice(emu: Emulator) -> None:
    x, y, i, j = T.fmatrix("x"), T.fmatrix("y"), T.lvector("i"), T.lvector("j")
    t = x * 2
    z = [
        T.inc_subtensor(t[i], y), T.set_subtensor(t[i], y), T.inc_subtensor(t[:, i], y.T),
        T.inc_subtensor(t[i, j], y[:, 0]), T.set_subtensor(t[i, j], y[:, 1]),
        T.inc_subtensor(t[i], y[:, :1].sum()), T.inc_subtensor(t[i], y[0]),
    ]  # fmt: skip
    rows, columns = RNG.integers(-6, 6, 40), RNG.integers(0, 6, 40)
    check([x, y, i, j], z, [floats(6, 6), floats(40, 6), rows, columns], 16)


def test_writing_at_many_positions(emu: Emulator) -> None:
    x, y, i, j = T.fmatrix("x"), T.fmatrix("y"), T.ivector("i"), T.bvector("j")
    z = [T.inc_subtensor((x * 2)[i, j], y[:, 0]), T.set_subtensor((x * 2)[i], y)]
    rows = RNG.integers(-50, 50, 3000).astype("int32"), RNG.integers(0, 3, 3000).astype("int8")
    check([x, y, i, j], z, [floats(50, 3), floats(3000, 3), *rows], 64, orders=[0, 2])


def test_the_gradient_of_an_embedding(emu: Emulator) -> None:
    table, i = T.fmatrix("table"), T.lmatrix("i")
    loss = T.sqr(T.tanh(table)[i].sum(axis=1)).sum()
    check([table, i], symcomp.grad(loss, table), [floats(7, 4), RNG.integers(0, 7, (9, 3))], 16)


def test_positions_out_of_range(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x, i], T.inc_subtensor((x * 2)[i], 1))
    with pytest.raises(IndexError, match="index 4 is out of range for an axis of length 4"):
        f(floats(4, 3), [1, 4])


def test_joins(emu: Emulator) -> None:
    x, y = T.fmatrix("x"), T.fmatrix("y")
    t, u = x * 2, T.exp(y)
    z = [T.join(0, t, u, t), T.join(1, t.T, u.T), T.stack([t[0], u[0]]), T.concatenate([t, u])[1:]]
    parts = T.split(T.join(0, t, u), [1, 4], 2, axis=0)
    check([x, y], [*z, *parts], [floats(3, 4), floats(2, 4)], 2, orders=[0])


def test_fills(emu: Emulator) -> None:
    x = T.fmatrix("x")
    t = x * 2
    z = [T.zeros_like(t) + t[0], T.alloc(t[0], 3, 4), T.alloc(t[0, 0], 2), T.ones_like(t) * t]
    check([x], z, [floats(3, 4)], 2, orders=[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 4), (70, 17, 65), (64, 64, 64), (5, 0, 3)])
def test_products(emu: Emulator, dtype: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, y = T.tensor(dtype, (None, None)), T.tensor(dtype, (None, None))
    check(
        [x, y],
        T.dot(x, y),
        [floats(m, k, dtype=dtype), floats(k, n, dtype=dtype)],
        16,
        on_host=True,
    )


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_products_of_integers(emu: Emulator, dtype: str) -> None:
    x, y = T.tensor(dtype, (None, None)), T.tensor(dtype, (None,) * 3)
    t, u = T.as_tensor_variable(to_gpu(x, DEVICE)), T.as_tensor_variable(to_gpu(y, DEVICE))
    z = [T.dot(t, u[0]), T.dot(t, t.T), T.dot(t[0], u[1]), T.batched_dot(u, u.dimshuffle(0, 2, 1))]
    values = [RNG.integers(0, 2**31, s).astype(dtype) for s in ((9, 20), (3, 20, 7))]
    values = [v % 2 != 0 for v in values] if dtype == "bool" else values
    check([x, y], z, values, 0, orders=[0, 1])


def test_more_batches_than_a_grid_has(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MOST_BATCHES", 3)
    x, y, c = T.ftensor3("x"), T.ftensor3("y"), T.ftensor3("c")
    z = [T.batched_dot(x, y), c + T.batched_dot(x * 2, y[::-1])]
    values = [floats(7, 3, 5), floats(7, 5, 6), floats(7, 3, 6)]
    check([x, y, c], z, values, 16, orders=[0])


def test_products_of_any_layout(emu: Emulator) -> None:
    x, y, v = T.fmatrix("x"), T.fmatrix("y"), T.fvector("v")
    z = [T.dot(x.T, y), T.dot(x, y.T), T.dot(x[::-1], y[:, ::-2].T), T.dot(x, v), T.dot(v, x.T)]
    z += [T.dot(v, v), T.dot(x.T, x) * 3 + y[0], 2 * T.dot(x, y.T) - y[0, 0]]
    z[2] = T.dot(x[::-1, ::2], y[:, ::2].T)
    check([x, y, v], z, [floats(9, 7), floats(9, 7), floats(7)], 16, orders=[0, 1])


def test_batches(emu: Emulator) -> None:
    x, y = T.ftensor3("x"), T.ftensor3("y")
    z = [
        T.batched_dot(x, y),
        T.batched_dot(x * 2, y).sum(axis=0),
        T.batched_dot(y.dimshuffle(0, 2, 1), y),
    ]
    check([x, y], z, [floats(4, 3, 5), floats(4, 5, 6)], 16, orders=[0])


def test_scaled_and_added(emu: Emulator) -> None:
    c, x, y, a = T.fmatrix("c"), T.fmatrix("x"), T.fmatrix("y"), T.fscalar("a")
    v, w = T.fvector("v"), T.fvector("w")
    z = [c + a * T.dot(x, y), 2 * c - T.dot(x, y), w * 3 + T.dot(x, v), c + T.outer(w, v)]
    values = [floats(4, 5), floats(4, 5), floats(5, 5), np.float32(0.3), floats(5), floats(4)]
    check([c, x, y, a, v, w], z, values, 16, orders=[0])


def test_shapes_of_products_that_do_not_fit(emu: Emulator) -> None:
    x, y = T.fmatrix("x"), T.fmatrix("y")
    f = check([x, y], T.dot(x, y), [floats(2, 3), floats(3, 2)], 8, orders=[0])
    with pytest.raises(ValueError, match="do not fit"):
        f(floats(2, 3), floats(4, 2))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2)])
def test_positions_of_extremes(emu: Emulator, dtype: str, axis: object) -> None:
    x = T.tensor(dtype, (None, None, None))
    value = (RNG.integers(0, 5, (3, 140, 4))).astype(dtype)
    if dtype.startswith("float"):
        value[1, 7, 2] = value[1, 100, 2] = np.nan
    t = to_gpu(x, DEVICE)
    check([x], [T.argmax(t, axis), T.argmin(t, axis)], [value], 0)


def test_reading_vectors_in_expressions(emu: Emulator) -> None:
    a, i, x = T.fvector("a"), T.lvector("i"), T.fvector("x")
    z = [a[i] * x, T.exp(a[i] - x).sum()]
    f = check([a, i, x], z, [floats(4), np.array([3, -1, 0, 0, 2]), floats(5)])
    assert not any(isinstance(node.op, Fused) for node in f.maker.fgraph.nodes)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_numbers_and_new_axes_beside_arrays(emu: Emulator, dtype: str) -> None:
    x, i, j = T.tensor(dtype, (None,) * 4), T.lvector("i"), T.lmatrix("j")
    n, m = T.lscalar("n"), T.lscalar("m")
    t = to_gpu(x, DEVICE)
    keys = [
        (0, i), (slice(None), 1, i), (1, slice(None), i), (i, 0), (i, slice(None), -1),
        (n, i), (slice(None), n, i), (n, slice(None), i), (i, n, m), (slice(1, None), i, n),
        (None, i), (i, None), (i, None, i), (slice(None), None, i, None), (0, None, j),
        (j, n, slice(None, None, -1)), (i, ..., n), (slice(n, m), i), (n, slice(0, m), j, 1),
    ]  # fmt: skip
    values = [(floats(4, 3, 4, 5) * 9).astype(dtype), np.array([2, 0, -1, 2, 2])]
    values += [np.array([[0, 1], [2, 2]]), 1, 2]
    check([x, i, j, n, m], [t[key] for key in keys], values, 0, orders=[0])
    y = T.ones_like(t[0, 0, 0, 0])
    z = [T.inc_subtensor(t[key], y) for key in keys]
    z += [T.set_subtensor(t[key], t[key] * 2 + 1) for key in keys]
    check([x, i, j, n, m], z, values, 0, orders=[0])


def test_a_plan_serves_all_numbers_beside_arrays(emu: Emulator) -> None:
    x, i, n = T.fmatrix("x"), T.lvector("i"), T.lscalar("n")
    f = check([x, i, n], (x * 2)[n, i] + 1, [floats(4, 3), np.array([0, 2]), 1], 0, orders=[0])
    value = floats(4, 3)
    for number in (0, 3, -4, -1):
        np.testing.assert_array_equal(f(value, [0, 2], number), value[number, [0, 2]] * 2 + 1)
    region = next(n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph))
    assert region.program.made == 1
    with pytest.raises(IndexError, match="index 4 is out of range for an axis of length 4"):
        f(value, [0, 2], 4)


def test_lengths_of_written_values(emu: Emulator) -> None:
    x, y, i = T.fmatrix("x"), T.fmatrix("y"), T.lvector("i")
    f = check([x, y, i], T.inc_subtensor((x * 2)[i], y), [floats(4, 3), floats(2, 3), [0, 0]], 2)
    for shape in ((3, 3), (1, 3), (2, 1)):
        with pytest.raises(ShapeError, match=r"y has shape .*, the part of x .* \(2, 3\)"):
            f(floats(4, 3), floats(*shape), [0, 1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool"])
def test_writing_where_a_mask_is_true(emu: Emulator, dtype: str) -> None:
    x, m, s = T.tensor(dtype, (None,) * 3), T.tensor("bool", (None, None)), T.scalar("s", dtype)
    y = T.tensor(dtype, (None,))
    t, part = to_gpu(x, DEVICE), T.as_tensor_variable(to_gpu(m, DEVICE))
    whole = T.neq(t, s)
    z = [T.set_subtensor(t[whole], s), T.inc_subtensor(t[whole], s), T.set_subtensor(t[part], s)]
    z += [T.inc_subtensor(t[part], y), T.set_subtensor(t[:, part.T], s)]
    z += [T.set_subtensor(t[whole[:, 0, 0]], s)]
    values = [(floats(4, 3, 4) * 9).astype(dtype), floats(4, 3) > 0, np.array(1, dtype)]
    check([x, m, s, y], z, [*values, (floats(4) * 9).astype(dtype)], 0, orders=[0])


def test_masks_of_other_lengths(emu: Emulator) -> None:
    x, m = T.fmatrix("x"), T.tensor("bool", (None, None))
    z = T.set_subtensor((x * 2)[to_gpu(m, DEVICE)], 1)
    f = check([x, m], z, [floats(4, 3), floats(4, 3) > 0], 0, orders=[0])
    for shape in ((4, 1), (1, 3), (3, 4)):
        with pytest.raises(IndexError, match="axis . of the mask has length"):
            f(floats(4, 3), floats(*shape) > 0)


def test_reading_where_a_mask_is_true_is_done_by_the_host(emu: Emulator) -> None:
    x = T.fmatrix("x")
    t = T.tanh(x)
    check([x], [t[t > 0], t[t[:, 0] > 0]], [floats(4, 3)], 2, orders=[0], on_host=True)
