"""Theano's names for GPUs: `theano.gpuarray`, and `theano.sandbox.cuda` of earlier versions.

Contexts are devices. Classes of ops for GPUs that programs look for in graphs have no instances: a
region of a graph is one op here, a DeviceGraph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import symcomp.tensor as T
from symcomp.compat import config as options
from symcomp.compat.missing import Adapted, Described, Live
from symcomp.compile.shared import SharedVariable, shared
from symcomp.config import config
from symcomp.core.tensor import TensorVariable
from symcomp.gpu.driver.devices import driver_of, name_device
from symcomp.gpu.errors import DeviceUnavailable
from symcomp.gpu.transfers import ToDevice, ToHost, to_gpu
from symcomp.gpu.type import DeviceConstant, DeviceType, DeviceVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.shapes.contiguous import Contiguous
from symcomp.sandbox import rng_mrg
from symcomp.tensor.signal import pool

#: The names of contexts that `init_dev` gave.
contexts: list[str] = []


def device_of(context_name: Any = None) -> str:
    """Return the device of a context; None stands for the device of the configuration.

    Raises
    ------
    DeviceUnavailable
        If that is the CPU.
    """
    if context_name is not None:
        return str(options.device_of(str(context_name)) or context_name)
    if config.device == "cpu":
        raise DeviceUnavailable(
            "there is no GPU in use: set theano.config.device (or THEANO_FLAGS=device=) to cuda0, "
            "or to emu, the emulator"
        )
    return config.device


def is_in_use() -> bool:
    """Return whether computations go to a device."""
    return config.device != "cpu"


def use(
    device: str,
    force: bool = False,
    default_to_move_computation_to_gpu: bool = True,
    move_shared_to_gpu: bool = True,
    **more: Any,
) -> None:
    """Use a device from now on; or only start it, if nothing is to be moved there.

    Parameters
    ----------
    device : str
        "cuda", "cuda0", .., "gpu", "gpu0", .. or "emu".
    force : bool
        Raise if it cannot be used; else this is a warning.
    """
    moves = default_to_move_computation_to_gpu or more.get("move_shared_float32_to_gpu", True)
    if moves or move_shared_to_gpu:
        options.config.use(device, force)
    else:
        driver_of(device_of(device))


def init_dev(device: str, name: str | None = None, **more: Any) -> None:
    """Start a device; ``name`` stands for it from now on, in `transfer`, `target` and types."""
    driver = driver_of(device_of(device))
    if name:
        name_device(name, driver.name)
        contexts.append(name)


def list_contexts() -> list[str | None]:
    """Return the names of contexts: None for the device of the configuration, and own ones."""
    found: list[str | None] = [None] if is_in_use() else []
    return [*found, *contexts]


def infer_context_name(*variables: Any) -> str:
    """Return the device that one of the variables is on; else that of the configuration."""
    found = _device_among(variables)
    return device_of() if found is None else found


def _device_among(variables: Sequence[Any]) -> str | None:
    types = [getattr(v, "type", None) for v in variables]
    return next((kind.device for kind in types if isinstance(kind, DeviceType)), None)


def gpu_array_type(
    dtype: Any, broadcastable: Sequence[bool] = (), context_name: Any = None, name: Any = None
) -> DeviceType:
    """Return the type of arrays on a device."""
    return DeviceType(device_of(context_name), dtype, [1 if one else None for one in broadcastable])


def cuda_ndarray_type(broadcastable: Sequence[bool], name: Any = None) -> DeviceType:
    """Return the type of float32 arrays on the device."""
    return gpu_array_type("float32", broadcastable)


def as_gpuarray_variable(x: Any, context_name: Any = None) -> Any:
    """Return a value as a variable on a device."""
    if context_name is None and isinstance(x, DeviceVariable):
        return x
    x = x if isinstance(x, DeviceVariable) else as_tensor_variable(x)
    return to_gpu(x, device_of(context_name))


def gpuarray_shared_constructor(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    broadcastable: Any = None,
    target: Any = None,
) -> SharedVariable:
    """Return a shared variable that lives on a device."""
    found: SharedVariable = shared(
        value, name, strict, allow_downcast, borrow=borrow, broadcastable=broadcastable,
        device=device_of(target),
    )  # fmt: skip
    return found


def gpu_contiguous(x: Any) -> Any:
    """Return an array on the device in C order."""
    return to_gpu(Contiguous()(as_tensor_variable(x)), infer_context_name(x))


def _where_used(result: TensorVariable, *inputs: Any) -> Any:
    """Return a result on the device of its inputs, or on that of the configuration."""
    device = _device_among(inputs) or (config.device if is_in_use() else None)
    return result if device is None else to_gpu(result, device)


# -- cuDNN's functions, computed by the kernels of symcomp; with device=cpu by the CPU


def _geometry(
    border_mode: Any, subsample: Any, dilation: Any, conv_mode: str, num_groups: int, ndim: int
) -> dict[str, Any]:
    if conv_mode not in ("conv", "cross"):
        raise ValueError(f"dnn_conv: conv_mode is {conv_mode!r}; 'conv' or 'cross' is needed")
    ones = (1,) * ndim
    return {
        "border_mode": border_mode,
        "subsample": ones if subsample is None else subsample,
        "filter_dilation": ones if dilation is None else dilation,
        "filter_flip": conv_mode == "conv",
        "num_groups": num_groups,
    }


def _convolution(ndim: int) -> Callable[..., Any]:
    function = getattr(T.nnet, f"conv{ndim}d")

    def dnn_conv(
        img: Any, kerns: Any, border_mode: Any = "valid", subsample: Any = None,
        dilation: Any = None, conv_mode: str = "conv", direction_hint: Any = None,
        workmem: Any = None, algo: Any = None, precision: Any = None, num_groups: int = 1,
    ) -> Any:  # fmt: skip
        """Convolve images with kernels; hints for cuDNN have no effect."""
        given = _geometry(border_mode, subsample, dilation, conv_mode, num_groups, ndim)
        return _where_used(function(img, kerns, **given), img, kerns)

    return dnn_conv


def _gradient(ndim: int, which: str) -> Callable[..., Any]:
    function = getattr(T.nnet.abstract_conv, f"conv{ndim}d_grad_wrt_{which}")

    def dnn_gradient(
        first: Any, topgrad: Any, shape: Any, border_mode: Any = "valid", subsample: Any = None,
        dilation: Any = None, conv_mode: str = "conv", precision: Any = None, algo: Any = None,
        num_groups: int = 1,
    ) -> Any:  # fmt: skip
        """Return the gradient in images (from kernels), or in kernels (from images)."""
        given = _geometry(border_mode, subsample, dilation, conv_mode, num_groups, ndim)
        pair = (topgrad, first) if which == "inputs" else (first, topgrad)
        return _where_used(function(*pair, shape, **given), first, topgrad)

    return dnn_gradient


def dnn_pool(
    img: Any, ws: Any, stride: Any = None, mode: str = "max", pad: Any = None
) -> Any:
    """Pool images; steps are 1 unless they are given."""
    ndim = len(ws)
    function = pool.pool_2d if ndim == 2 else pool.pool_3d
    stride, pad = stride or (1,) * ndim, pad or (0,) * ndim
    return _where_used(function(img, ws, True, stride, pad, mode), img)


def dnn_batch_normalization_train(
    inputs: Any, gamma: Any, beta: Any, mode: str = "per-activation", epsilon: float = 1e-4,
    running_average_factor: float = 0.1, running_mean: Any = None, running_var: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Normalize by the batch's mean and variance; see ``T.nnet.bn.batch_normalization_train``."""
    found = T.nnet.bn.batch_normalization_train(
        inputs, gamma, beta, mode, epsilon, running_average_factor, running_mean, running_var
    )
    return tuple(_where_used(one, inputs) for one in found)


