"""DebugMode, NanGuardMode, MonitorMode: what they find, on both machines."""

import pickle
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile.debugmode import (
    BadDestroyMap,
    BadOptimization,
    BadThunkOutput,
    BadViewMap,
    DebugMode,
    DebugModeError,
    InvalidValueError,
    RewriteCheckWarning,
    StochasticOrder,
)
from symcomp.compile.monitormode import MonitorMode, detect_nan
from symcomp.compile.nanguardmode import NanGuardError, NanGuardMode
from symcomp.core.graph import FunctionGraph
from symcomp.core.op import Op
from symcomp.ifelse import ifelse
from symcomp.ops.control.debugging import Print
from symcomp.rewrite import phases
from symcomp.rewrite.rule import RuleSet, rule

LINKERS = ("cvm", "vm")


@pytest.fixture(autouse=True)
def with_kernels():
    with symcomp.config.change_flags(kernels=True):
        yield


@pytest.fixture(params=LINKERS)
def linker(request):
    return request.param


# -- NanGuardMode


@pytest.mark.parametrize(
    "values, words",
    [
        ([0.0, 3.0], "1 NaN in Fused.*the step log, made at .*test_checking_modes.py:"),
        ([1.0, 2.0], "1 infinite numbers in .*the step log"),
        ([30.0, 2.0], r"1 numbers beyond 1e\+10 in .*the step exp"),
        ([np.nan, 2.0], "1 NaN in the input x .float64 vector, made at .*test_checking_modes.py:"),
    ],
)
def test_nan_guard_names_the_step_of_a_fused_kernel(linker, values, words):
    x = T.dvector("x")
    f = symcomp.function([x], T.log(x - 1) * 2 + T.exp(x), mode=NanGuardMode(linker=linker))
    np.testing.assert_allclose(f([2.0, 3.0]), np.log([1, 2]) * 2 + np.exp([2, 3]), rtol=1e-12)
    with pytest.raises(NanGuardError, match=words) as caught:
        f(values)
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, FloatingPointError)


def test_nan_guard_looks_into_loops(linker):
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.log(s) * 1.5, outputs_info=[x], n_steps=4)
    f = symcomp.function([x], states[-1], mode=NanGuardMode(linker=linker))
    with pytest.raises(NanGuardError, match="the step log") as caught:
        f([1.5])
    assert any("step 2 (of at most 4)" in note for note in caught.value.__notes__)


def test_nan_guard_only_what_is_asked_for_and_not_what_is_exempt(linker):
    x = T.dvector("x")
    only_nan = NanGuardMode(True, False, False, linker=linker)
    assert np.isinf(symcomp.function([x], 1 / x, mode=only_nan)([0.0])).all()
    y = T.dvector("y")
    y.tag.nan_guard_mode_check = False
    f = symcomp.function([y], T.switch(T.isnan(y), 0, y), mode=NanGuardMode(linker=linker))
    assert f([np.nan, 2.0]).tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match="nothing is an error"):
        NanGuardMode(False, False, False)
    with pytest.raises(ValueError, match="no action 'stop'"):
        NanGuardMode(action="stop")


def test_nan_guard_may_warn_or_debug(linker, monkeypatch, capsys):
    x = T.dvector("x")
    f = symcomp.function([x], T.log(x), mode=NanGuardMode(linker=linker, action="warn"))
    with pytest.warns(RuntimeWarning, match="1 NaN in log"):
        assert np.isnan(f([-1.0])).all()
    stops = []
    monkeypatch.setattr("sys.breakpointhook", lambda: stops.append(1))
    symcomp.function([x], T.log(x), mode=NanGuardMode(linker=linker, action="pdb"))([-1.0])
    assert stops == [1] and "1 NaN in log" in capsys.readouterr().out


def test_nan_guard_leaves_shared_variables_as_they_were(linker):
    s, x = symcomp.shared(np.ones(3)), T.dvector("x")
    f = symcomp.function([x], [], updates=[(s, T.log(x) + s)], mode=NanGuardMode(linker=linker))
    with pytest.raises(NanGuardError):
        f([-1.0, 1, 1])
    assert s.get_value().tolist() == [1, 1, 1]
    f([1.0, 1, 1])
    assert s.get_value().tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [NanGuardMode, DebugMode])
