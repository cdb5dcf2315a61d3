"""The checking modes name the op and the line of the user's program, however deep it is in loops,
branches, fused kernels and ops made of graphs.
"""

import linecache

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.autodiff.maprows import MapRows, map_rows
from symcomp.compile.debugmode import DebugMode
from symcomp.compile.monitormode import MonitorMode, detect_nan
from symcomp.compile.nanguardmode import NanGuardError, NanGuardMode
from symcomp.gradient import hessian, jacobian
from symcomp.ifelse import ifelse
from symcomp.vm.guard import InvalidValueError


@pytest.fixture(autouse=True, params=[True, False], ids=["kernels", "numpy"])
def kernels(request):
    with symcomp.config.change_flags(kernels=request.param):
        yield


def guilty(x):
    return T.log(x)  # the guilty line


def is_named(text):
    """Tell whether a text names the op and the line of this file that applies it."""
    lines = linecache.getlines(__file__)
    number = next(i for i, line in enumerate(lines, 1) if "# the guilty line" in line)
    return f"test_guilty.py:{number} in guilty" in text and "log" in text


x, xs, flag = T.dvector("x"), T.dmatrix("xs"), T.lscalar("flag")
ROWS = np.array([[1.0, 2.0], [-3.0, 1.0]])


def in_scan():
    states, _ = symcomp.scan(lambda s: guilty(s) * 1.5, outputs_info=[x], n_steps=4)
    return [x], states[-1], [np.array([1.5])]


def in_nested_scans():
    def outer(row, s):
        states, _ = symcomp.scan(
            lambda h: T.tanh(guilty(h) + 1.0) * row.sum(), outputs_info=[s], n_steps=2
        )
        return states[-1]

    states, _ = symcomp.scan(outer, sequences=xs, outputs_info=[x])
    return [xs, x], states, [ROWS, np.array([1.0, 2.0])]


def in_a_branch():
    return [flag, x], ifelse(flag > 0, guilty(x).sum(), T.exp(x).sum()), [1, np.array([-1.0])]


def in_a_branch_of_a_loop():
    rows, _ = symcomp.scan(lambda r: ifelse(r.sum() > 0, r * 2, guilty(r)), sequences=xs)
    return [xs], rows, [ROWS]


def in_a_graph_op():
    op = symcomp.OpFromGraph([x], [guilty(x) * 2])
    outer = symcomp.OpFromGraph([x], [op(x).sum()])
    return [x], outer(x) + 1, [np.array([-1.0])]


def in_a_graph_op_in_a_loop():
    op = symcomp.OpFromGraph([x], [guilty(x) * 2])
    rows, _ = symcomp.scan(lambda r: op(r) + 1, sequences=xs)
    return [xs], rows, [ROWS]


def in_the_gradient_of_a_loop():
    rows, _ = symcomp.scan(lambda r: T.tanh(guilty(r).sum() * r), sequences=xs)
    return [xs], T.grad(rows.sum(), xs), [ROWS]


def in_a_map():
    rows, _ = symcomp.map(lambda r: guilty(r).max(), sequences=xs)
    return [xs], rows, [ROWS]


def beside_a_jacobian():
    matrix = jacobian(T.tanh(x * x), x)
    return [x], guilty(matrix - matrix.sum()).sum(), [np.array([1.0, 2.0])]


def in_a_hessian():
    return [x], hessian(T.sqr(guilty(x)).sum(), x), [np.array([-1.0, 2.0])]


def in_a_reduction():
    return [xs], T.nnet.softmax(guilty(xs)).sum(axis=0), [ROWS]


def transposed():
    return [xs], T.tanh(guilty(xs.T).T), [ROWS]


PLACES = [
    in_scan, in_nested_scans, in_a_branch, in_a_branch_of_a_loop, in_a_graph_op,
    in_a_graph_op_in_a_loop, in_the_gradient_of_a_loop, in_a_map, beside_a_jacobian, in_a_hessian,
    in_a_reduction, transposed,
]  # fmt: skip


def told(f, *values):
    """Return the error's words and the first line of its notes, which quotes the op."""
    with pytest.raises((NanGuardError, InvalidValueError)) as caught:
        f(*values)
    return "\n".join([str(caught.value), *caught.value.__notes__])


@pytest.mark.parametrize("linker", ["cvm", "vm"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_the_op_and_its_line_are_named(place, linker, capsys):
    inputs, outputs, values = place()
    nan = NanGuardMode(inf_is_error=False, big_is_error=False, linker=linker)
    assert is_named(told(symcomp.function(inputs, outputs, mode=nan), *values).split("\n")[0])
    f = symcomp.function(inputs, outputs, mode=DebugMode(linker=linker))
    text = told(f, *values)
    assert "NaN" in text and is_named(text.split("\n")[0])
    mode = MonitorMode(post_func=detect_nan, linker=linker)
    symcomp.function(inputs, outputs, mode=mode)(*values)
    assert is_named(capsys.readouterr().out.split("*** NaN detected ***")[1])


def rows_of_logarithms():
    """MapRows with a log inside; the number of the row decides whether it is NaN."""
    return map_rows(
        lambda i: [guilty(x[i] - x[0])], x.shape[0], [T.constant(np.zeros(0, "int64"))], [False]
    )[0]


@pytest.mark.parametrize("linker", ["cvm", "vm"])
@pytest.mark.parametrize("optimizer", ["None", "fast_compile", "fast_run"])
def test_rows_of_jacobians_are_looked_into(optimizer, linker):
    y = rows_of_logarithms()
    nan = NanGuardMode(True, False, False, optimizer=optimizer, linker=linker)
    f = symcomp.function([x], y, mode=nan)
    mapped = any(isinstance(node.op, MapRows) for node in f.maker.fgraph.toposort())
    assert mapped == (optimizer == "None")
    values = [np.array([1.0, 2.0, 0.5])]
    text = told(f, *values)
    assert is_named(text.split("\n")[0])
    assert ("This was in row 2 (of 3) of MapRows" in text) == mapped
    lenient = DebugMode(optimizer, check_isfinite=False, linker=linker)
    found = symcomp.function([x], y, mode=lenient)(*values)
    np.testing.assert_allclose(found, [-np.inf, 0, np.nan])
    assert is_named(told(symcomp.function([x], y, mode=DebugMode(optimizer)), *values))


def test_monitors_see_the_nodes_of_every_row():
    seen = []
    monitor = MonitorMode(
        post_func=lambda i, node, fn: seen.append((i, str(node.op))), optimizer="None"
    )
    symcomp.function([x], jacobian(T.tanh(x) * x, x), mode=monitor)(np.ones(4))
    inside = [op for _, op in seen if op.startswith("SetSubtensor")]
    assert len(inside) == 4
