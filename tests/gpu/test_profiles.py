"""Profiles and traces of work on devices."""

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.cvm.machine import DEVICE_TIMELINE
from symcomp.gpu import to_gpu
from symcomp.gpu.driver.cuda import CudaDriver
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.driver.timeline import Pending, Timeline
from symcomp.ifelse import ifelse
from symcomp.profiling.devices import STREAMS
from symcomp.profiling.stats import text_at_exit
from symcomp.tests.gpu.running import DEVICE, products_by

VALUE = np.ones((40, 30), "float32")


@pytest.fixture(autouse=True)
def limits_kept_here(tmp_path_factory: Any) -> Any:
    """Measure the limits of the machine once, and keep them away from the user's directory."""
    with config.change_flags(compiledir=str(tmp_path_factory.mktemp("kept"))):
        yield


def training(**options: Any) -> Any:
    x = T.fmatrix("x")
    with config.change_flags(device=DEVICE):
        w = symcomp.shared(np.ones((30, 20), "float32"))
        loss = T.sqr(T.tanh(T.dot(x, w))).mean()
        step = w - np.float32(0.1) * symcomp.grad(loss, w)
        outputs = [loss, to_gpu(T.exp(loss), DEVICE)]
        return symcomp.function([x], outputs, updates=[(w, step)], name="step", **options)


@pytest.mark.usefixtures("unmerged")
@pytest.mark.parametrize("linker", ["cvm", "py"])
def test_times_of_kernels_and_bytes_of_copies(emu: Emulator, linker: str) -> None:
    f = training(profile=True, mode=symcomp.Mode(linker=linker))
    for _ in range(4):
        f(VALUE)
    emu.counters.clear()
    f(VALUE)
    launches = emu.counters.launches
    (data,) = f.profile.to_dict()["functions"]
    rows = data["device_work"]
    kernels = [row for row in rows if row["kind"] in ("kernel", "library")]
    assert sum(row["count"] for row in kernels) == 5 * launches
    assert all(row["device"] == DEVICE and row["seconds"] > 0 for row in rows)
    assert [row["seconds"] for row in rows] == sorted((r["seconds"] for r in rows), reverse=True)
    product = next(row for row in kernels if row["label"].startswith("Dot "))
    assert product["count"] == 5 and "test_profiles.py" in product["label"]
    factors = 2 if products_by(emu) == "library" else 0  # cuBLAS reads them on the device
    assert product["bytes"] == 5 * 4 * (40 * 30 + 30 * 20 + 40 * 20 + factors)
    (back,) = [row for row in rows if row["kind"] == "to host"]
    assert (back["count"], back["bytes"]) == (5, 20)
    (there,) = [row for row in rows if row["kind"] == "to device"]
    assert there["bytes"] >= 5 * VALUE.nbytes


def test_text_and_page(emu: Emulator, tmp_path: Path) -> None:
    f = training(profile=True)
    f(VALUE)
    text = f.profile.text()
    for part in (
        "Work on devices, timed there",
        f"{products_by(emu):10} Dot (",
        "copied to devices, in",
        "4 bytes  copied to the host, in 1 copies",
        f"on {DEVICE}",
    ):
        assert part in text, text
    f.profile.to_html(tmp_path / "page.html")
    assert "Work on devices" in (tmp_path / "page.html").read_text(encoding="utf-8")
    twin = f.copy(profile=True)
    twin(VALUE)
    each, _, together = text_at_exit([f.profile, twin.profile]).partition("all 2 functions")
    assert each.count("Work on devices") == 2 and together and "Work on" not in together


def test_traces_have_a_row_for_the_stream(emu: Emulator, tmp_path: Path) -> None:
    shared = symcomp.ProfileStats("both")
    f, g = training(profile=shared), training(profile=shared)
    f(VALUE)
    g(VALUE)
    shared.to_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    work = [event for event in events if event.get("cat") == "device"]
    assert len(work) >= 2 * 5 and {event["tid"] for event in work} == {STREAMS}
    names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["tid"] == STREAMS]
    assert names == [f"stream of {DEVICE}"]
    calls = [event for event in events if event.get("cat") == "call"]
    first, last = min(e["ts"] for e in calls), max(e["ts"] + e["dur"] for e in calls)
    assert all(first <= e["ts"] <= e["ts"] + e["dur"] for e in work)
    assert any(e["ts"] + e["dur"] <= last for e in work)
    assert all(e["args"]["bytes"] > 0 for e in work)


def test_without_a_profile_nothing_is_timed(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timeline, "expect", lambda self, driver: pytest.fail("it is timed"))
    f = training()
    f(VALUE)
    assert f.profiled is None and DEVICE_TIMELINE.get() is None
    g = symcomp.function([], T.ones(3), profile=True)
    g()
    (data,) = g.profile.to_dict()["functions"]
    assert data["device_work"] is None and "Work on devices" not in g.profile.text()


def test_functions_are_told_apart(emu: Emulator) -> None:
    f, plain = training(profile=True), training()
    f(VALUE)
    plain(VALUE)
    twin = f.copy(profile=True)
    for _ in range(3):
        twin(VALUE)

    def products(one: Any) -> int:
        rows = one.profile.to_dict()["functions"][0]["device_work"]
        return next(row["count"] for row in rows if row["label"].startswith("Dot "))

    assert (products(f), products(twin)) == (1, 3)