def test_memory_made_for_later_results_is_not_looked_at(linker, kind):
    x, y = T.dmatrix("x"), T.dmatrix("y")
    joined = T.concatenate([T.tanh(x), y, T.exp(y) * 2.0, T.dot(x, y)])
    f = symcomp.function([x, y], joined, mode=kind(linker=linker))
    assert any(step.makes_room for step in f.program.instructions)
    for _ in range(5):
        junk = np.full((220, 50), np.nan)
        del junk
        f(np.zeros((50, 50)), np.ones((50, 50)))


def test_modes_have_names_and_are_pickled(linker):
    x = T.dvector("x")
    assert isinstance(symcomp.compile.get_mode("NanGuardMode"), NanGuardMode)
    assert isinstance(symcomp.compile.get_mode("DebugMode"), DebugMode)
    assert isinstance(symcomp.compile.get_mode("DEBUG_MODE").excluding("fusion"), DebugMode)
    f = symcomp.function([x], T.log(x), mode=NanGuardMode(linker=linker))
    with pytest.raises(NanGuardError):
        pickle.loads(pickle.dumps(f))([-1.0])
    g = symcomp.function([x], T.log(x) + 1, mode=DebugMode(linker=linker))
    assert pickle.loads(pickle.dumps(g))([1.0]) == [1.0]


def test_config_nan_guard_all_runs_the_same_program(linker):
    x = T.dvector("x")
    with symcomp.config.change_flags(nan_guard="all", linker=linker):
        f = symcomp.function([x], T.log(x - 1) * 2)
        states, _ = symcomp.scan(lambda s: T.log(s), outputs_info=[x], n_steps=4)
        g = symcomp.function([x], states[-1])
    assert np.isnan(f([np.nan])).all()
    with pytest.raises(FloatingPointError, match="Fused.*in it, the step log, made at"):
        f([0.0])
    with pytest.raises(FloatingPointError, match="log made 1 NaN"):
        g([0.5])
    plain = symcomp.function([x], states[-1])
    assert np.isnan(plain([0.5])).all()


# -- MonitorMode


def test_monitors_see_every_node_and_may_change_results(linker):
    seen = []

    def before(i, node, fn):
        seen.append(("before", i, str(node.op), [cell[0].tolist() for cell in fn.inputs]))

    def after(i, node, fn):
        seen.append(("after", i, str(node.op), [cell[0].tolist() for cell in fn.outputs]))
        if str(node.op) == "exp":
            fn.outputs[0][0] = np.zeros(2)

    x = T.dvector("x")
    mode = MonitorMode(before, after, linker=linker).excluding("fusion")
    f = symcomp.function([x], T.exp(x).sum() + 1, mode=mode)
    assert f([0.0, 0.0]) == 1.0
    assert seen[:3] == [
        ("before", 0, "exp", [[0.0, 0.0]]),
        ("after", 0, "exp", [[1.0, 1.0]]),
        ("before", 1, "sum{axis=0}", [[0.0, 0.0]]),
    ]


def test_detect_nan(linker, capsys):
    x = T.dvector("x")
    f = symcomp.function([x], T.log(x) * 2, mode=MonitorMode(post_func=detect_nan, linker=linker))
    f([1.0])
    assert capsys.readouterr().out == ""
    f([-1.0])
    shown = capsys.readouterr().out
    assert "NaN detected" in shown and "Input 0: a float64 array of shape (1,): -1" in shown
    assert "the step log, made at" in shown


def test_monitors_see_every_step_of_a_loop(linker):
    seen = []
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.tanh(s), outputs_info=[x], n_steps=3)
    mode = MonitorMode(post_func=lambda i, node, fn: seen.append(str(node.op)), linker=linker)
    symcomp.function([x], states[-1], mode=mode)([1.0])
    assert seen.count("tanh") == 3


# -- DebugMode


def test_what_is_right_passes(linker):
    rng = np.random.default_rng(0)
    X, y = T.fmatrix("X"), T.ivector("y")
    w = symcomp.shared(rng.normal(size=(5, 4)).astype("float32"))
    p = T.nnet.softmax(T.tanh(X.dot(w)))
    cost = -T.log(p[T.arange(y.shape[0]), y]).mean()
    step = [(w, w - np.float32(0.1) * T.grad(cost, w))]
    x_value, y_value = rng.normal(size=(7, 5)).astype("float32"), np.arange(7, dtype="int32") % 4
    start = w.get_value()
    f = symcomp.function([X, y], cost, updates=step, mode=DebugMode(linker=linker))
    found = [float(f(x_value, y_value)) for _ in range(3)]
    w.set_value(start)
    g = symcomp.function([X, y], cost, updates=step)
    np.testing.assert_allclose(found, [float(g(x_value, y_value)) for _ in range(3)], rtol=1e-5)


