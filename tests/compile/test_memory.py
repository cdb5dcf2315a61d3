"""The memory report, compared with arithmetic and with measured allocations."""

import tracemalloc

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import ShapeError
from symcomp.ifelse import ifelse

# Op by op: what a fused op would need in between is no value of the program.
UNFUSED = symcomp.Mode().excluding("fusion")


def test_a_small_program_by_hand():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.tanh(T.exp(x.T) + 1.0).sum(axis=0), mode=UNFUSED)
    report = f.memory_report((5, 3))
    by_name = {v.name.split("{")[0]: v for v in report.values}
    exp, add, tanh, total = (by_name[name] for name in ("exp", "add", "tanh", "sum"))
    assert {exp.buffers, add.buffers, tanh.buffers} == {exp.buffers}
    assert total.buffers != exp.buffers and total.shape == (5,) and total.bytes == 40
    assert exp.shape == (3, 5) and exp.bytes == 120 and exp.dtype == "float64"
    assert (report.unplanned, report.planned, report.results) == (360, 120, 40)
    assert (report.unplanned_peak, report.peak) == (240, 160)
    assert report.inputs == 120 + 8
    assert exp.born < exp.dies == add.born and total.dies == len(f.program.instructions)
    assert "test_memory.py" in str(exp.source)
    views = [v for v in report.values if v.name.startswith("DimShuffle")]
    assert views and all(v.bytes == 0 and v.buffers == () for v in views)


def test_the_text():
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(T.sin(x) * 2.0), mode=UNFUSED)
    text = str(f.memory_report((1000,)))
    assert "peak, as planned                     8,000 bytes" in text
    assert "sin: float64 (1000)  at" in text and "test_memory.py" in text
    short = f.memory_report((1000,)).text(1)
    assert "... and" in short and "exp: float64" not in short


def test_examples_of_every_kind():
    x, n = T.dvector("x"), T.lscalar("n")
    s = symcomp.shared(np.zeros(7))
    f = symcomp.function([x, n], [T.exp(x), T.ones((n,)) + 1.0, s * 2.0])
    sizes = [v.bytes for v in f.memory_report(np.zeros(5), 9).values]
    assert sizes == [v.bytes for v in f.memory_report((5,), 9).values]
    assert {40, 72, 56} <= set(sizes)
    with pytest.raises(ShapeError, match="depend on the value of n: give an example"):
        f.memory_report((5,), ())
    with pytest.raises(ShapeError, match="shape of n .*|shape of x .* is not known"):
        f.memory_report()
    with pytest.raises(TypeError, match="got 3 examples for 2 inputs"):
        f.memory_report(1, 2, 3)
    with pytest.raises(ShapeError, match="expected 1 axes"):
        f.memory_report((5, 5), 1)
    known = T.TensorType("float32", (4, 2))("known")
    assert symcomp.function([known], T.exp(known)).memory_report().results == 32
    default = symcomp.function([symcomp.In(x, value=np.ones(3))], T.exp(x))
    assert default.memory_report().results == 24


def test_shapes_that_depend_on_values():
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x[T.nonzero(x)]))
    assert f.memory_report(np.array([0.0, 1, 2])).results == 16
    with pytest.raises(ShapeError, match="value of x"):
        f.memory_report((3,))


def test_branches_are_counted_once_each():
    c, x = T.lscalar("c"), T.dvector("x")
    f = symcomp.function([c, x], ifelse(c, T.exp(x), T.sin(T.exp(x * 2.0))))
    report = f.memory_report((), (100,))
    (chosen,) = (v for v in report.values if v.slot == f.program.outputs[0])
    assert chosen.bytes == 0 and chosen.shape == (100,) and len(chosen.buffers) == 2
    assert report.results == 1600 and report.peak >= 1600


def test_results_are_no_larger_than_the_peak():
    """A result has an array of its size, not the memory of a larger value."""
    x = T.dvector("x")
    results = []
    for k in range(4):
        total = T.sort(T.exp(x * (k + 1.0))).sum()
        results.append(T.cumsum(T.alloc(total, 600)))
    report = symcomp.function([x], results, mode=UNFUSED).memory_report((1000,))
    assert report.results == 4 * 8 * 600 < report.peak <= report.results + 2 * 8000
    assert report.planned >= 8000
    assert all(report.buffers[b] >= v.bytes for v in report.values for b in v.buffers)


def _network(linker, updates, *excluded):
    mode = symcomp.Mode(linker).excluding("fusion", *excluded)
    x = T.dmatrix("x")
    weights = [symcomp.shared(np.eye(200), name=f"w{i}") for i in range(4)]
    h = x
    for w in weights:
        h = T.sin(T.dot(h, w) + x)
    if not updates:
        return symcomp.function([x], h, mode=mode)
    grads = symcomp.grad(h.sum(), weights)
    updates = [(w, w - 0.1 * g) for w, g in zip(weights, grads, strict=True)]
    return symcomp.function([x], h.sum(), updates=updates, mode=mode)


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("excluded", [(), ("inplace",)])
def test_the_peak_is_what_is_allocated(updates, excluded):
    f = _network("vm", updates, *excluded)
    value = np.zeros((200, 200))
    report = f.memory_report(value)
    f(value)
    expected = report.unplanned_peak if excluded else report.peak
    assert abs(_allocated(f, value) - expected) < 0.02 * expected


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize("excluded", [(), ("inplace",)])
def test_a_plan_allocates_what_it_tells(updates, excluded):
    with symcomp.config.change_flags(kernels=True):
        f = _network("cvm", updates, *excluded)
    value = np.zeros((200, 200))
    assert f.memory_report(value).allocated is None
    assert "not known: no plan is kept" in f.memory_report(value).text()
    f(value)
    expected = f.memory_report(value).allocated
    f(value)
    f.free()
    assert f.memory_report((200, 200)).allocated == expected
    assert f"allocated by a call         {expected:>14,} bytes" in f.memory_report(value).text()
    assert abs(_allocated(f, value) - expected) < 2000
    assert f.memory_report(np.zeros((3, 200))).allocated is None
    if not excluded:
        assert expected <= 1.02 * f.memory_report(value).peak


def _allocated(f, value):
    """Return the most bytes that are allocated in a call."""
    tracemalloc.start()
    f(value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_planning_needs_less():
    prediction = _network("cvm", False).memory_report((500, 200))
    assert prediction.planned * 4 <= prediction.unplanned
    training = _network("cvm", True).memory_report((500, 200))
    assert training.planned * 2 <= training.unplanned


def test_long_names_are_cut_off():
    x = T.dvector("x")
    f = symcomp.function([x], T.tanh(T.exp(x) * T.sin(x) + T.cos(x) * T.sqr(x) - T.exp(T.cos(x))))
    report = f.memory_report((1000,))
    assert report.values and all(len(v.name) <= 60 for v in report.values)
