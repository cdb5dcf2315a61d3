"""The examples of the processor's native operations, on the device: examples without a kernel there
are named here, and in the documentation.

On the emulator they run lazily, in three orders of the threads. `make gpu-emu` runs each by itself,
with more dtypes and layouts.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import symcomp
from symcomp import gpu
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.errors import SymcompError
from symcomp.gpu.driver.devices import driver_of
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.transfers import DevicePart, ToDevice, ToHost, ToHostTogether
from symcomp.tests.cvm.examples import EXAMPLES, LINES, MOVES, NUMBERS, PRODUCTS, SCALARS
from symcomp.tests.gpu.running import DEVICE, UNITS, assert_close
from symcomp.tests.repository import ROOT

IS_LONG = bool(os.environ.get("SYMCOMP_ALL_ARCHS"))
GROUPS = {
    "moves": MOVES, "numbers": NUMBERS, "lines": LINES, "scalars": SCALARS, "products": PRODUCTS,
}  # fmt: skip
# Examples with some operation that stays on the host, by the words of docs/gpu.md about it.
ON_HOST = {
    "numbers from lengths": ["shape", "alloc_scalar", "zeros_like"],
    "`arange`": [
        "repeat_each", "arange", "arange_floats", "linspace", "eye", "tri", "tril_indices", "mgrid",
    ],
    "checks of values": [
        "choose", "unravel_index", "ravel_multi_index", "bincount", "crossentropy",
    ],
    "reading at a mask": ["mask", "compress"],
    "`nonzero`": ["nonzero"],
    "`unique`": ["unique"],
    "functions without C": ["gamma", "bessel"],
}  # fmt: skip
NAMES_ON_HOST = {name for names in ON_HOST.values() for name in names}
# A part of an array on a device is a view of it.
ANYWHERE = (DeviceGraph, DevicePart, ToDevice, ToHost, ToHostTogether)


def inputs_of(values: Sequence[Any]) -> list[Any]:
    """Return variables for the values, whose lengths are known where they are 1."""
    shapes = [[1 if n == 1 else None for n in v.shape] for v in values]
    return [
        TensorType(v.dtype, shape)(f"x{i}")
        for i, (v, shape) in enumerate(zip(values, shapes, strict=True))
    ]


def as_list(outputs: Any) -> list[Any]:
    return [*outputs] if isinstance(outputs, list | tuple) else [outputs]


def compare(
    builds: Sequence[Callable[..., Any]], values: Sequence[Sequence[Any]], layouts: Sequence[Any]
) -> Any:
    """Compare what the device computes with what the processor does; return the function.

    Parameters
    ----------
    builds : sequence of callable
        Of examples: their outputs are those of one function.
    values : sequence of sequence of ndarray
        The inputs of each.
    layouts : sequence of callable
        What makes other arrays of the values.
    """
    inputs = [inputs_of(given) for given in values]
    everything = [x for xs in inputs for x in xs]
    outputs = [z for build, xs in zip(builds, inputs, strict=True) for z in as_list(build(*xs))]
    plain = symcomp.function(everything, outputs)
    with config.change_flags(device=DEVICE):
        there = [[gpu.to_gpu(x, DEVICE) for x in xs] for xs in inputs]
        outputs = [z for build, xs in zip(builds, there, strict=True) for z in as_list(build(*xs))]
        moved = symcomp.function(everything, outputs)
    flat = [v for given in values for v in given]
    wanted = [np.asarray(z) for z in plain(*flat)]
    driver = driver_of(DEVICE)
    for layout in layouts:
        given = [layout(v) for v in flat]
        for order in ORDERS if isinstance(driver, Emulator) else (0,):
            if isinstance(driver, Emulator):
                driver.order = order
            for found, want in zip(moved(*given), wanted, strict=True):
                assert_close(np.asarray(found), want, UNITS)
    return moved


def unchanged(value: Any) -> Any:
    return value


def in_dtype(values: Sequence[Any], dtype: str) -> list[Any]:
    return [v.astype(dtype) if v.dtype.kind == "f" else v for v in values]


def left(f: Any) -> set[str]:
    """Return the names of the classes of the ops on the host."""
    nodes = f.maker.fgraph.toposort()
    return {type(n.op).__name__ for n in nodes if not isinstance(n.op, ANYWHERE)}


@pytest.mark.parametrize("group", GROUPS)
def test_together(emu: Driver, group: str) -> None:
    """All of a group in one function, whose kernels are compiled together."""
    examples = [example for name, example in GROUPS[group].items() if name not in NAMES_ON_HOST]
    values = [in_dtype(given, "float32") for _, given in examples]
    assert not left(compare([build for build, _ in examples], values, [unchanged]))


def test_what_stays_on_the_host_is_documented() -> None:
    page = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    right = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")]
    assert [words for words in ON_HOST if not any(words in cell for cell in right)] == []
    assert NAMES_ON_HOST <= {*EXAMPLES}


def turned(value: Any) -> Any:
    return np.array(value, order="F")


def backwards(value: Any) -> Any:
    return value[::-1].copy()[::-1] if value.ndim else value


def apart(value: Any) -> Any:
    """Return a view of every third element of longer lines, from the second on."""
    if not value.ndim:
        return value
    longer = np.repeat(value, 3, -1)
    return longer[..., 1::3]


@pytest.mark.skipif(not IS_LONG, reason="`make gpu-emu` runs each example by itself")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", EXAMPLES if IS_LONG else ["arithmetic"])
def test_each(emu: Driver, name: str, dtype: str) -> None:
    build, values = EXAMPLES[name]
    given = in_dtype(values, dtype)
    try:
        symcomp.function(xs := inputs_of(given), build(*xs))
    except (SymcompError, TypeError):
        pytest.skip("not for this dtype")
    rest = left(compare([build], [given], [unchanged, turned, backwards, apart]))
    assert bool(rest) <= (name in NAMES_ON_HOST), rest