def test_loops_and_their_gradients_pass(linker):
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.tanh(s * 1.5) + s, outputs_info=[x], n_steps=4)
    slope = T.grad(states[-1].sum(), x)
    expected = symcomp.function([x], slope)([1.0, 2.0])
    found = symcomp.function([x], slope, mode=DebugMode(linker=linker))([1.0, 2.0])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_stable_forms_may_remove_overflow():
    x = T.dvector("x")
    f = symcomp.function([x], T.log(1 + T.exp(x)), mode=DebugMode())
    assert f([1000.0]) == 1000.0
    y = T.fvector("y")
    g = symcomp.function([y], T.log(1 - T.nnet.sigmoid(y)), mode=DebugMode())
    np.testing.assert_allclose(g(np.float32([15, 20])), [-15, -20], rtol=1e-6)


@rule("exp", why="a wrong rule, for tests")
def exp_is_expm1(node, graph):
    return T.expm1(node.inputs[0])


@pytest.fixture
def a_wrong_rule(monkeypatch):
    wrong = phases.Phase("wrong", "for tests", RuleSet([exp_is_expm1], phases.QUICK))
    monkeypatch.setattr("symcomp.compile.features.phases", lambda: (*phases.PHASES, wrong))


@pytest.mark.usefixtures("a_wrong_rule")
def test_a_wrong_rewrite_is_named(linker):
    x = T.dvector("x")
    mode = DebugMode(linker=linker).excluding("fusion")
    f = symcomp.function([x], T.tanh(T.exp(x) - x), mode=mode)
    words = r"rewrite 'exp_is_expm1' of the phase 'wrong' changed a value: 1 of 1 elements differ"
    with pytest.raises(BadOptimization, match=words) as caught:
        f([1.0])
    message = str(caught.value)
    assert "from exp(x)" in message and "test_checking_modes.py:" in message
    assert "Mode.excluding('exp_is_expm1')" in message


def test_a_rewrite_that_makes_an_error_is_named(linker, monkeypatch):
    @rule("sgn", why="a wrong rule, for tests")
    def sgn_of_the_third(node, graph):
        return node.inputs[0][T.constant(3)] * T.ones_like(node.inputs[0])

    wrong = phases.Phase("wrong", "for tests", RuleSet([sgn_of_the_third], phases.EVERY))
    monkeypatch.setattr("symcomp.compile.features.phases", lambda: (wrong,))
    x = T.dvector("x")
    mode = DebugMode(linker=linker).including("merge_only")
    f = symcomp.function([x], ifelse(x[0] > 0, T.sgn(x), x), mode=mode)
    with pytest.raises(BadOptimization, match=r"(?s)'sgn_of_the_third' .*made an error: .*Index"):
        f([-1.0, 2.0])


