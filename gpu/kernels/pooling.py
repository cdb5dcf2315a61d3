"""Pooling and its gradients: a thread for each window, or for each element of an image.

Threads of the gradients look for the windows that meet their element, so nothing is added by two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from symcomp.codegen.cuda.text import CudaKernel, named
from symcomp.codegen.functions.c_scalars import C_TYPES
from symcomp.gpu.kernels.along_axis import memory_type
from symcomp.gpu.layouts import collapse
from symcomp.gpu.planner import Operand, Planner, blocks_for, needs_wide
from symcomp.ops.windows.pooling import MaxPool, SumPool

THREADS = 256
_SPATIAL = ("count", "length", "window", "stride", "pad")


def _kernel(
    lead: int, ndim: int, arrays: int, radix: str, body: Sequence[str], wide: bool
) -> CudaKernel:
    """Return a kernel with a thread for each element along ``lead`` axes and the spatial ones.

    Parameters
    ----------
    lead, ndim : int
        The numbers of axes before the spatial ones, and of these.
    arrays : int
    radix : {"count", "length"}
        The lengths of the spatial axes that elements are of.
    body : sequence of str
        Computes element ``i``, at ``l0``, ``l1`` .. and ``p0``, ``p1`` ..
    wide : bool
    """
    integer = "int64_t" if wide else "int32_t"
    numbers = ["n", *(f"m{x}" for x in range(1, lead))]
    numbers += [f"{name}{a}" for a in range(ndim) for name in _SPATIAL]
    parameters = [f"const {integer} {name}" for name in numbers]
    parameters.append(f"const addresses<{arrays}> data")
    parameters += [f"const steps<{integer}, {arrays}> step{x}" for x in range(lead + ndim)]
    unravel = [f"{integer} rest = i;"]
    for a in range(ndim - 1, -1, -1):
        unravel.append(f"const {integer} p{a} = rest % {radix}{a}; rest /= {radix}{a};")
    for x in range(lead - 1, 0, -1):
        unravel.append(f"const {integer} l{x} = rest % m{x}; rest /= m{x};")
    unravel.append(f"const {integer} l0 = rest;")
    lines = [
        f'extern "C" __global__ void NAME({", ".join(parameters)})',
        "{",
        f"    for ({integer} i = ({integer})blockIdx.x * {THREADS} + threadIdx.x; i < n;",
        f"         i += ({integer})gridDim.x * {THREADS}) {{",
        *(f"        {line}".replace("INTEGER", integer) for line in (*unravel, *body)),
        "    }",
        "}",
    ]
    name, text = named(lines, THREADS)
    axes = lead + ndim
    return CudaKernel(name, text, tuple(numbers), arrays, 0, axes, wide, THREADS, False)


def _at(array: int, dtype: str, lead: int, indices: Sequence[str]) -> str:
    """Return an element of an array, at ``l0`` .. and the spatial indices."""
    places = [f"l{x} * step{x}[{array}]" for x in range(lead)]
    places += [f"({one}) * step{lead + a}[{array}]" for a, one in enumerate(indices)]
    return f"*(const {memory_type(dtype)} *)(data[{array}] + {' + '.join(places)})"


def _elements_lines(ndim: int, body: Sequence[str]) -> list[str]:
    """Loop over the elements of window ``p0``, ``p1`` .. that lie in the image: ``q0``, .."""
    lines = []
    for a in range(ndim):
        lines += [
            f"const INTEGER from{a} = p{a} * stride{a} - pad{a};",
            f"const INTEGER to{a} = from{a} + window{a} < length{a} ? from{a} + window{a} "
            f": length{a};",
        ]
    for a in range(ndim):
        first = f"from{a} > 0 ? from{a} : 0"
        lines.append(f"for (INTEGER q{a} = {first}; q{a} < to{a}; q{a}++)")
    return [*lines, "{", *(f"    {line}" for line in body), "}"]


def _windows_lines(ndim: int, body: Sequence[str]) -> list[str]:
    """Loop over the windows that element ``p0``, ``p1`` .. of the image is in: ``q0``, .."""
    lines = []
    for a in range(ndim):
        lines += [
            f"const INTEGER last{a} = (p{a} + pad{a}) / stride{a};",
            f"const INTEGER early{a} = p{a} + pad{a} - window{a};",
            f"const INTEGER from{a} = early{a} < 0 ? 0 : early{a} / stride{a} + 1;",
            f"const INTEGER to{a} = last{a} < count{a} ? last{a} + 1 : count{a};",
        ]
    for a in range(ndim):
        lines.append(f"for (INTEGER q{a} = from{a}; q{a} < to{a}; q{a}++)")
    return [*lines, "{", *(f"    {line}" for line in body), "}"]


def _position(names: Sequence[str]) -> str:
    """Return the number of an element of an image, along its spatial axes."""
    found = f"(int64_t)({names[0]})"
    for a, name in enumerate(names[1:], 1):
        found = f"({found} * length{a} + ({name}))"
    return found


@cache
def max_kernel(
    dtype: str, lead: int, ndim: int, wide: bool, positions: bool = True
) -> CudaKernel:
    """Return the kernel that finds the largest element of each window.

    Its arrays are the image, the results and, with ``positions``, the positions of these.
    """
    t, indices = C_TYPES[dtype], [f"q{a}" for a in range(ndim)]
    kind = np.dtype(dtype)
    lowest = {"f": "-INFINITY", "i": f"INT{8 * kind.itemsize}_MIN", "u": "0"}[kind.kind]
    clipped = [
        f"p{a} * stride{a} < pad{a} ? 0 : p{a} * stride{a} - pad{a}" for a in range(ndim)
    ]  # the first elements of windows, which the upper end of an image does not cut
    first = [f"int64_t where = {_position(clipped)};"] if positions else []
    found = [f"    where = {_position(indices)};"] if positions else []
    body = [
        f"{t} largest = ({t}){lowest};",
        *first,
        *_elements_lines(
            ndim,
            [
                f"const {t} x = ({t}){_at(0, dtype, lead, indices)};",
                "if (!(x <= largest) & (largest == largest)) {",
                "    largest = x;",
                *found,
                "}",
            ],
        ),
        f"(({memory_type(dtype)} *)data[1])[i] = ({memory_type(dtype)})largest;",
        *(["((int64_t *)data[2])[i] = where;"] if positions else []),
    ]
    return _kernel(lead, ndim, 2 + positions, "count", body, wide)


@cache
def sum_kernel(dtype: str, lead: int, ndim: int, wide: bool) -> CudaKernel:
    """Return the kernel that adds up windows; its arrays are the image, factors and the results."""
    t, indices = C_TYPES[dtype], [f"q{a}" for a in range(ndim)]
    factor = _at(1, _factor_dtype(dtype), lead, [f"p{a}" for a in range(ndim)])
    body = [
        f"{t} total = 0;",
        *_elements_lines(
            ndim, [f"total = ({t})(total + ({t}){_at(0, dtype, lead, indices)});"]
        ),
        f"(({memory_type(dtype)} *)data[2])[i] = ({memory_type(dtype)})(total * {factor});",
    ]
    return _kernel(lead, ndim, 3, "count", body, wide)


def _factor_dtype(dtype: str) -> str:
    return "float32" if dtype == "float16" else dtype


@cache
def spread_kernel(dtype: str, lead: int, ndim: int, wide: bool) -> CudaKernel:
    """Return the adjoint of ``sum_kernel``: its arrays are the gradient of the results, factors and
    the gradient of the image.
    """
    t, indices = C_TYPES[dtype], [f"q{a}" for a in range(ndim)]
    factor = _at(1, _factor_dtype(dtype), lead, indices)
    body = [
        f"{t} total = 0;",
        *_windows_lines(
            ndim, [f"total = ({t})(total + ({t}){_at(0, dtype, lead, indices)} * {factor});"]
        ),
        f"(({memory_type(dtype)} *)data[2])[i] = ({memory_type(dtype)})total;",
    ]
    return _kernel(lead, ndim, 3, "length", body, wide)


@cache
def unpool_kernel(dtype: str, lead: int, ndim: int, wide: bool) -> CudaKernel:
    """Return the adjoint of ``max_kernel``: its arrays are the gradient of the results, positions,
    and the gradient of the image.
    """
    t, indices = C_TYPES[dtype], [f"q{a}" for a in range(ndim)]
    body = [
        f"const int64_t own = {_position([f'p{a}' for a in range(ndim)])};",
        f"{t} total = 0;",
        *_windows_lines(
            ndim,
            [
                f"if ({_at(1, 'int64', lead, indices)} == own)",
                f"    total = ({t})(total + ({t}){_at(0, dtype, lead, indices)});",
            ],
        ),
        f"(({memory_type(dtype)} *)data[2])[i] = ({memory_type(dtype)})total;",
    ]
    return _kernel(lead, ndim, 3, "length", body, wide)


def _launch(
    planner: Planner, which: str, pool: MaxPool | SumPool, lengths: Sequence[int],
    given: Sequence[Operand], made: Sequence[Operand],
) -> None:  # fmt: skip
    """Emit a kernel; results are in C order, inputs of the rank of results, or of fewer axes."""
    result, ndim = made[0], pool.ndim
    if result.size == 0:
        return
    cut = result.ndim - ndim
    strides = [(*(0,) * (result.ndim - x.ndim), *x.strides) for x in given]
    lead, rows = collapse(range(cut), result.shape, [row[:cut] for row in strides])
    spatial = [[row[cut + a] for row in strides] for a in range(ndim)]
    steps = [[row[x] for row in rows] for x in range(len(lead))] + spatial
    steps = [[*row, *(0,) * len(made)] for row in steps]
    numbers = [result.size, *lead[1:]]
    for a, n in enumerate(lengths):
        numbers += [pool.count(a, n), n, pool.window[a], pool.strides[a], pool.padding[a]]
    reach = [n + k + s for n, k, s in zip(lengths, pool.window, pool.strides, strict=True)]
    wide = needs_wide([*numbers, *reach], [*given, *made])
    kernel = _KERNELS[which](made[0].dtype, len(lead), ndim, wide)
    blocks = [blocks_for(result.size, THREADS)]
    planner.launch(kernel, blocks, numbers, [*given, *made], steps)


_KERNELS: dict[str, Callable[[str, int, int, bool], CudaKernel]] = {
    "max": max_kernel, "largest": partial(max_kernel, positions=False), "sum": sum_kernel,
    "spread": spread_kernel, "unpool": unpool_kernel,
}  # fmt: skip


def plan_max(
    planner: Planner, pool: MaxPool, x: Operand, positions: bool
) -> tuple[Operand, Operand]:
    """Emit max-pooling; return the largest elements and their positions, which are written only
    where these are needed.
    """
    lengths = x.shape[x.ndim - pool.ndim :]
    shape = (*x.shape[: x.ndim - pool.ndim], *pool.counts(lengths))
    z, where = planner.new(x.dtype, shape), planner.new("int64", shape)
    if positions:
        _launch(planner, "max", pool, lengths, [x], [z, where])
    else:
        _launch(planner, "largest", pool, lengths, [x], [z])
    return z, where


def plan_unpool(
    planner: Planner, pool: MaxPool, g: Operand, where: Operand, lengths: Sequence[int]
) -> Operand:
    """Emit the gradient of max-pooling, from that of the results and the positions."""
    z = planner.new(g.dtype, [*where.shape[: where.ndim - pool.ndim], *lengths])
    _launch(planner, "unpool", pool, lengths, [g, where], [z])
    return z


def _factors(planner: Planner, pool: SumPool, dtype: str, lengths: Sequence[int]) -> Operand:
    """Return the factors of windows as a constant: one for all, where they are equal."""
    found = pool.factors(lengths, _factor_dtype(dtype))
    if found.size and (found == found.flat[0]).all():
        found = found.reshape(-1)[:1].reshape(())
    factors = planner.constant(found)
    if not found.ndim:
        return factors.view(pool.counts(lengths), (0,) * pool.ndim)
    return factors


def plan_sum(planner: Planner, pool: SumPool, x: Operand) -> Operand:
    """Emit pooling by sums or means."""
    lengths = x.shape[x.ndim - pool.ndim :]
    z = planner.new(x.dtype, [*x.shape[: x.ndim - pool.ndim], *pool.counts(lengths)])
    factors = _factors(planner, pool, x.dtype, lengths)
    _launch(planner, "sum", pool, lengths, [x, factors], [z])
    return z


def plan_spread(planner: Planner, pool: SumPool, g: Operand, lengths: Sequence[int]) -> Operand:
    """Emit the gradient of pooling by sums or means, from that of the results."""
    z = planner.new(g.dtype, [*g.shape[: g.ndim - pool.ndim], *lengths])
    factors = _factors(planner, pool, g.dtype, lengths)
    _launch(planner, "spread", pool, lengths, [g, factors], [z])
    return z
