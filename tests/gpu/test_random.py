"""Random numbers on the emulator: those of the processor, of a counter-based generator."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ops.random.state import seeded_counter
from symcomp.tests.gpu.running import DEVICE, check, ops_on_host

STATE = T.random.state("state", "philox")
START = seeded_counter(11)
# The processor computes log and cos by vectors, a few units in the last place apart.
UNITS = 8


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [(300,), (5, 1, 70), (), (0, 3), "shape"])
def test_bits_of_the_processor(emu: Emulator, dtype: str, size: Any) -> None:
    x = T.matrix("x", dtype=dtype)
    lengths = x.shape if size == "shape" else size
    state = to_gpu(STATE, DEVICE)
    z = [T.random.uniform(state, size=lengths, dtype=dtype)[1]]
    z += [T.random.integers(state, -7, 90, size=lengths)[1]]
    z += [T.random.bernoulli(state, 0.4, size=lengths, dtype=dtype)[1]]
    z += [T.random.binomial(state, 1, 0.7, size=lengths)[1]]
    check([STATE, x], [*z, x * 2], [START, np.ones((9, 31), dtype)], 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["normal", "exponential", "laplace", "gumbel", "truncated_normal"])
def test_real_draws(emu: Emulator, dtype: str, name: str) -> None:
    state = to_gpu(STATE, DEVICE)
    after, z = getattr(T.random, name)(state, size=(40, 50), dtype=dtype)
    check([STATE], [z, after], [START], UNITS if dtype != "float16" else 2, on_host=True)


def test_draws_after_one_another(emu: Emulator) -> None:
    low, mean = T.lvector("low"), T.fvector("mean")
    state = to_gpu(STATE, DEVICE)
    after, z = T.random.integers(state, low, low + 3, size=(6, 4))
    last, other = T.random.normal(after, mean, 2.0, size=(3, 5))
    values = [START, np.arange(4), np.arange(5, dtype="float32")]
    check([STATE, low, mean], [z, other, last], values, UNITS, on_host=True)


def dropout_step(device: str) -> tuple[Any, Any]:
    """Compile a step of training with dropout; return it and the draw."""
    rng = np.random.default_rng(0)
    x, y = T.fmatrix("x"), T.fmatrix("y")
    with config.change_flags(device=device):
        stream = T.random.RandomStream(5, generator="philox")
        w = symcomp.shared(rng.standard_normal((6, 8)).astype("float32"))
        v = symcomp.shared(rng.standard_normal((8, 3)).astype("float32"))
        h = T.tanh(T.dot(x, w))
        mask = stream.bernoulli(0.5, size=h.shape, dtype="float32")
        loss = T.sqr(T.dot(h * mask * 2, v) - y).mean()
        steps = [(p, p - np.float32(0.1) * symcomp.grad(loss, p)) for p in (w, v)]
        return symcomp.function([x, y], loss if device == "cpu" else to_gpu(loss, device),
                                updates=steps), mask  # fmt: skip


def test_loops_draw_on_the_device(emu: Emulator) -> None:
    x = T.fmatrix("x")

    def compiled(device: str) -> Any:
        with config.change_flags(device=device):
            stream = T.random.RandomStream(3, generator="philox")
            hs, updates = symcomp.scan(
                lambda row, h: (h + row) * stream.bernoulli(0.5, size=(3,), dtype="float32"),
                x, T.zeros(3, "float32"),
            )  # fmt: skip
            return symcomp.function([x], hs, updates=updates)

    f, g = compiled("cpu"), compiled(DEVICE)
    assert not ops_on_host(g)
    value = np.arange(18, dtype="float32").reshape(6, 3)
    found = [g(value) for _ in range(3)]
    for one in found:
        np.testing.assert_array_equal(one, f(value))
    assert (found[0] != found[1]).any()
    emu.counters.clear()
    g(value)
    assert (emu.counters.waits, emu.counters.to_host) == (1, value.nbytes)


def test_dropout_needs_no_host(emu: Emulator) -> None:
    step, mask = dropout_step(DEVICE)
    plain, _ = dropout_step("cpu")
    values = [np.ones((10, 6), "float32"), np.zeros((10, 3), "float32")]
    names = [str(node.op) for node in step.maker.fgraph.toposort()]
    assert len([n for n in names if n.startswith("DeviceGraph")]) == 1 and not ops_on_host(step)
    for _ in range(3):
        np.testing.assert_allclose(float(step(*values)), plain(*values), rtol=1e-5)
    assert mask.rng.get_value()[2] == 3 * 80
    emu.counters.clear()
    for _ in range(5):
        step(*values)
    assert emu.counters.waits == 0
    assert mask.rng.get_value(return_internal_type=True).device == DEVICE