def test_work_of_branches_and_loops(emu: Emulator) -> None:
    x, c = T.fvector("x"), T.lscalar("c")
    with config.change_flags(device=DEVICE):
        rows, _ = symcomp.scan(lambda h: to_gpu(T.tanh(h), DEVICE) * 2, outputs_info=[x], n_steps=3)
        f = symcomp.function([x, c], ifelse(c, rows[-1], T.exp(x)), profile=True)
    f(np.ones(4, "float32"), 0)
    kernels = lambda: [  # noqa: E731
        row["count"]
        for row in f.profile.to_dict()["functions"][0]["device_work"]
        if row["kind"] == "kernel"
    ]
    assert sum(kernels()) == 1
    f(np.ones(4, "float32"), 1)
    assert sum(kernels()) >= 4


def test_work_that_fails_is_not_counted(emu: Emulator) -> None:
    x, i = T.fvector("x"), T.lvector("i")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x, i], to_gpu((x * 2)[i], DEVICE), profile=True)
    f(np.ones(3, "float32"), [7])
    with pytest.raises(IndexError):
        f.profile.to_dict()
    assert f.profile.to_dict()["functions"][0]["calls"] == 1
    assert DEVICE_TIMELINE.get() is None


def test_threads_profiles_and_faults(emu: Emulator) -> None:
    x, i = T.fmatrix("x"), T.lvector("i")
    functions = []
    with config.change_flags(device=DEVICE):
        for k in range(6):
            outputs = [T.tanh(x[i] * (k + 1)), (T.exp(x) + k).sum(axis=0)]
            functions.append(symcomp.function([x, i], outputs, profile=True))
    problems = []

    def work(k: int) -> None:
        for n in range(60):
            value = np.full((5 + n % 7, 4), n / 60, "float32")
            try:
                rows, sums = functions[k](value, [0, 3, 99 if n % 5 == 0 else 1])
                np.testing.assert_allclose(sums, (np.exp(value) + k).sum(axis=0), rtol=1e-5)
                if n % 5:
                    wanted = np.tanh(value[[0, 3, 1]] * (k + 1))
                    np.testing.assert_allclose(rows, wanted, rtol=1e-5)
            except IndexError:  # in the thread that waits first
                pass
            except Exception as problem:  # noqa: BLE001 - told by the test
                problems.append(problem)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not problems, problems[:3]
    for f in functions:
        (data,) = f.profile.to_dict()["functions"]
        copies = [row["count"] for row in data["device_work"] if row["kind"] == "to device"]
        assert sum(copies) == 2 * 60, data["device_work"]


class FakeEvent:
    """An event of PyCUDA; the stream's clock goes on by a millisecond with each."""

    clock = 0

    def record(self, stream: Any) -> None:
        FakeEvent.clock += 1
        self.at = FakeEvent.clock

    def synchronize(self) -> None:
        pass

    def time_till(self, other: Any) -> float:
        return float(other.at - self.at)


def test_events_of_cards() -> None:
    driver = object.__new__(CudaDriver)
    vars(driver).update(
        drv=SimpleNamespace(Event=FakeEvent), name="cuda0", is_current=lambda: True, stream=None,
        _times=Pending(), _clock=None, _clock_start=0, queue=SimpleNamespace(has_times=False),
        wait=lambda: driver.collect_times(driver.times_enqueued()),
    )  # fmt: skip
    with driver.timing("copy", 8):
        pass
    assert driver._clock is None and not driver._times  # no function is profiled
    timeline = Timeline()
    before = DEVICE_TIMELINE.set(timeline)
    for _ in range(2):
        with driver.timing("kernel", 24, "Dot"):
            pass
    DEVICE_TIMELINE.reset(before)
    assert not timeline.events and len(driver._times) == 2 and driver.queue.has_times
    timeline.finish()
    assert not driver._times and not driver.queue.has_times
    first, second = timeline.events
    assert (first.kind, first.label, first.nbytes, first.duration) == ("kernel", "Dot", 24, 10**6)
    assert second.start - first.start == 2 * 10**6 == first.start - driver._clock_start + 10**6
    total = timeline.totals["cuda0", "kernel", "Dot"]
    assert (total.count, total.nanoseconds, total.nbytes) == (2, 2 * 10**6, 48)


HOST_OPS: dict[str, Any] = {
    "Expm": lambda x: T.slinalg.expm(x),
    "Eig": lambda x: T.real(T.nlinalg.eig(x)[0]),
    "Schur": lambda x: T.diagonal(T.slinalg.schur(x)[0]),
    "Lstsq": lambda x: T.nlinalg.lstsq(x, np.ones((4, 1), "float32"))[0],
}


@pytest.mark.parametrize("name", HOST_OPS)
def test_profiles_tell_copies_around_operations_of_the_host(emu: Emulator, name: str) -> None:
    x = T.fmatrix("x")
    inner = T.tanh(x) + T.eye(4, dtype="float32") * np.arange(1, 5, dtype="float32")
    outputs = T.exp(HOST_OPS[name](inner) * np.float32(0.1))
    plain = symcomp.function([x], outputs)
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x], outputs, profile=True)
    value = (np.arange(16, dtype="float32").reshape(4, 4) - 8) / 50
    np.testing.assert_allclose(f(value), plain(value), rtol=1e-5)
    (data,) = f.profile.to_dict()["functions"]
    moved = {row["kind"]: row for row in data["device_work"] if row["kind"].startswith("to ")}
    # The host gets the matrix and the final result; the device gets the results of the op.
    result = plain(value).nbytes
    assert moved["to host"]["bytes"] == 4 * 16 + result and moved["to host"]["count"] == 2
    assert moved["to device"]["bytes"] >= value.nbytes + result
    assert any(str(node.op).startswith(name) for node in f.maker.fgraph.toposort())
