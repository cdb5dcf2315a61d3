"""Functions in mode SYMCOMP: shared variables, memory, errors, copies and pickles."""

import copy
import ctypes
import gc
import logging
import pickle
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.compile.io import In, Out  # noqa: E402
from pytensor.compile.mode import Mode, get_mode  # noqa: E402
from pytensor.graph.basic import Apply  # noqa: E402
from pytensor.graph.op import Op  # noqa: E402
from pytensor.graph.rewriting.basic import GraphRewriter  # noqa: E402
from pytensor.graph.rewriting.db import RewriteDatabaseQuery  # noqa: E402
from pytensor.printing import Print  # noqa: E402

import symcomp.pytensor_backend as backend  # noqa: E402
from symcomp.pytensor_backend import versions  # noqa: E402
from symcomp.pytensor_backend.mode import EXCLUDED, REDONE, Query  # noqa: E402
from symcomp.tests.pytensor_backend.compare import compare  # noqa: E402


def function(*args, **kwargs):
    return pytensor.function(*args, mode="SYMCOMP", **kwargs)


def test_modes():
    assert get_mode("symcomp") is backend.SYMCOMP
    x = pt.dvector("x")
    for mode in (Mode("symcomp", "fast_compile"), backend.SYMCOMP, Mode("symcomp", None)):
        assert pytensor.function([x], pt.exp(x).sum(), mode=mode)([0.0, 0.0]) == 2.0
    with as_default():
        assert pytensor.function([x], x.sum()).maker.mode is backend.SYMCOMP


class Watching(GraphRewriter):
    """Notes whether the cyclic collector is on, and fails if asked to."""

    def __init__(self, fails):
        self.fails, self.seen = fails, []

    def add_requirements(self, fgraph):
        pass

    def apply(self, fgraph):
        self.seen.append(gc.isenabled())
        if self.fails:
            raise ArithmeticError


@pytest.mark.parametrize("fails", [False, True])
def test_rewriting_is_not_interrupted_by_the_cyclic_collector(fails):
    x, watching = pt.dvector("x"), Watching(fails)
    mode = backend.SYMCOMP.register((watching, 0.0))
    assert gc.isenabled()
    if fails:
        raising = pytensor.config.change_flags(on_opt_error="raise")
        with pytest.raises(ArithmeticError), raising:
            pytensor.function([x], x, mode=mode)
    else:
        pytensor.function([x], x, mode=mode)
    assert watching.seen == [False]
    assert gc.isenabled()


def test_rewrites_are_left_out_of_graphs_in_graphs(caplog):
    x = pt.dvector("x")
    z = function([x], pt.exp(x) / pt.exp(x).sum())(np.zeros(4))
    np.testing.assert_array_equal(z, np.full(4, 0.25))
    assert not caplog.records


@pytest.mark.parametrize("within", [False, True])
def test_functions_of_diagonals_are_computed_for_these_alone(within):
    a, rng = pt.dmatrix("a"), np.random.default_rng(1)
    z = pt.diagonal(pt.exp(a))
    function([a], z)  # a search for diagonals leaves PyTensor's rewrites as they are
    f = function([a], OpFromGraph([a], [z], inline=True)(a) if within else z)
    value = rng.normal(size=(4, 4))
    np.testing.assert_allclose(f(value), np.exp(np.diagonal(value)), rtol=1e-15)
    nodes = backend.function_of(f).maker.fgraph.toposort()
    assert [node.outputs[0].ndim for node in nodes if "exp" in str(node.op)] == [1]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("uncanonicalize", lambda x: -pt.max(-x)),
        ("add_mul_fusion", lambda x: x**3 + (x + pt.exp(x)) - pt.exp(-x)),
        ("useless_symmetric_transpose", lambda x: pt.diag(x).T),
        ("local_mul_to_sqr", lambda x: x * x),
        ("local_div_to_reciprocal", lambda x: 1.0 / x),
        ("local_add_remove_zeros", lambda x: x + pt.zeros((3,))),
        ("local_upcast_elemwise_constant_inputs", lambda x: pt.maximum(x, np.int8(1))),
        ("local_useless_elemwise_comparison", lambda x: pt.maximum(x.shape[0], 0)),
    ],
)
def test_results_do_not_depend_on_rewrites_that_are_left_out(name, make):
    x = pt.dvector("x")
    wanted = RewriteDatabaseQuery(["fast_run"], exclude={*EXCLUDED, *REDONE} - {name})
    f = pytensor.function([x], make(x), mode=Mode("symcomp", Query(wanted)))
    g = function([x], make(x))
    assert nodes_of(f) != nodes_of(g)
    value = np.array([0.5, 1.25, 3.0])
    # Additions in another order: three roundings of positive terms.
    np.testing.assert_allclose(g(value), f(value), rtol=4 * np.finfo(float).eps)