def dnn_batch_normalization_test(
    inputs: Any, gamma: Any, beta: Any, mean: Any, var: Any, mode: str = "per-activation",
    epsilon: float = 1e-4,
) -> Any:  # fmt: skip
    """Normalize by a given mean and variance; see ``T.nnet.bn.batch_normalization_test``."""
    found = T.nnet.bn.batch_normalization_test(inputs, gamma, beta, mean, var, mode, epsilon)
    return _where_used(found, inputs)


def dnn_available(context_name: Any = None) -> bool:
    """Return whether a device is in use: symcomp's kernels stand for cuDNN's."""
    return is_in_use() or context_name is not None


# -- namespaces

_HOST_FROM_GPU = ToHost()
_FROM_HOST = Adapted(
    "theano.gpuarray.basic_ops.GpuFromHost",
    ToDevice,
    lambda context_name=None: ToDevice(device_of(context_name)),
)
_TYPES: Mapping[str, Any] = {
    "GpuArrayConstant": DeviceConstant,
    "GpuArraySharedVariable": Described(
        "theano.gpuarray.type.GpuArraySharedVariable",
        lambda x: isinstance(x, SharedVariable) and isinstance(x.container.type, DeviceType),
    ),
    "GpuArrayType": Adapted("theano.gpuarray.type.GpuArrayType", DeviceType, gpu_array_type),
    "GpuArrayVariable": DeviceVariable,
    "gpuarray_shared_constructor": gpuarray_shared_constructor,
    "list_contexts": list_contexts,
}
_OPS: Mapping[str, Any] = {
    "as_gpuarray_variable": as_gpuarray_variable,
    "gpu_contiguous": gpu_contiguous,
    "gpu_from_host": _FROM_HOST,
    "GpuFromHost": _FROM_HOST,
    "GpuToGpu": _FROM_HOST,
    "host_from_gpu": _HOST_FROM_GPU,
    "HostFromGpu": Adapted("theano.gpuarray.basic_ops.HostFromGpu", ToHost, ToHost),
    "infer_context_name": infer_context_name,
}
_DNN: Mapping[str, Any] = {
    "dnn_available": dnn_available,
    "dnn_batch_normalization_test": dnn_batch_normalization_test,
    "dnn_batch_normalization_train": dnn_batch_normalization_train,
    "dnn_conv": _convolution(2),
    "dnn_conv2d": _convolution(2),
    "dnn_conv3d": _convolution(3),
    "dnn_gradinput": _gradient(2, "inputs"),
    "dnn_gradinput3d": _gradient(3, "inputs"),
    "dnn_gradweight": _gradient(2, "weights"),
    "dnn_gradweight3d": _gradient(3, "weights"),
    "dnn_pool": dnn_pool,
    "dnn_present": dnn_available,
}
_GPUARRAY = {"init_dev": init_dev, "pygpu_activated": Live(is_in_use), "use": use, **_TYPES}
_CUDA_TYPES = {
    "CudaNdarrayConstant": DeviceConstant,
    "CudaNdarraySharedVariable": _TYPES["GpuArraySharedVariable"],
    "CudaNdarrayType": Adapted(
        "theano.sandbox.cuda.CudaNdarrayType", DeviceType, cuda_ndarray_type
    ),
    "CudaNdarrayVariable": DeviceVariable,
    "float32_shared_constructor": gpuarray_shared_constructor,
}
_CUDA_OPS = {
    "as_cuda_ndarray_variable": as_gpuarray_variable,
    "gpu_contiguous": gpu_contiguous,
    "gpu_from_host": as_gpuarray_variable,
    "GpuFromHost": _FROM_HOST,
    "host_from_gpu": _HOST_FROM_GPU,
    "HostFromGpu": _OPS["HostFromGpu"],
}
_STREAMS = Adapted(
    "theano.sandbox.cuda.rng_curand.CURAND_RandomStreams",
    rng_mrg.MRG_RandomStreams,
    lambda seed=12345: rng_mrg.MRG_RandomStreams(seed),
)
#: The names of modules, by module.
DEVICES: dict[str, Mapping[str, Any]] = {
    "theano.gpuarray": {**_GPUARRAY, "as_gpuarray_variable": as_gpuarray_variable},
    "theano.gpuarray.basic_ops": _OPS,
    "theano.gpuarray.dnn": _DNN,
    "theano.gpuarray.type": _TYPES,
    "theano.sandbox.cuda": {
        "cuda_available": Live(is_in_use),
        "cuda_enabled": Live(is_in_use),
        "use": use,
        **_CUDA_TYPES,
        **_CUDA_OPS,
    },
    "theano.sandbox.cuda.basic_ops": _CUDA_OPS,
    "theano.sandbox.cuda.dnn": _DNN,
    "theano.sandbox.cuda.rng_curand": {"CURAND_RandomStreams": _STREAMS},
    "theano.sandbox.cuda.type": {"CudaNdarrayType": _CUDA_TYPES["CudaNdarrayType"]},
    "theano.sandbox.cuda.var": _CUDA_TYPES,
    "theano.sandbox.gpuarray": _GPUARRAY,
}