def test_a_rewrite_that_takes_an_error_away_is_told(linker):
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], (x + y).shape[0], mode=DebugMode(linker=linker))
    words = "(?s)'length_of' .*took an error away: add raised .*Mode.excluding"
    with pytest.warns(RewriteCheckWarning, match=words):
        assert f([1.0, 2.0], [1.0, 2.0, 3.0]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f([1.0, 2.0], [1.0, 2.0]) == 2


def test_rewriting_that_is_not_deterministic_is_found(monkeypatch):
    calls = []

    def sometimes(graph, firings):
        calls.append(graph)
        if len(calls) == 1:
            graph.replace(graph.outputs[0], T.identity(graph.outputs[0].owner.inputs[0]))

    odd = phases.Phase("odd", "for tests", RuleSet([]), phases.EVERY, sometimes)
    monkeypatch.setattr("symcomp.compile.features.phases", lambda: (odd,))
    x = T.dvector("x")
    with pytest.raises(StochasticOrder, match="rewriting the same graph twice"):
        symcomp.function([x], T.exp(x), mode=DebugMode())
    calls.clear()
    symcomp.function([x], T.exp(x), mode=DebugMode(stability_patience=1))
    with pytest.raises(ValueError, match="at least 1"):
        DebugMode(stability_patience=0)


@dataclass(frozen=True)
class Wrong(Op):
    """z = x + 1, but for what ``kind`` says is wrong."""

    kind: str
    state: list = field(default_factory=list, compare=False)

    def output_types(self, x):
        return [x.type]

    def perform(self, x):
        if self.kind == "destroys":
            x += 1
            return x.copy()
        if self.kind == "random":
            self.state.append(1)
            return x + len(self.state)
        if self.kind == "strides":
            return x + (1 if x.flags.c_contiguous else 2)
        if self.kind == "infinite":
            return x / 0
        return x + 1

    def infer_shape(self, node, shapes):
        return [shapes[0]]


@pytest.mark.parametrize(
    "kind, error, words",
    [
        ("destroys", BadDestroyMap, "changed its input 0, x, from .*: 1 to 2 to .*: 2 to 3"),
        ("random", StochasticOrder, "computed output 0 twice"),
        ("strides", BadThunkOutput, "depends on the strides .*from arrays in Fortran order"),
        ("infinite", InvalidValueError, "check_isfinite=False"),
    ],
)
def test_wrong_ops_are_found(linker, kind, error, words):
    x = T.dmatrix("x")
    f = symcomp.function([x], Wrong(kind)(x), mode=DebugMode(linker=linker))
    with pytest.raises(error, match=words) as caught:
        f(np.array([[1.0, 2.0], [1.0, 2.0]]))
    assert isinstance(caught.value, DebugModeError | InvalidValueError)
    assert "test_checking_modes.py:" in str(caught.value)


def test_what_is_meant_can_be_allowed():
    x = T.dmatrix("x")
    lenient = DebugMode(check_isfinite=False, check_preallocated_output=False)
    assert np.isinf(symcomp.function([x], Wrong("infinite")(x), mode=lenient)([[1.0]])).all()
    assert symcomp.function([x], Wrong("strides")(x), mode=lenient)([[1.0]]) == [[2.0]]


def test_views_that_nobody_declared_are_found(monkeypatch):
    x = T.dvector("x")
    y = T.dvector("y")
    reshaped = y.reshape((2, 2))
    monkeypatch.setattr(type(reshaped.owner.op), "view_map", {})
    f = symcomp.function([x], (x + 1).reshape((2, 2)).sum(), mode=DebugMode(optimizer="None"))
    with pytest.raises(BadViewMap, match="Reshape.*output 0 shares memory with input 0"):
        f(np.ones(4))


def test_a_wrong_kernel_is_found_and_its_step_is_named(monkeypatch):
    """NumPy's tanh is broken here, and the kernel is right: they differ."""
    x = T.dvector("x")
    tanh = T.tanh(x).owner.op.scalar
    real = tanh.function
    monkeypatch.setitem(tanh.__dict__, "function", lambda v: real(v) + 0.5)
    monkeypatch.setattr("symcomp.ops.formulas.stepping.ufunc_of", lambda formula, step: None)
    mode = DebugMode(optimizer="fast_run", check_preallocated_output=False)
    f = symcomp.function([x], T.exp(T.tanh(x)) * 2, mode=mode)
    with pytest.raises(BadThunkOutput, match="that of perform.*the step tanh, made at"):
        f([0.25, 0.5])


def test_effects_happen_once(capsys):
    x = T.dvector("x")
    f = symcomp.function([x], Print("x")(x) * 2, mode=DebugMode())
    f([1.0])
    assert capsys.readouterr().out.count("x __str__") == 1


def test_branches_that_are_not_chosen_may_fail(linker):
    x = T.dvector("x")
    y = ifelse(x.shape[0] > 2, x[2] * 2, x[0] * 1)
    f = symcomp.function([x], y, mode=DebugMode(linker=linker))
    assert f([5.0]) == 5.0 and f([1.0, 2.0, 3.0]) == 6.0


def test_the_history_of_a_graph_is_kept_only_when_asked_for():
    x = T.dvector("x")
    graph = FunctionGraph([x], [T.exp(x) + 0])
    phases.rewrite(graph, lambda tags: "fast_run" in tags)
    assert graph.history is None


# -- errors


def test_errors_fit_a_screen_and_the_rest_can_be_asked_for(linker):
    xs = [T.dvector(f"x{i}") for i in range(20)]
    total = T.exp(xs[0])
    for x in xs[1:]:
        total = total * T.tanh(x) + x
    f = symcomp.function(xs, total, mode=symcomp.Mode(linker=linker))
    assert f.explain_last_error(file="str") == "No call has failed while it computed."
    values = [np.ones(3)] * 19 + [np.ones(4)]
    with pytest.raises(ValueError) as caught:
        f(*values)
    text = "\n".join([str(caught.value), *caught.value.__notes__])
    assert len(text.split("\n")) <= 24 and max(map(len, text.split("\n"))) < 400
    assert "a float64 array of shape (3,): 1" in text and "explain_last_error" in text
    assert "test_checking_modes.py:" in text
    rest = f.explain_last_error(file="str")
    assert "-->" in rest and "19: " in rest and "The graph above it:" in rest
    assert "x19" in rest and "Its steps, one by one:" in rest
    f(*[np.ones(3)] * 20)


def told(f, *values):
    """Return the text above a call's error: its words and notes."""
    with pytest.raises(Exception) as caught:
        f(*values)
    return "\n".join([str(caught.value), *caught.value.__notes__])


def test_errors_quote_the_line_and_name_the_step(linker):
    x, y = T.dmatrices("x", "y")
    w = symcomp.shared(np.ones((3, 3)), name="w")
    hidden = T.tanh(x.dot(w) + 1)
    difference = hidden - y  # of the line that is quoted
    mode = symcomp.Mode(linker=linker)
    f = symcomp.function([x, y], T.sqr(difference).sum(), mode=mode)
    text = told(f, np.ones((4, 3)), np.ones((5, 3)))
    assert "it is the step sub(tanh, y) on shapes (4, 3), (5, 3), made at" in text
    assert "\n    difference = hidden - y  # of the line that is quoted" in text
    assert "0: Dot(x, w) (float64 matrix) = a float64 array of shape (4, 3): 3" in text
    assert text.count("f.explain_last_error() tells more.") == 1


def test_errors_in_loops_say_where_the_loops_are_and_the_rest_in_full(linker):
    xs, w = T.dtensor3("xs"), symcomp.shared(np.ones((4, 4)), name="w")

    def outer(x, s):
        states, _ = symcomp.scan(lambda row, h: T.tanh(h.dot(w) * row), sequences=x, outputs_info=s)
        return states[-1]

    states, _ = symcomp.scan(outer, sequences=xs, outputs_info=T.zeros(4))
    mode = symcomp.Mode(linker=linker).excluding("scan")
    f = symcomp.function([xs], states, mode=mode)
    text = told(f, np.ones((2, 3, 5)))
    assert text.count("It ran inside scan") == 2 and text.count("whose inputs were") == 1
    assert "states, _ = symcomp.scan(outer" in text
    assert len(text.split("\n")) <= 24
    rest = f.explain_last_error(file="str")
    assert rest.count("-->") == 3 and rest.count("The graph above it:") == 3
    again = told(f, np.ones((2, 3, 5)))
    assert again == text


def test_all_that_is_known_can_be_told_at_once(linker):
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, y], T.exp(x) + y, mode=symcomp.Mode(linker=linker))
    with symcomp.config.change_flags(exception_verbosity="high"):
        text = told(f, [1.0], [1.0, 2.0])
    assert "The graph above it:" in text and "Its steps, one by one:" in text
    assert "The graph above it:" not in told(f, [1.0], [1.0, 2.0])