def nodes_of(f):
    nodes = f.maker.fgraph.toposort()
    return [(str(n.op), [str(v.type) for v in n.inputs]) for n in nodes]


def test_all_rewrites_that_are_left_out_have_a_test():
    tested = test_results_do_not_depend_on_rewrites_that_are_left_out.pytestmark[0].args[1]
    assert {name for name, _ in tested} == {*REDONE}


@pytest.mark.parametrize(
    ("left_out", "make"),
    [
        ("Cholesky", lambda x, a: pt.linalg.cholesky(pt.exp(x[0]) * pt.eye(3))),
        ("Solve", lambda x, a: pt.linalg.solve(pt.diag(x), a)),
        ("Dot", lambda x, a: pt.dot(pt.diag(x), a)),
        ("Solve", lambda x, a: pt.linalg.solve(pt.linalg.qr(a)[0], x)),
    ],
)
def test_what_is_proved_of_matrices_is_used(left_out, make):
    x, a = pt.dvector("x"), pt.dmatrix("a")
    f = function([x, a], make(x, a), on_unused_input="ignore")
    assert not [str(n.op) for n in f.maker.fgraph.toposort() if left_out in str(n.op)]
    plain = pytensor.function([x, a], make(x, a), mode="FAST_COMPILE", on_unused_input="ignore")
    values = np.array([0.5, 1.25, 3.0]), np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(f(*values), plain(*values), rtol=1e-12)


@pytest.mark.parametrize("tag", ["shape_unsafe", "extract_diag_lift_pass"])
def test_diagonals_are_not_looked_for_if_excluded(tag):
    a = pt.dmatrix("a")
    f = pytensor.function([a], pt.diagonal(pt.exp(a)), mode=backend.SYMCOMP.excluding(tag))
    assert str(f.maker.fgraph.outputs[0].owner.op).startswith("ExtractDiag")


@contextmanager
def as_default():
    before, pytensor.config.mode = pytensor.config.mode, backend.SYMCOMP
    try:
        yield
    finally:
        pytensor.config.mode = before


def test_updates():
    s, x = pytensor.shared(np.arange(3.0), name="s"), pt.dvector("x")
    f = function([x], [s, s * 2], updates={s: s + x})
    before, twice = f(np.ones(3))
    np.testing.assert_array_equal(before, [0, 1, 2])
    np.testing.assert_array_equal(twice, [0, 2, 4])
    np.testing.assert_array_equal(s.get_value(), [1, 2, 3])
    s.set_value(np.zeros(3))
    np.testing.assert_array_equal(f(np.ones(3))[0], [0, 0, 0])
    before[:] = 7
    np.testing.assert_array_equal(s.get_value(), [1, 1, 1])
    swap, other = pytensor.shared(1.0), pytensor.shared(2.0)
    function([], [], updates={swap: other, other: swap})()
    assert (swap.get_value(), other.get_value()) == (2.0, 1.0)


def test_a_call_that_fails_changes_nothing():
    s, v = pytensor.shared(np.arange(3.0)), pt.dvector("v")
    f = function([v], v[5], updates={s: s + 1})
    with pytest.raises(IndexError):
        f(np.zeros(2))
    np.testing.assert_array_equal(s.get_value(), [0, 1, 2])


def test_memory():
    s, x = pytensor.shared(np.arange(4.0)), pt.dmatrix("x")
    f = function([In(x, borrow=True)], [Out(x.T, borrow=True), x[0], s, s, s[1:]])
    value = np.ones((2, 3))
    results = f(value)
    for i, z in enumerate(results):
        assert not np.may_share_memory(z, s.get_value(borrow=True))
        for other in results[i + 1 :]:
            assert not np.may_share_memory(z, other)
    inner = s.get_value(borrow=True)
    inner[0] = 5.0
    assert f(value)[2][0] == 5.0
    g = function([In(x, mutable=True)], x * 2)
    kept = np.ones((2, 3))
    g(kept)


