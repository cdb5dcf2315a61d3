"""Loops on the host whose states and outputs stay on a device: branches, conditions to stop."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp import gpu
from symcomp.config import config
from symcomp.errors import ShapeError
from symcomp.gpu.driver.emulator import Emulator
from symcomp.ifelse import ifelse
from symcomp.tests.gpu.running import DEVICE, array, assert_close, functions_called

on_emu = config.change_flags(device=DEVICE)
STEPS = 20
ROW = 4 * 8
FLAG = 1


def choosing(row: Any, h: Any, w: Any) -> Any:
    """Return the next state, by one of two branches; a device finds the condition."""
    return ifelse(T.gt(h.sum(), 0), T.tanh(T.dot(h, w)), T.dot(w, h) * row)


def skipping(row: Any, h: Any, w: Any) -> Any:
    """Return the next state, or the same one where a number of the row says so."""
    return ifelse(T.gt(row[0], 0), T.tanh(T.dot(h, w) + row), h)


def stopping(row: Any, h: Any, w: Any) -> Any:
    return choosing(row, h, w), symcomp.until(row[0] > 100)


STEPS_OF = {"choosing": choosing, "skipping": skipping, "stopping": stopping}
RESULTS_OF = {
    "all": lambda hs, w: [hs],
    "last": lambda hs, w: [hs[-1]],
    "gradient": lambda hs, w: [T.sqr(hs).sum(), T.grad(T.sqr(hs).sum(), w)],
    "gradient of the last": lambda hs, w: [T.grad(hs[-1].sum(), w), hs[::2], hs[3], hs.shape[0]],
}


def compiled(inputs: Any, outputs: Any, **options: Any) -> tuple[Any, Any]:
    """Compile for the processor and for the emulator."""
    plain = symcomp.function(inputs, outputs, **options)
    with on_emu:
        return plain, symcomp.function(inputs, outputs, **options)


def check_values(f: Any, plain: Any, *values: Any, units: float = 256) -> None:
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert_close(found, wanted, units)


def counters_of(emu: Emulator, f: Any, *values: Any) -> Any:
    """Return the counters of a call that repeats plans."""
    f(*values)
    emu.counters.clear()
    f(*values)
    return emu.counters


@pytest.mark.parametrize("linker", ["cvm", "py"])
@pytest.mark.parametrize("results", RESULTS_OF)
@pytest.mark.parametrize("step", STEPS_OF)
def test_values(emu: Emulator, step: str, results: str, linker: str) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(STEPS_OF[step], x, h, w)
    with config.change_flags(linker=linker):
        plain, f = compiled([x, w, h], RESULTS_OF[results](hs, w))
    for sign in (1, -1):
        check_values(f, plain, array(STEPS, 8), array(8, 8), sign * array(8))


def test_only_conditions_cross(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(choosing, x, h, w)
    _, f = compiled([x, w, h], hs)
    found = counters_of(emu, f, array(STEPS, 8), array(8, 8), array(8))
    assert found.to_device == STEPS * ROW + 8 * ROW + ROW  # the arguments
    assert found.to_host == STEPS * FLAG + STEPS * ROW
    assert found.waits == STEPS + 1


def test_gradients_read_states_there(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(choosing, x, h, w)
    _, f = compiled([x, w, h], T.grad(hs.sum(), w))
    states = (STEPS + 1) * ROW
    found = counters_of(emu, f, array(STEPS, 8), array(8, 8), array(8))
    # No array of states crosses, apart from two of gradients that the processor prepares.
    assert found.to_device <= STEPS * ROW + 2 * 8 * ROW + 3 * states
    assert found.to_host <= 2 * states
    assert found.waits <= 2 * STEPS + 4


def test_lags_outputs_and_long_loops(emu: Emulator) -> None:
    """Rows of states are read two steps back, outputs are no states, and arrays grow."""
    h, n, most = T.fmatrix("h"), T.lscalar("n"), T.fscalar("most")

    def step(before: Any, now: Any, most: Any) -> Any:
        new = ifelse(T.gt(now.sum(), 1), now * 0.5, before + now + np.float32(0.01))
        return [new, T.tanh(new) * 2], symcomp.until(T.gt(most, 100))

    (hs, zs), _ = symcomp.scan(
        step, outputs_info=[{"initial": h, "taps": [-2, -1]}, None], non_sequences=most, n_steps=n
    )
    plain, f = compiled([h, n, most], [hs, zs, zs[-1]])
    for count in (1, 2, 63, 64, 65, 200):
        check_values(f, plain, array(2, 5), count, 0, units=4096)
        check_values(f, plain, array(2, 5), count, 1000, units=64)
    found = counters_of(emu, f, array(2, 5), 200, 0)
    assert found.to_device <= 2 * 4 * 5 + 64
    assert found.to_host <= 200 * (2 * FLAG + 2 * 4 * 5) + 20


def test_rows_in_any_layout(emu: Emulator) -> None:
    x, h = T.fvector("x"), T.fmatrix("h")
    hs, _ = symcomp.scan(
        lambda s, h: ifelse(T.gt(h[0, 0], s), T.tanh(h).T, h.T[::-1] + 1), x, h
    )
    plain, f = compiled([x, h], [hs])
    for _ in range(2):
        check_values(f, plain, array(9), array(4, 4))


def test_no_steps(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    (hs, zs), _ = symcomp.scan(
        lambda row, h, w: [choosing(row, h, w), T.exp(T.dot(h, w))], x, [h, None], w
    )
    plain, f = compiled([x, w, h], [hs, zs])
    for steps in (0, 3, 0):
        check_values(f, plain, array(steps, 8), array(8, 8), array(8))


def test_rows_of_other_shapes(emu: Emulator) -> None:
    x, h = T.fvector("x"), T.fvector("h")
    hs, _ = symcomp.scan(
        lambda s, h: ifelse(T.gt(s, 0), T.tanh(h), T.tanh(T.concatenate([h, h]))), x, h
    )
    _, f = compiled([x, h], hs)
    assert f(np.ones(3, "float32"), array(4)).shape == (3, 4)
    with pytest.raises(ShapeError, match=r"has shape \(8,\) in this step, and had \(4,\)"):
        f(np.array([1, -1], "float32"), array(4))


def test_results_on_the_device(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(choosing, x, h, w)
    plain, f = compiled([x, w, h], [hs, gpu.to_gpu(hs[-1], DEVICE), T.exp(hs[1:]).sum()])
    values = array(STEPS, 8), array(8, 8), array(8)
    found = f(*values)
    assert isinstance(found[1], gpu.DeviceArray)
    for one, other in zip(found, plain(*values), strict=True):
        assert_close(np.asarray(one), np.asarray(other), 256)


def test_profiles_count_the_steps(emu: Emulator) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(choosing, x, h, w)
    _, f = compiled([x, w, h], hs, profile=True)
    f(array(STEPS, 8), array(8, 8), array(8))
    (data,) = f.profile.to_dict()["functions"]
    (loop,) = data["programs"]
    assert loop["called_by_python"] is None and loop["steps"] == STEPS


def test_memory_reports_need_shapes_alone(emu: Emulator) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        hs, _ = symcomp.scan(choosing, x, h, w)
        f = symcomp.function([x, h], [hs, T.exp(T.dot(x, w)).sum(axis=0)])
    report = f.memory_report((STEPS, 8), (8,))
    assert report.results == 4 * (STEPS * 8 + 8)
    assert str(report) == str(f.memory_report(array(STEPS, 8), array(8)))


@pytest.mark.parametrize("mode", ["DebugMode", "NanGuardMode", "FAST_COMPILE"])
def test_modes(emu: Emulator, mode: str) -> None:
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    plain, f = compiled([x, w, h], [symcomp.scan(choosing, x, h, w)[0]], mode=mode)
    check_values(f, plain, array(5, 8), array(8, 8), array(8))


@pytest.mark.parametrize("device", [None, "cpu"])
def test_saving(emu: Emulator, tmp_path: Path, device: str | None) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        hs, _ = symcomp.scan(choosing, x, h, w)
        f = symcomp.function([x, h], [hs, T.grad(hs.sum(), w)])
    values = array(STEPS, 8), array(8)
    symcomp.save(tmp_path / "loop.zip", f)
    g = symcomp.load(tmp_path / "loop.zip", device=device)
    check_values(g, f, *values)
    if device is None:
        assert counters_of(emu, g, *values).waits == counters_of(emu, f, *values).waits


PROGRAM = """
import sys
import numpy as np
import symcomp

