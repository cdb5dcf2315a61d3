"""Modes that look at values, of loops and of functions with loops."""

from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.debugmode import DebugMode
from symcomp.compile.monitormode import MonitorMode
from symcomp.compile.nanguardmode import NanGuardError, NanGuardMode

X = np.array([0.0, 1.0, 2.0])
LINKERS = ("cvm", "vm")


class Seen:
    """A monitor that keeps what it sees."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any], list[Any]]] = []

    def __call__(self, i: int, node: Any, fn: Any) -> None:
        inputs, outputs = ([np.array(c[0]) for c in cells] for cells in (fn.inputs, fn.outputs))
        self.calls.append((str(node.op), inputs, outputs))

    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]


def recurrence(mode: Any = None) -> tuple[Any, Any]:
    """h[t] = cosh(h[t-1]) * x[t] + 1 from 0."""
    x = T.dvector("x")
    h, _ = symcomp.scan(lambda row, h: T.cosh(h) * row + 1, x, T.constant(0.0), mode=mode)
    return x, h


WANTED = [1.0, np.cosh(1.0) + 1, np.cosh(np.cosh(1.0) + 1) * 2 + 1]


@pytest.mark.parametrize("linker", LINKERS)
def test_a_monitor_of_a_loop_sees_its_steps_alone(linker: str) -> None:
    seen = Seen()
    x, h = recurrence(MonitorMode(post_func=seen).excluding("fusion"))
    f = symcomp.function([x], h * 3, mode=symcomp.Mode(linker=linker))
    np.testing.assert_allclose(f(X) / 3, WANTED)
    assert seen.names() == ["cosh", "mul", "add"] * 3
    np.testing.assert_allclose([out[0] for _, _, out in seen.calls[2::3]], WANTED)
    np.testing.assert_allclose([given[0] for _, given, _ in seen.calls[::3]], [0, *WANTED[:2]])
    gradient = symcomp.function([x], symcomp.grad(h[-1], x))
    before = len(seen.calls)
    gradient(X)
    assert len(seen.calls) > before


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("optimizer", ["fast_run", "fast_compile"])
def test_a_monitor_of_a_function_sees_loops_rewritten_as_its_mode_says(
    linker: str, optimizer: str
) -> None:
    seen = Seen()
    x, h = recurrence()
    mode = MonitorMode(post_func=seen, optimizer=optimizer, linker=linker)
    symcomp.function([x], h, mode=mode.excluding("fusion"))(X)
    steps = [name for name in seen.names() if name in ("cosh", "mul", "add")]
    assert steps == ["cosh", "mul", "add"] * 3
    seen.calls.clear()
    op = symcomp.OpFromGraph([x], [T.cosh(x) * x])
    f = symcomp.function([x], op(x), mode=mode.excluding("fusion"))
    np.testing.assert_allclose(f(X), np.cosh(X) * X)
    assert seen.names()[:2] == ["cosh", "mul"]


def test_both_monitors_see_a_step_and_one_sees_it_once() -> None:
    of_loop, of_function = Seen(), Seen()
    loops = MonitorMode(post_func=of_loop)
    x, h = recurrence(loops)
    symcomp.function([x], h, mode=MonitorMode(post_func=of_function))(X)
    assert len(of_loop.calls) == 3 and len(of_function.calls) > 3
    of_loop.calls.clear()
    symcomp.function([x], h, mode=loops)(X)
    assert sum("cosh" in name for name in of_loop.names()) == 3


@pytest.mark.parametrize("linker", LINKERS)
def test_what_a_monitor_puts_in_the_place_of_a_result(linker: str) -> None:
    """Also a NumPy scalar, as arithmetic with arrays without axes gives."""

    def doubled(i: int, node: Any, fn: Any) -> None:
        if str(node.op) == "cosh":
            fn.outputs[0][0] = fn.outputs[0][0] * 2

    mode = MonitorMode(post_func=doubled, linker=linker).excluding("fusion")
    for of_loop, of_function in ((mode, symcomp.Mode(linker=linker)), (None, mode)):
        x, h = recurrence(of_loop)
        found = symcomp.function([x], h, mode=of_function)(X)
        wanted = [1.0, 2 * np.cosh(1.0) + 1]
        np.testing.assert_allclose(found, [*wanted, 4 * np.cosh(wanted[1]) + 1])

    def of_another_type(i: int, node: Any, fn: Any) -> None:
        fn.outputs[0][0] = "no number"

    x, h = recurrence(MonitorMode(post_func=of_another_type))
    with pytest.raises(TypeError):
        symcomp.function([x], h)(X)


def test_other_checking_modes_of_loops() -> None:
    x = T.dvector("x")
    step = lambda row, h: T.log(h) * row  # noqa: E731
    y, _ = symcomp.scan(step, x, T.constant(-1.0), mode=NanGuardMode())
    with pytest.raises(NanGuardError, match="NaN"):
        symcomp.function([x], y)(X)
    y, _ = symcomp.scan(step, x, T.constant(2.0), mode=DebugMode())
    np.testing.assert_allclose(symcomp.function([x], y)([1.0]), [np.log(2.0)])
