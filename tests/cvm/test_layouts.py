"""A plan is repeated only where all that it relies on is as it was: layouts of inputs in turn.

Results are held over all calls, and compared with those of the Python machine, in one thread and in
several.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse

N = 4


def unaligned(x: Any) -> Any:
    """Return a copy whose elements begin at an odd address."""
    memory = np.zeros(x.nbytes + 1, np.uint8)
    found = memory[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def read_only(x: Any) -> Any:
    found = x.copy()
    found.flags.writeable = False
    return found


#: The properties that a plan may rely on, each in ways that differ from the one before.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C order": lambda x: x.copy(),
    "F order": np.asfortranarray,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "both backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda x: x.T.copy().T,
    "wide rows": lambda x: np.pad(x, ((0, 0), (0, 3)))[:, : x.shape[1]],
    "repeated row": lambda x: np.broadcast_to(x[:1], x.shape),
    "repeated element": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "unaligned": unaligned,
    "other bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": read_only,
    "another shape": lambda x: np.vstack([x, x]),
    "one row": lambda x: x[:1].copy(),
    "no row": lambda x: x[:0].copy(),
}


def program(x: Any, y: Any, w: Any) -> list[Any]:
    """Views, kernels, a product, a branch, a length that is read, a loop."""
    total = ifelse(T.gt(x.sum(), 0), T.exp(x / 8).sum(), (x * x).sum())
    rows, _ = symcomp.scan(lambda row, s: 0.5 * s + row, x, T.zeros(x.shape[1]))
    positive = x[:, 0].nonzero()[0]
    return [x.T[::2] + 1, T.dot(x, w) - y.sum(0), total, rows, x[positive], x]


def functions(dtype: str) -> list[symcomp.Function]:
    x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
    w = symcomp.shared(np.arange(N * N, dtype=dtype).reshape(N, N) / 8, name="w")
    outputs = program(x, y, w)
    with symcomp.config.change_flags(kernels=True):
        modes = [symcomp.Mode(name) for name in ("cvm", "vm")]
        return [symcomp.function([x, y], outputs, mode=mode) for mode in modes]


def assert_same(found: list[Any], wanted: list[Any], dtype: str) -> None:
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def arguments(dtype: str) -> list[tuple[Any, Any]]:
    """Return pairs of arguments: each layout with each, and some that overlap one another."""
    base = (np.arange(3.0 * N).reshape(3, N) - 4).astype(dtype)
    pairs = [
        (first(base), second(base / 2))
        for first, second in itertools.product(LAYOUTS.values(), repeat=2)
    ]
    whole = np.vstack([base, base])
    return [*pairs, (base, base), (whole[:3], whole[1:4]), (whole[::2], whole[::-2]), pairs[0]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layouts_in_turn(dtype: str) -> None:
    native, python = functions(dtype)
    held = []
    for values in arguments(dtype):
        wanted = python(*values)
        for _ in range(2):
            held.append((native(*values), wanted))
    for found, wanted in held:
        assert_same(found, wanted, dtype)
    assert native.repeated > len(held) // 2


def test_results_and_arguments_have_memory_of_their_own() -> None:
    native, _ = functions("float64")
    value = np.ones((3, N))
    for _ in range(3):
        results = native(value, value)
        assert not any(np.shares_memory(z, value) for z in results)
        for one, other in itertools.combinations(results, 2):
            assert not np.shares_memory(one, other)
        for z in results:
            z[...] = -1
        assert (value == 1).all()


def test_arguments_that_are_the_stored_value() -> None:
    w, x = symcomp.shared(np.ones((3, N)), name="w"), T.dmatrix("x")
    f = symcomp.function([x], (x * 2).sum(), updates=[(w, w + x)])
    total = 1.0
    for own in (True, False, True, True, False):
        given = w.get_value(borrow=True) if own else np.ones((3, N))
        assert f(given) == 2 * given.sum() or own
        total = 2 * total if own else total + 1
        np.testing.assert_array_equal(w.get_value(), np.full((3, N), total))


def test_threads_with_layouts_of_their_own() -> None:
    native, python = functions("float64")
    values = arguments("float64")[::7]
    wanted = [python(*pair) for pair in values]
    failures: list[BaseException] = []

    def call(shift: int) -> None:
        order = values[shift:] + values[:shift]
        expected = wanted[shift:] + wanted[:shift]
        try:
            for _ in range(3):
                held = [native(*pair) for pair in order]
                for found, want in zip(held, expected, strict=True):
                    assert_same(found, want, "float64")
        except BaseException as problem:  # noqa: BLE001 - told by the main thread
            failures.append(problem)

    threads = [threading.Thread(target=call, args=(5 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