f = symcomp.load(sys.argv[1])
print(f(np.ones((5, 8), "float32"), np.ones(8, "float32"))[0].sum())
"""


def test_loading_in_another_process(emu: Emulator, tmp_path: Path) -> None:
    x, h = T.fmatrix("x"), T.fvector("h")
    with on_emu:
        w = symcomp.shared(array(8, 8), name="w")
        f = symcomp.function([x, h], [symcomp.scan(choosing, x, h, w)[0]])
    path = tmp_path / "loop.zip"
    symcomp.save(path, f)
    command = [sys.executable, "-c", PROGRAM, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    wanted = f(np.ones((5, 8), "float32"), np.ones(8, "float32"))[0].sum()
    assert_close(np.float32(found.stdout), wanted, 64)


@pytest.mark.parametrize("results", RESULTS_OF)
@pytest.mark.parametrize("step", STEPS_OF)
@config.change_flags(kernels=True)
def test_loops_run_no_python(emu: Emulator, step: str, results: str) -> None:
    """A function in C begins the loop, runs its steps and makes its results, which stay right."""
    x, w, h = T.fmatrix("x"), T.fmatrix("w"), T.fvector("h")
    hs, _ = symcomp.scan(STEPS_OF[step], x, h, w)
    plain, f = compiled([x, w, h], RESULTS_OF[results](hs, w))
    held, found = [], []
    for k in range(4):
        values = array(STEPS, 8), array(8, 8) + k % 2, array(8)
        held.append((f(*values), plain(*values)))
    assert "steps in turn(" in str(f.plan())
    values = array(STEPS, 8), array(8, 8), array(8)
    emu.counters.clear()
    assert functions_called(lambda: found.append(f(*values))) == []
    before = repr(emu.counters)
    emu.counters.clear()
    f(*values)
    assert repr(emu.counters) == before
    for one, other in (*held, (found[0], plain(*values))):
        for z, wanted in zip(one, other, strict=True):
            assert_close(z, wanted, 4096)


@config.change_flags(kernels=True)
def test_rows_in_any_layout_run_no_python(emu: Emulator) -> None:
    x, h = T.fvector("x"), T.fmatrix("h")
    hs, _ = symcomp.scan(
        lambda s, h: ifelse(T.gt(h[0, 0], s), T.tanh(h).T, h.T[::-1] + 1), x, h
    )
    plain, f = compiled([x, h], [hs])
    values, found = (array(9), array(4, 4)), []
    for _ in range(3):
        f(*values)
    assert functions_called(lambda: found.append(f(*values))) == []
    assert_close(found[0][0], plain(*values)[0], 256)


def test_errors_name_the_step(emu: Emulator) -> None:
    x, h, i = T.fmatrix("x"), T.fvector("h"), T.lvector("i")

    def step(k: Any, row: Any, h: Any) -> Any:
        return ifelse(T.gt(h.sum(), 100), h, T.tanh(h + row)[k : k + 8])

    hs, _ = symcomp.scan(step, [i, x], h)
    with on_emu:
        f = symcomp.function([x, h, i], hs)
    f(array(3, 8), array(8), [0, 0, 0])
    with pytest.raises(ShapeError) as caught:
        f(array(3, 8), array(8), [0, 1, 0])
    assert any("step 1 (of at most 3)" in note for note in caught.value.__notes__)