def test_results_are_not_overwritten_by_later_calls():
    x = pt.dvector("x")
    f = function([x], pt.exp(x))
    first = f(np.zeros(1000))
    f(np.ones(1000))
    np.testing.assert_array_equal(first, 1.0)


def test_broadcasting_when_the_function_runs_is_refused():
    x, y = pt.dvector("x"), pt.dvector("y")
    f = function([x, y], x + y)
    with pytest.raises(ValueError, match="length 1"):
        f(np.zeros(1), np.zeros(3))
    # Also of what only symcomp knows to have length 1.
    one = function([y, pt.lscalar("n")], y + y[:1].reshape((-1,)), on_unused_input="ignore")
    with pytest.raises(ValueError, match="length"):
        one(np.zeros(3), 1)


def test_arguments_are_checked_by_pytensor():
    x = pt.fvector("x")
    f = function([x], x.sum())
    assert f([1, 2]).dtype == "float32"
    with pytest.raises(TypeError):
        f(np.zeros((2, 2), "float32"))
    f.trust_input = True
    assert f(np.float32([1, 2])) == 3


def test_errors_name_the_variable_and_the_line():
    x = pt.dvector("x")
    y = pt.dvector("y")
    total = x + y  # the line
    total.name = "total of both"
    f = function([x, y], total)
    with pytest.raises(ValueError, match="add") as caught:
        f(np.zeros(2), np.zeros(3))
    notes = "\n".join(caught.value.__notes__)
    assert __file__ in notes and "total = x + y  # the line" in notes and "x" in notes


def test_pickles_and_copies():
    s, x = pytensor.shared(2.0, name="s"), pt.dvector("x")
    f = function([x], x * s, updates={s: s + 1})
    loaded = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(loaded([1.0]), [2.0])
    np.testing.assert_array_equal(loaded([1.0]), [3.0])
    np.testing.assert_array_equal(f([1.0]), [2.0])
    other = pytensor.shared(10.0)
    swapped = f.copy(swap={s: other})
    np.testing.assert_array_equal(swapped([1.0]), [10.0])
    np.testing.assert_array_equal(copy.copy(f)([1.0]), [3.0])
    mode = pickle.loads(pickle.dumps(backend.SYMCOMP))
    assert isinstance(mode.linker, backend.SymcompLinker)


def test_ends_of_all_kinds():
    x, n = pt.dscalar("x"), pt.lscalar("n")
    f = function([x, n], [x, pt.constant(3.0), n])
    assert f(1.0, 2) == [1.0, 3.0, 2]
    assert function([x], [], on_unused_input="ignore")(1.0) == []
    assert function([x], x)(4.0) == 4.0


class Doubled(Op):
    """An op of a user: it returns its input's memory where that is negative, without saying so."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type(), pt.lscalar()])

    def perform(self, node, inputs, outputs):
        (x,) = inputs
        outputs[0][0] = x if x[0] < 0 else x * 2
        outputs[1][0] = np.int64(len(x))


def test_ops_of_users(caplog):
    x = pt.dvector("x")
    z, n = Doubled()(x)
    backend_log = logging.getLogger("symcomp.pytensor_backend")
    with caplog.at_level(logging.INFO, backend_log.name):
        f = function([x], [z + 1, z, n])
        function([x], z)
    assert [r.getMessage() for r in caplog.records] == [
        "Doubled has no translation: its own perform computes it"
    ]
    assert backend.fallbacks(f) == {"Doubled": 1}
    value = np.array([-1.0, 3.0])
    _, same, count = f(value)
    same[:] = 0
    assert value[0] == -1.0 and count == 2

    @backend.translate.register(Doubled)
    def _doubled(op, node, x):
        return NotImplemented if isinstance(op, Tripled) else (x * 2, x.shape[0])

    assert backend.fallbacks(function([x], z)) == {}
    np.testing.assert_array_equal(function([x], z)([1.0]), [2.0])


class Tripled(Doubled):
    """Another, without a translation of its own."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 3