def test_tracebacks_show_no_functions_without_lines(linker):
    @symcomp.as_op(itypes=[T.dvector], otypes=[T.dvector])
    def refuse(x):
        raise RuntimeError("as it should")

    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: refuse(s), outputs_info=[x], n_steps=3)
    f = symcomp.function([x], states, mode=symcomp.Mode(linker=linker))
    with pytest.raises(RuntimeError) as caught:
        f([1.0])
    names = [entry.path.name for entry in caught.traceback]
    compiled = [name for name in names if name.endswith((".pyx", ".pxi"))]
    assert len(compiled) <= 6 and names[-1] == "test_checking_modes.py"


def test_inspected_functions_can_be_profiled(linker):
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.tanh(s), outputs_info=[x], n_steps=3)
    f = symcomp.function([x], states[-1].sum(), mode=NanGuardMode(linker=linker), profile=True)
    for _ in range(30):
        f([1.0])
    assert "30 calls" in f.profile.text()


def test_ops_made_of_graphs_are_looked_into(linker):
    x = T.dvector("x")
    op = symcomp.OpFromGraph([x], [T.log(x) * 2])
    f = symcomp.function([x], op(x) + 1, mode=NanGuardMode(linker=linker))
    assert f([1.0]) == [1.0]
    with pytest.raises(NanGuardError, match="the step log, made at"):
        f([-1.0])
    g = symcomp.function([x], op(x) + 1, mode=DebugMode(linker=linker))
    np.testing.assert_allclose(g([2.0]), np.log([2.0]) * 2 + 1, rtol=1e-14)
