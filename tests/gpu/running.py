"""Expressions computed on the emulator, in several orders of threads, beside the processor."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import symcomp
from symcomp.codegen.cuda.text import CudaKernel
from symcomp.config import config
from symcomp.core.walk import toposort
from symcomp.gpu.driver.devices import canonical, driver_of
from symcomp.gpu.driver.emulator import ORDERS, Emulator
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.libraries.binding import library_of
from symcomp.gpu.libraries.cublas import Cublas
from symcomp.gpu.loops import DeviceLoop
from symcomp.gpu.region import DeviceGraph

#: The device that is tested: the emulator, or a card (`make gpu`).
DEVICE = canonical(os.environ.get("SYMCOMP_TEST_DEVICE", "emu"))
# Rounding errors that algorithms with other orders of additions may differ by, in units.
UNITS = 64


def keep(kernels: Iterable[CudaKernel]) -> None:
    """Write kernels to the folder SYMCOMP_KEEP_KERNELS, if it is given: tools/gpu_kernels.py."""
    folder = os.environ.get("SYMCOMP_KEEP_KERNELS")
    for kernel in kernels if folder else ():
        path = Path(folder or "") / f"{kernel.name}.cu"
        if not path.exists():
            path.write_text(kernel.text, encoding="utf-8")


def ops_on_device(f: Any) -> list[str]:
    """Return the names of the ops in the regions of a function."""
    return [
        str(node.op)
        for region in f.maker.fgraph.toposort()
        if isinstance(region.op, DeviceGraph)
        for node in toposort(region.op.graph.outputs)
    ]


def ops_on_host(f: Any) -> list[str]:
    """Return the names of the other ops, but for copies."""
    names = [str(node.op) for node in f.maker.fgraph.toposort()]
    return [n for n in names if not n.startswith(("DeviceGraph", "ToDevice", "ToHost"))]


def products_by(driver: Driver) -> str:
    """Return which kind of work multiplies matrices."""
    return "kernel" if library_of(driver, Cublas) is None else "library"


def functions_called(call: Callable[[], Any]) -> list[str]:
    """Return the functions in Python that a call runs, but for itself."""
    found = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            found.append(f"{frame.f_code.co_filename}: {frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[1:]


def compile_both(inputs: Sequence[Any], outputs: Any, **options: Any) -> tuple[Any, Any]:
    """Compile for the processor and for the emulator."""
    plain = symcomp.function(inputs, outputs, **options)
    with config.change_flags(device=DEVICE):
        moved = symcomp.function(inputs, outputs, **options)
    assert ops_on_device(moved)
    return plain, moved


def check(
    inputs: Sequence[Any],
    outputs: Any,
    values: Sequence[Any],
    units: float = UNITS,
    orders: Sequence[int] = ORDERS,
    on_host: bool = False,
) -> Any:
    """Compare both, relative to the largest element; return the function on the emulator.

    Parameters
    ----------
    units : float
        How many units of the dtype results may differ by; 0: not at all.
    on_host : bool
        Whether some of it may stay on the host.
    """
    plain, moved = compile_both(inputs, outputs)
    assert on_host or not ops_on_host(moved), ops_on_host(moved)
    driver = driver_of(DEVICE)
    if not isinstance(driver, Emulator):
        orders = [0, 0]
    wanted = plain(*values)
    wanted = wanted if isinstance(wanted, list) else [wanted]
    first = None
    for order in orders:
        if isinstance(driver, Emulator):
            driver.order = order
        found = moved(*values)
        found = found if isinstance(found, list) else [found]
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, units)
        # The order of threads changes no bits.
        assert first is None or all(map(_same, first, found))
        first = found
    return moved


def _same(x: Any, y: Any) -> bool:
    return x.tobytes() == y.tobytes()


def assert_close(found: Any, wanted: Any, units: float, label: str = "") -> None:
    """Compare two arrays, whose dtypes and shapes must be equal."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind not in "fc" or not units:
        np.testing.assert_array_equal(found, wanted, label)
        return
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.max()) if finite.size else 0.0
    bound = units * float(np.finfo(found.dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound * scale, err_msg=label)


def array(*shape: int, dtype: str = "float32") -> Any:
    """Return numbers like random ones, which follow from the shape."""
    rng = np.random.default_rng([7, *shape])
    return (rng.standard_normal(shape) * 0.5).astype(dtype)


def loops(f: Any) -> list[Any]:
    """Return the loops in the regions of a function, those in loops included."""
    found = []
    regions = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, DeviceGraph)]
    graphs = [op.graph.outputs for op in regions]
    while graphs:
        inside = [n.op for n in toposort(graphs.pop()) if isinstance(n.op, DeviceLoop)]
        found += inside
        graphs += [op.body.outputs for op in inside]
    return found


def check_loops(inputs: Any, outputs: Any, values: Any, units: float = UNITS) -> Any:
    """Compare functions whose loops must all be on the device."""
    f = check(inputs, outputs, values, units, on_host=True)
    assert loops(f) and not any(name.startswith("scan") for name in ops_on_host(f)), ops_on_host(f)
    return f