class Wrong(Op):
    """An op whose result is not of the type that it promises."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [pt.dvector()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].astype("float32")


def test_results_of_the_wrong_type():
    x = pt.dvector("x")
    with pytest.raises(Exception, match="float32.*whose type is"):
        function([x], Wrong()(x))(np.ones(2))


def test_profiles_count_fallbacks():
    x = pt.dvector("x")
    f = pytensor.function([x], Tripled()(x) + x.sum(), mode=backend.profiled("title"))
    f(np.ones(4))
    report = backend.function_of(f).profile.text()
    assert "Perform{Tripled}" in report
    with pytest.raises(TypeError, match="no function of PyTensor compiled in mode SYMCOMP"):
        backend.function_of(pytensor.function([x], x, mode="FAST_COMPILE"))


def test_inner_graphs():
    from pytensor.compile.builders import OpFromGraph

    x, y = pt.dvector("x"), pt.dscalar("y")
    inner = OpFromGraph([x, y], [pt.exp(x) * y, x.sum()])
    outer = OpFromGraph([x, y], [inner(x, y * 2)[0] + inner(x, y)[1]])
    u, v = pt.dvector("u"), pt.dscalar("v")
    z = outer(u, v)
    f = function([u, v], [z, pytensor.grad(z.sum(), u)])
    got = f([0.0, 1.0], 3.0)
    np.testing.assert_allclose(got[0], np.exp([0.0, 1.0]) * 6 + 1)
    np.testing.assert_allclose(got[1], np.exp([0.0, 1.0]) * 6 + 2)


def test_functions_of_c():
    """Shared variables are fixed; generators, updates and missing examples are refused."""
    s, x, y = pytensor.shared(np.arange(3.0)), pt.dvector("x"), pt.dscalar("y")
    c = backend.cfunc(function([x, y], [x * s + y, y]), np.zeros(3), 1.0)
    s.set_value(np.zeros(3))
    given, results = [np.ones(3), np.array(2.0)], [np.empty(3), np.empty(())]
    pointers = [(ctypes.c_void_p * 2)(*(a.ctypes.data for a in v)) for v in (given, results)]
    assert c.ctypes(c.data, *pointers) == 0
    np.testing.assert_array_equal(results[0], [2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match="has updates"):
        backend.cfunc(function([x], x, updates={s: s + 1}), np.zeros(3))
    with pytest.raises(TypeError, match="got 1 examples for 2 inputs"):
        backend.cfunc(function([x, y], x * y), np.zeros(3))
    rng = pt.random.rng("rng")
    with pytest.raises(TypeError, match="no generators"):
        backend.cfunc(function([rng], pt.random.normal(rng=rng)), np.random.default_rng(1))
    with pytest.raises(TypeError, match="no function of PyTensor compiled in mode SYMCOMP"):
        backend.cfunc(pytensor.function([x], x, mode="FAST_COMPILE"), np.zeros(3))


def test_versions(monkeypatch):
    versions.check_versions()
    monkeypatch.setitem(versions.SERIES, "pytensor", "2.99")
    with pytest.raises(ImportError, match=r"made for pytensor 2\.99, and 3\.3.* is installed"):
        versions.check_versions()
    with pytest.raises(ImportError, match="needs nowhere"):
        monkeypatch.setitem(versions.SERIES, "nowhere", "1.0")
        versions.check_version("nowhere", required=True)


def test_importing_the_backend_imports_no_large_part_of_scipy():
    """Importing them would take longer than the rest of the backend."""
    program = (
        "import pymc, sys; before = set(sys.modules); import symcomp.pytensor_backend; "
        "print(*{m for m in set(sys.modules) - before if m.startswith('scipy.')})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    parts = {name.split(".")[1] for name in done.stdout.split()}
    assert not parts & {"stats", "interpolate", "spatial", "optimize", "signal", "ndimage"}


def test_print(capsys):
    x, n = pt.dvector("x"), pt.lscalar("n")
    shown = Print("x is", attrs=("__str__", "shape"))(x)
    last = Print("", global_fn=lambda op, value: print("ends with", value[-1]))(shown * n)
    compare([x, n], [last.sum(), pytensor.grad(last.sum(), x)], [np.array([1.0, 2.0]), np.int64(3)])
    capsys.readouterr()
    f = pytensor.function([x, n], last.sum(), mode="SYMCOMP")
    for k in range(4):
        assert f([1.0, 2.0 + k], 2) == 6 + 2 * k
        wanted = f"x is __str__ = [1. {2 + k}.]\nx is shape = (2,)\nends with {4.0 + 2 * k}\n"
        assert capsys.readouterr().out == wanted
    folded = pytensor.function([], Print("once a call")(pt.constant(2.0)) + 1, mode="SYMCOMP")
    assert [float(folded()) for _ in range(3)] == [3.0] * 3
    assert capsys.readouterr().out == "once a call __str__ = 2.0\n" * 3
