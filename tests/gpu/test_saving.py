"""Functions for devices in files, copies and pickles; and where loading puts them."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import LoadError
from symcomp.gpu import DeviceArray, DeviceUnavailable, to_device, to_gpu
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.type import DeviceType
from symcomp.tests.compile.test_saving import changed_archives, rewrite
from symcomp.tests.gpu.running import DEVICE, ops_on_device

BATCH = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)


def training() -> tuple[Any, Any]:
    """Return a training step with results on both sides, and its parameters on the device."""
    x, i = T.fmatrix("x"), T.lscalar("i")
    with config.change_flags(device=DEVICE):
        w = symcomp.shared(np.ones((3, 2), "float32"), name="w")
        data = symcomp.shared(np.arange(6, dtype="float32"), name="data")
        hidden = T.tanh(T.dot(x, w))
        loss = T.sqr(hidden).mean() + data[i]
        outputs = [loss, to_gpu(hidden, DEVICE), T.nnet.softmax(hidden), w.shape[0]]
        outputs.append(T.j0(loss))
        step = w - np.float32(0.1) * symcomp.grad(loss, w)
        return symcomp.function([x, i], outputs, updates=[(w, step)], name="step"), (w, data)


def values(found: Any) -> list[np.ndarray]:
    return [np.asarray(one) for one in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.zip"


@pytest.mark.parametrize("linker", ["cvm", "py"])
def test_functions_go_to_their_device(emu: Emulator, path: Path, linker: str) -> None:
    f, (w, _) = training()
    f(BATCH, 1)
    with config.change_flags(linker=linker):
        symcomp.save(path, [f, w])
        g, v = symcomp.load(path)
    assert v.type == w.type and isinstance(v.container.value, DeviceArray)
    assert ops_on_device(g) == ops_on_device(f)
    for i in range(2):
        found, wanted = g(BATCH, i), f(BATCH, i)
        assert isinstance(found[1], DeviceArray)
        for one, other in zip(values(found), values(wanted), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(v.get_value(), w.get_value())


@pytest.mark.parametrize("device", ["cpu", {DEVICE: "cpu", "cuda3": "emu"}])
def test_functions_go_to_the_host(emu: Emulator, path: Path, device: Any) -> None:
    f, (w, data) = training()
    symcomp.save(path, {"f": f, "w": w, "data": data})
    loaded = symcomp.load(path, device=device)
    g = loaded["f"]
    assert isinstance(loaded["w"].container.value, np.ndarray) and not ops_on_device(g)
    assert not any("Device" in str(node.op) for node in g.maker.fgraph.toposort())
    before = emu.counters.launches
    results = [g(BATCH, i) for i in (3, 4)]
    assert emu.counters.launches == before
    for found, i in zip(results, (3, 4), strict=True):
        assert all(isinstance(one, np.ndarray) for one in found)
        for one, other in zip(found, values(f(BATCH, i)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6)
    np.testing.assert_allclose(loaded["w"].get_value(), w.get_value(), rtol=2e-6)
    with pytest.raises(IndexError):
        g(BATCH, 6)


def test_expressions(emu: Emulator, path: Path) -> None:
    there = DeviceType(DEVICE, "float32", (None,)).make_variable("there")
    x = T.fvector("x")
    constant = to_gpu(there * 2 + to_gpu(x, DEVICE), DEVICE)
    symcomp.save(path, [there, x, constant, there.shape[0]])
    for device in (None, "cpu"):
        a, b, z, n = symcomp.load(path, device=device)
        assert a.type == (there.type if device is None else TensorType("float32", (None,)))
        found = symcomp.function([a, b], [z, n, symcomp.grad(z.sum(), b)])([1, 2], [3, 4])
        assert [np.asarray(one).tolist() for one in found] == [[5, 8], 2, [1, 1]]


def test_constants_and_default_values(emu: Emulator, path: Path) -> None:
    kind = DeviceType(DEVICE, "float32", (None,))
    known = kind.constant_class(kind, to_device(np.ones(2, "float32"), DEVICE))
    x = kind.make_variable("x")
    default = symcomp.In(x, value=to_device(np.full(2, 3, "float32"), DEVICE))
    f = symcomp.function([default], x + known)
    symcomp.save(path, f)
    for device in (None, "cpu"):
        g = symcomp.load(path, device=device)
        assert np.asarray(g()).tolist() == [4, 4]
        assert np.asarray(g(np.zeros(2, "float32"))).tolist() == [1, 1]


def test_files_without_devices_stay_on_the_host(emu: Emulator, path: Path) -> None:
    w = symcomp.shared(np.ones(3))
    symcomp.save(path, [w, symcomp.function([], w * 2)])
    v, f = symcomp.load(path, device=DEVICE)
    assert isinstance(v.container.value, np.ndarray) and f().tolist() == [2, 2, 2]


def test_a_machine_without_the_device(emu: Emulator, path: Path) -> None:
    f, (w, _) = training()
    symcomp.save(path, f)
    rewrite(path, lambda text: renamed(text, DEVICE, "cuda7"))
    with pytest.raises(DeviceUnavailable) as caught:
        symcomp.load(path)
    assert "symcomp.load(path, device='cpu')" in caught.value.__notes__[0]
    assert symcomp.load(path, device={"cuda7": "cpu"})(BATCH, 0)[3] == 3
    assert isinstance(symcomp.load(path, device=DEVICE)(BATCH, 0)[1], DeviceArray)
    for wrong in ("gpu", 3, {"cuda7": "tpu"}):
        with pytest.raises(ValueError, match="a device is"):
            symcomp.load(path, device=wrong)


def renamed(text: Any, old: str, new: str) -> Any:
    """Put one name in the place of another, everywhere in a text."""
    if isinstance(text, dict):
        return {key: renamed(value, old, new) for key, value in text.items()}
    if isinstance(text, list):
        return [renamed(value, old, new) for value in text]
    return new if text == old else text


def node_of(text: Any, name: str) -> Any:
    nodes = text["functions"][0]["graph"]["nodes"]
    return next(node for node in nodes if node["op"].get("class", "").endswith(f":{name}"))


def fields_of(text: Any, name: str) -> Any:
    return node_of(text, name)["op"]["fields"]


HOSTILE = [
    (lambda t: fields_of(t, "DeviceGraph").update(device="os.system"), "a device is"),
    (lambda t: fields_of(t, "DeviceGraph").update(device=3), "DeviceGraph.device is 3"),
    (lambda t: fields_of(t, "DeviceGraph").update(host_inputs={"tuple": [9]}), "host_inputs"),
    (lambda t: fields_of(t, "DeviceGraph").update(host_outputs={"tuple": [-1]}), "host_outputs"),
    (lambda t: fields_of(t, "DeviceGraph").update(host_outputs={"tuple": [1]}), "on the host"),
    (
        lambda t: fields_of(t, "DeviceGraph")["graph"]["graph"]["nodes"][0]["op"].update(
            {"class": "symcomp.ops.sorting.sort:Sort", "fields": {"axis": 0}}
        ),
        "a device cannot compute|does not take|is said to be",
    ),
    (lambda t: node_of(t, "DeviceGraph").update(inputs=[]), "does not take|cannot be"),
    (lambda t: node_of(t, "ToHost").update(inputs=[0]), "is said to be"),
    (lambda t: t["shared"][0].update(device="nowhere"), "a device is"),
    (lambda t: t["shared"][0].update(device=["emu"]), "stands where a str"),
    (lambda t: t["shared"][0].__delitem__("device"), "its shared variable"),
    (
        lambda t: t["shared"][0]["type"]["fields"].update(dtype="float64"),
        "DTypeError|its shared variable float64",
    ),
    (lambda t: t["shared"][0].update(value={"on_device": ["emu"]}), "cannot be read"),
    (lambda t: t["shared"][0].update(value={"on_device": ["emu", 99]}), "there is no array"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("device", [None, "cpu"])
def test_hostile_texts(
    emu: Emulator, path: Path, change: Any, message: str, device: str | None
) -> None:
    symcomp.save(path, training()[0])
    rewrite(path, change)
    if device == "cpu" and message == "its shared variable":
        symcomp.load(path, device=device)  # on the host it fits
        return
    with pytest.raises(LoadError, match=message):
        symcomp.load(path, device=device)


# Errors of calls whose programs make no sense.
REFUSED = (symcomp.errors.SymcompError, TypeError, ValueError, LookupError, AttributeError)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_whatever_is_changed_ends_no_process(
    emu: Emulator, path: Path, device: str | None
) -> None:
    symcomp.save(path, training()[0])
    refused = called = 0
    for changed in changed_archives(path, 120, seed=1):
        try:
            g = symcomp.load(changed, device=device)
        except LoadError:
            refused += 1
            continue
        try:
            g(BATCH, 1)
            called += 1
        except REFUSED:
            continue
    assert refused > 60 and called > 5


def test_lengths_that_a_file_claims_are_checked(emu: Emulator, path: Path) -> None:
    x, y = T.fvector("x"), T.fvector("y")
    with config.change_flags(device=DEVICE):
        f = symcomp.function([x, y], T.dot(T.cumsum(x) + y, y) + T.cumsum(x))
    symcomp.save(path, f)

    def claim(text: Any) -> None:
        for node in fields_of(text, "DeviceGraph")["graph"]["graph"]["nodes"]:
            if node["op"]["class"].endswith(":CumOp"):
                node["types"][0]["fields"]["shape"] = {"tuple": [7]}

    rewrite(path, claim)
    g = symcomp.load(path)
    with pytest.raises(symcomp.errors.ShapeError, match="but has shape"):
        g(np.zeros(0, "float32"), np.zeros(0, "float32"))


def test_copies(emu: Emulator) -> None:
    f, (w, data) = training()
    plain = f.copy(delete_updates=True)
    before = values(plain(BATCH, 0))
    first = values(f(BATCH, 0))
    for one, other in zip(before, first, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (values(plain(BATCH, 0))[0] < first[0]).all()  # f's update is seen
    other = symcomp.shared(np.full(6, 5, "float32"), device=DEVICE)
    swapped = f.copy(swap={data: other}, name="swapped")
    wanted = values(plain(BATCH, 0))[0] + 5
    np.testing.assert_allclose(values(swapped(BATCH, 2))[0], wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="cannot stand for it"):
        f.copy(swap={data: symcomp.shared(np.ones(6, "float32"), device="cpu")})
    twin = copy.deepcopy(f)
    w.set_value(np.zeros((3, 2), "float32"))
    assert not values(f(BATCH, 0))[1].any() and values(twin(BATCH, 0))[1].any()


def test_pickles(emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    f, _ = training()
    f(BATCH, 0)
    text = pickle.dumps([f, f.copy()])
    g, h = pickle.loads(text)
    for twin in (g, h):  # with one set of parameters
        for one, other in zip(values(twin(BATCH, 1)), values(f(BATCH, 1)), strict=True):
            np.testing.assert_array_equal(one, other)

    def missing(value: Any, name: str) -> None:
        raise DeviceUnavailable(f"there is no {name}")

    monkeypatch.setattr("symcomp.gpu.array.to_device", missing)
    with pytest.raises(DeviceUnavailable) as caught:
        pickle.loads(text)
    assert "symcomp.save" in caught.value.__notes__[0]


def test_strict_shared_variables(emu: Emulator) -> None:
    w = symcomp.shared(np.ones(3, "float32"), strict=True, device=DEVICE)
    w.set_value(np.full(3, 2, "float32"))
    assert w.get_value().tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        w.set_value([1, 2, 3])
