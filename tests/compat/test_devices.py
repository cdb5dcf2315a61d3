"""Theano's names for GPUs, on the emulator."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compat.config import TheanoConfig, device_of, read_environment
from symcomp.config import Config, ConfigError
from symcomp.config import config as symcomp_config
from symcomp.gpu import DeviceArray, DeviceUnavailable, DeviceVariable
from symcomp.gpu.driver import devices
from symcomp.gpu.driver.emulator import Emulator
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.type import DeviceType


def lookup(name: str) -> Any:
    module, _, leaf = f"theano.{name}".rpartition(".")
    return getattr(importlib.import_module(module), leaf)


@pytest.fixture
def config() -> TheanoConfig:
    return TheanoConfig(Config({}))


@pytest.fixture
def on_emu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    driver = Emulator()
    before = devices.set_driver("emu", driver)
    monkeypatch.setattr(devices, "_names", {})
    with symcomp_config.change_flags(device="emu", cflags="-O0"):
        yield driver
    devices.set_driver("emu", before)


@pytest.mark.parametrize(
    ("word", "device"),
    [("cpu", "cpu"), ("cuda", "cuda0"), ("cuda2", "cuda2"), ("gpu", "cuda0"), ("gpu1", "cuda1"),
     ("emu", "emu"), ("opencl0:0", None), ("gpux", None)],
)  # fmt: skip
def test_words_for_devices(word: str, device: str | None) -> None:
    assert device_of(word) == device


def test_the_device_of_the_configuration(config: TheanoConfig) -> None:
    config.device = "emu"
    assert config.device == config._target.device == "emu"
    config._target.device = "cpu"
    assert config.device == "cpu"
    before = devices.set_driver("cuda1", Emulator())
    config.device = "gpu1"
    devices.set_driver("cuda1", before)
    assert (config.device, config._target.device) == ("gpu1", "cuda1")
    read_environment({"THEANO_FLAGS": "device=cpu", "THEANORC": ""}, config)
    assert config._target.device == "cpu"


def test_devices_that_cannot_be_used(
    config: TheanoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(name: str) -> None:
        raise DeviceUnavailable(f"there is no {name}")

    monkeypatch.setattr(devices, "_start", unavailable)
    before = devices.set_driver("cuda0", None)
    with pytest.warns(UserWarning, match="on the CPU, as there is no cuda0"):
        config.device = "cuda"
    assert config.device == config._target.device == "cpu"
    config.force_device = True
    with pytest.raises(DeviceUnavailable, match="no cuda0"):
        config.device = "gpu"
    devices.set_driver("cuda0", before)
    with pytest.raises(ConfigError, match="of the kind 'opencl0'"):
        config.device = "opencl0"
    config.force_device = False
    with pytest.warns(UserWarning, match="no devices of the kind 'opencl0'"):
        config.device = "opencl0"


def test_whether_there_is_one(on_emu: Emulator) -> None:
    words = ("gpuarray.pygpu_activated", "sandbox.cuda.cuda_enabled", "sandbox.cuda.cuda_available")
    assert all(lookup(word) is True for word in words)
    assert lookup("gpuarray.dnn.dnn_available")() and lookup("sandbox.cuda.dnn.dnn_available")()
    assert lookup("gpuarray.type.list_contexts")() == [None]
    with symcomp_config.change_flags(device="cpu"):
        assert not any(lookup(word) for word in words)
        with pytest.raises(DeviceUnavailable, match=r"set theano\.config\.device"):
            lookup("gpuarray.as_gpuarray_variable")(T.fvector())


def test_use_and_contexts(on_emu: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    theano = sys.modules["theano"]
    with symcomp_config.change_flags(device="cpu"):
        lookup("gpuarray.use")(
            "emu", default_to_move_computation_to_gpu=False, move_shared_to_gpu=False,
            move_shared_float32_to_gpu=False,
        )  # fmt: skip
        assert symcomp_config.device == "cpu"
        lookup("sandbox.cuda.use")("emu")
        assert symcomp_config.device == "emu" and theano.config.device == "emu"
    monkeypatch.setattr(importlib.import_module("symcomp.compat.devices"), "contexts", [])
    lookup("gpuarray.init_dev")("emu", name="dev0")
    assert lookup("gpuarray.list_contexts")() == [None, "dev0"]
    x = T.fvector("x")
    assert x.transfer("dev0").type == DeviceType("emu", "float32", (None,))
    w = theano.shared(np.ones(2, "float32"), target="dev0")
    assert isinstance(w.get_value(return_internal_type=True), DeviceArray)
    theano.config.contexts = "dev1->emu;dev2->gpu3"
    assert devices.canonical("dev2") == "cuda3"
    theano.config.contexts = ""
    for wrong in ("dev1->cuda", "cpu->emu", "cuda->emu"):
        with pytest.raises(ValueError, match="already|cannot be another name"):
            theano.config.contexts = wrong
    with pytest.raises(ConfigError, match="name->device"):
        theano.config.contexts = "dev1"


def test_types_and_variables(on_emu: Emulator) -> None:
    kind = lookup("gpuarray.GpuArrayType")("float32", (False, True))
    assert kind == DeviceType("emu", "float32", (None, 1))
    x = kind("x")
    assert isinstance(x, lookup("gpuarray.type.GpuArrayVariable")) and x.name == "x"
    assert isinstance(x.type, lookup("gpuarray.type.GpuArrayType"))
    assert isinstance(x.type, lookup("sandbox.cuda.CudaNdarrayType"))
    vectors = lookup("sandbox.cuda.type.CudaNdarrayType")([False])
    assert vectors == DeviceType("emu", "float32", [None])
    assert not isinstance(T.fvector().type, lookup("gpuarray.GpuArrayType"))
    w = lookup("gpuarray.gpuarray_shared_constructor")(np.arange(3), name="w")
    shared = lookup("gpuarray.type.GpuArraySharedVariable")
    assert isinstance(w, shared) and isinstance(w.container.value, DeviceArray)
    assert not isinstance(symcomp.shared(np.arange(3)), shared) and not isinstance(x, shared)
    v = lookup("sandbox.cuda.var.float32_shared_constructor")(np.ones(2, "float32"))
    assert isinstance(v, lookup("sandbox.cuda.var.CudaNdarraySharedVariable"))


def test_transfers(on_emu: Emulator) -> None:
    x = T.fmatrix("x")
    basic = importlib.import_module("theano.gpuarray.basic_ops")
    there = basic.as_gpuarray_variable(x, None)
    assert isinstance(there, DeviceVariable) and basic.as_gpuarray_variable(there) is there
    assert basic.infer_context_name(x, there) == "emu" == basic.infer_context_name()
    again = basic.GpuFromHost("emu")(x)
    assert isinstance(again.owner.op, basic.GpuFromHost)
    assert basic.GpuFromHost(None) == again.owner.op
    back = basic.host_from_gpu(again)
    assert isinstance(back.owner.op, basic.HostFromGpu) and back.type == x.type
    old = importlib.import_module("theano.sandbox.cuda.basic_ops")
    row = old.gpu_contiguous(old.gpu_from_host(x.T))
    f = symcomp.function([x], [there, old.host_from_gpu(row), old.as_cuda_ndarray_variable(back)])
    value = np.arange(6, dtype="float32").reshape(2, 3)
    for found, wanted in zip(f(value), (value, value.T, value), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_cudnn(on_emu: Emulator, device: str) -> None:
    dnn = importlib.import_module("theano.gpuarray.dnn")
    rng = np.random.default_rng(0)
    x, w, g = T.ftensor4("x"), T.ftensor4("w"), T.ftensor4("g")
    values = [rng.standard_normal(s).astype("float32") for s in ((2, 4, 6, 7), (6, 2, 3, 2))]
    geometry: dict[str, Any] = {"border_mode": (1, 2), "subsample": (2, 1), "num_groups": 2}
    with symcomp_config.change_flags(device=device):
        y = dnn.dnn_conv(x, w, conv_mode="cross", algo="small", precision="float32", **geometry)
        assert isinstance(y, DeviceVariable) == (device == "emu")
        z = [
            y,
            dnn.dnn_gradinput(w, g, (2, 4, 6, 7), conv_mode="cross", **geometry),
            dnn.dnn_gradweight(x, g, (6, 2, 3, 2), conv_mode="cross", **geometry),
            dnn.dnn_pool(x, (2, 3)),
            dnn.dnn_pool(x, (2, 2), (2, 2), "average_exc_pad", (1, 0)),
        ]
        f = symcomp.function([x, w, g], z)
    plain = T.nnet.conv2d(x, w, filter_flip=False, **geometry)
    wanted = [plain, *symcomp.grad(None, [x, w], known_grads={plain: g})]
    wanted += [
        T.signal.pool.pool_2d(x, (2, 3), True, (1, 1)),
        T.signal.pool.pool_2d(x, (2, 2), True, (2, 2), (1, 0), "average_exc_pad"),
    ]
    with symcomp_config.change_flags(device="cpu"):
        h = symcomp.function([x, w, g], wanted)
    assert (device == "emu") == any(isinstance(n.op, DeviceGraph) for n in f.maker.fgraph.nodes)
    top = rng.standard_normal(plain.shape.eval({x: values[0], w: values[1]})).astype("float32")
    for found, one in zip(f(*values, top), h(*values, top), strict=True):
        np.testing.assert_allclose(np.asarray(found), one, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="'conv' or 'cross'"):
        dnn.dnn_conv(x, w, conv_mode="other")


def test_cudnn_in_three_dimensions_and_batches(on_emu: Emulator) -> None:
    dnn = importlib.import_module("theano.gpuarray.dnn")
    x, w = T.TensorType("float32", (None,) * 5)("x"), T.TensorType("float32", (None,) * 5)("w")
    a, b = T.fmatrix("a"), T.frow("b")
    normal, mean, inverse = dnn.dnn_batch_normalization_train(a, b, b)
    fixed = dnn.dnn_batch_normalization_test(a, b, b, b, b)
    z = [dnn.dnn_conv3d(x, w), dnn.dnn_pool(x, (2, 2, 2), mode="sum"), normal, mean, fixed]
    f = symcomp.function([x, w, a, b], z)
    image, kernel = np.ones((1, 2, 4, 4, 4), "float32"), np.ones((3, 2, 2, 2, 2), "float32")
    rows = np.array([[1, 2], [3, 6]], "float32")
    found = [np.asarray(one) for one in f(image, kernel, rows, np.ones((1, 2), "float32"))]
    assert found[0].shape == (1, 3, 3, 3, 3) and (found[0] == 16).all() and (found[1] == 8).all()
    np.testing.assert_allclose(found[2], [[0, 0], [2, 2]], atol=1e-3)
    np.testing.assert_allclose(found[3], [[2, 4]])
    np.testing.assert_allclose(found[4], rows, rtol=1e-3)


def test_random_streams_of_earlier_versions(on_emu: Emulator) -> None:
    streams = lookup("sandbox.cuda.rng_curand.CURAND_RandomStreams")(seed=3)
    value = streams.uniform((4, 5)).eval()
    assert value.shape == (4, 5) and (value >= 0).all() and (value < 1).all()
