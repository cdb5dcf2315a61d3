"""The engine: what it refuses and reports, what it looks at again, and how rules are chosen."""

import warnings

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.compile import features
from symcomp.compile.mode import OPTIMIZERS, Mode
from symcomp.core.evaluate import evaluate
from symcomp.core.graph import FunctionGraph
from symcomp.errors import RewriteError, RewriteWarning
from symcomp.ops.elementwise import inplace
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.shapes.shape import SpecifyShape
from symcomp.rewrite import phases
from symcomp.rewrite.engine import MOST_REWRITES, Engine, Known
from symcomp.rewrite.phases import CANONICALIZE, PHASES, STABILIZE, rewrite
from symcomp.rewrite.rule import RuleSet, rule
from symcomp.rewrite.stabilize import rational
from symcomp.rewrite.views import DEEPEST
from symcomp.tests.rewrite.rules import all_kinds

X, Y = T.dvector("x"), T.dvector("y")


@rule("exp", why="a test")
def to_sin(node, graph):
    """exp(x) -> sin(x)"""
    return T.sin(node.inputs[0])


@rule("sin", why="a test")
def to_exp(node, graph):
    """sin(x) -> exp(x)"""
    return T.exp(node.inputs[0])


@rule("exp", why="a test")
def to_single(node, graph):
    """exp(x) -> float32"""
    return T.cast(T.sin(node.inputs[0]), "float32")


@rule("exp", why="a test")
def to_row(node, graph):
    """exp(x) -> a matrix"""
    return T.sin(node.inputs[0]).dimshuffle("x", 0)


@rule("exp", why="a test")
def to_three(node, graph):
    """exp(x) -> three elements"""
    return T.alloc(np.zeros(3), 3)


@rule("exp", why="a test")
def breaks(node, graph):
    """exp(x) -> an exception"""
    raise KeyError("a bug in a rule")


@rule("exp", why="a test")
def forgets_an_input(node, graph):
    """exp(x) -> sin of a variable that is no input"""
    return T.sin(T.dvector("stranger"))


@rule("exp", why="a test")
def of_itself(node, graph):
    """exp(x) -> sin(exp(x))"""
    return T.sin(node.outputs[0])


def engine(rules, outputs, inputs=(X,), on_error="raise", **more):
    graph = FunctionGraph(list(inputs), outputs)
    return graph, Engine(graph, RuleSet(rules), "a phase", on_error=on_error, **more)


# -- loops


def test_rules_that_undo_one_another_are_named():
    graph, run = engine([to_sin, to_exp], [T.exp(X)])
    with pytest.warns(RewriteWarning, match="stopped in 'a phase'") as caught:
        run.run()
    (message,) = [str(w.message) for w in caught]
    assert "to_sin (100 of the last 200)" in message and "to_exp (100 of" in message
    assert "Mode.excluding" in message
    assert len(run.firings) <= MOST_REWRITES + 1001
    assert all_kinds(graph) in (["exp"], ["sin"]) and graph.watcher is None


def test_a_long_graph_is_not_taken_for_a_loop():
    y = X
    for _ in range(3000):
        y = T.neg(T.neg(T.sin(y)))
    graph = FunctionGraph([X], [y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Engine(graph, CANONICALIZE, on_error="raise").run()
    assert all_kinds(graph) == ["sin"] * 3000


# -- refused replacements


@pytest.mark.parametrize(
    ("bad", "change", "inputs"),
    [
        (to_single, "the dtype float64 to float32", X),
        (to_row, r"the shape \(None,\) to \(1, None\)", X),
        (to_three, r"the shape \(4,\) to \(3,\)", T.TensorType("float64", (4,))("four")),
    ],
)
def test_a_changed_type_is_refused_with_the_name_of_the_rule(bad, change, inputs):
    graph, run = engine([bad], [T.exp(inputs)], (inputs,))
    name = bad.name
    with pytest.raises(RewriteError, match=rf"'{name}' on exp\(.*test_engine.py.*change {change}"):
        run.run()
    graph, run = engine([bad], [T.exp(inputs)], (inputs,), "warn")
    with pytest.warns(RewriteWarning, match=rf"'{name}'.*change {change}; it was skipped"):
        assert run.run() == []
    assert all_kinds(graph) == ["exp"]


def test_a_rule_that_raises():
    graph, run = engine([breaks], [T.exp(X)])
    with pytest.raises(RewriteError, match=r"'breaks' on exp\(x\), made at .*failed") as caught:
        run.run()
    assert isinstance(caught.value.__cause__, KeyError)
    graph, run = engine([breaks, to_sin], [T.exp(X)], on_error="warn")
    with pytest.warns(RewriteWarning, match=r"KeyError: 'a bug in a rule'\); it was skipped: ex"):
        run.run()
    assert all_kinds(graph) == ["sin"], "the other rules go on"
    graph, run = engine([breaks], [T.exp(X)], on_error="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run.run() == []
    assert all_kinds(graph) == ["exp"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(forgets_an_input, "would need stranger, which is neither an"), (of_itself, "which it repl")],
)
def test_what_cannot_be_computed_is_refused(bad, reason):
    graph, run = engine([bad], [T.exp(X)])
    with pytest.raises(RewriteError, match=rf"'{bad.name}' on exp\(x\), made at .*{reason}"):
        run.run()
    graph, run = engine([bad], [T.exp(X)], on_error="warn")
    with pytest.warns(RewriteWarning, match=reason):
        run.run()
    assert all_kinds(graph) == ["exp"] and len(graph.nodes) == 1


def test_config_says_what_happens_to_a_rule_that_raises(monkeypatch):
    phase = phases.Phase("broken", "a test", RuleSet([breaks], phases.QUICK))
    monkeypatch.setattr(features, "phases", lambda: (*PHASES, phase))
    with symcomp.config.change_flags(on_opt_error="raise"):
        with pytest.raises(RewriteError, match="'breaks'") as caught:
            symcomp.function([X], T.exp(X))
        assert isinstance(caught.value.__cause__, KeyError)
    with symcomp.config.change_flags(on_opt_error="warn"):
        with pytest.warns(RewriteWarning, match="'breaks'"):
            f = symcomp.function([X], T.exp(X))
    assert f([0.0]).tolist() == [1.0]
    with symcomp.config.change_flags(on_opt_error="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        symcomp.function([X], T.exp(X))
        warnings.simplefilter("default")
    excluded = symcomp.Mode().excluding("breaks")
    with symcomp.config.change_flags(on_opt_error="raise"):
        symcomp.function([X], T.exp(X), mode=excluded)


# -- types that know more or less


def test_known_lengths_are_kept():
    four = T.TensorType("float64", (4,))("four")

    @rule("exp", why="a test")
    def forget(node, graph):
        return T.unbroadcast(T.sin(node.inputs[0]), 0)

    @rule("exp", why="a test")
    def shorter_type(node, graph):
        return other

    other = T.dvector("other")
    graph, run = engine([forget], [T.exp(four)], (four,))
    run.run()
    assert graph.outputs[0].type.shape == (4,)
    graph = FunctionGraph([four, other], [T.exp(four)], clone=False)
    Engine(graph, RuleSet([shorter_type]), on_error="raise").run()
    assert isinstance(graph.outputs[0].owner.op, SpecifyShape)
    assert graph.outputs[0].type.shape == (4,)


def test_a_rule_may_replace_some_outputs_only():
    x = T.dvector("x")

    @rule(type(T.max_and_argmax(x)[1].owner.op), why="a test")
    def keep(node, graph):
        return [None] * len(node.outputs)

    graph, run = engine([keep], [T.max_and_argmax(x)[1]], (x,))
    assert run.run() == []


# -- visited nodes


def visits(length, change):
    """Count the visits of a rule on a chain, where ``change`` nodes are replaced."""
    seen = []

    @rule("sin", "exp", "tanh", why="a test")
    def count(node, graph):
        seen.append(node)
        return T.tanh(node.inputs[0]) if node.op.scalar.name == "exp" else None

    y = X
    for i in range(length):
        y = T.exp(y) if i % (length // change) == 0 else T.sin(y)
    graph = FunctionGraph([X], [y])
    Engine(graph, RuleSet([count]), on_error="raise").run()
    assert all_kinds(graph).count("tanh") == change
    return len(seen)


def test_only_the_neighbourhood_is_looked_at_again():
    few, many = visits(1000, 10), visits(4000, 10)
    assert few <= 1000 + 4 * 10 and many <= 4000 + 4 * 10
    assert visits(1000, 100) <= 1000 + 4 * 100


def test_what_a_change_makes_possible_is_found_behind_it():
    """The rule for neg fires on a node that was looked at before its input changed."""

    @rule("exp", why="a test")
    def to_neg(node, graph):
        return T.neg(node.inputs[0])

    graph, run = engine([to_neg, *CANONICALIZE], [T.neg(T.exp(X))])
    run.run()
    assert all_kinds(graph) == [] and graph.outputs[0] is graph.inputs[0]


def test_equal_nodes_that_a_rule_makes_are_merged():
    graph, run = engine([to_sin], [T.exp(X) * T.sin(X)])
    run.run()
    assert all_kinds(graph) == ["mul", "sin"]
    assert [f.rule for f in run.firings] == ["to_sin", "merge"]


def test_what_became_of_a_variable():
    graph = FunctionGraph([X], [T.exp(X) + 1.0])
    exp = next(n for n in graph.toposort() if str(n.op) == "exp")
    run = Engine(graph, RuleSet([to_sin]), on_error="raise")
    run.run()
    assert str(run.became[exp.outputs[0]].owner.op) == "sin"


def test_a_rewrite_keeps_the_line_and_the_name():
    y = T.exp(X)
    y.name = "result"
    graph, run = engine([to_sin], [y])
    run.run()
    node = graph.outputs[0].owner
    assert graph.outputs[0].name == "result" and node.source.file.endswith("test_engine.py")
    (firing,) = run.firings
    assert firing.line().startswith("exp(x) -> sin(x)") and "test_engine.py" in firing.line()


# -- selection of rules


def fired(mode, outputs, inputs=(X,)):
    graph = FunctionGraph(list(inputs), outputs)
    return rewrite(graph, mode.selects, on_error="raise").counts()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer(optimizer):
    """The level that each stands for, o1 to o4 as in Theano."""
    y = T.log(1 + T.exp(T.neg(T.neg(X)))) * T.constant(2.0)
    graph = FunctionGraph([X], [y])
    trace = rewrite(graph, Mode(optimizer=optimizer).selects, on_error="raise")
    names = [phase.name for phase in trace.phases]
    assert names == [phase.name for phase in PHASES if phase.name in names]
    assert ("merge" in names) is (optimizer != "None")
    stable = optimizer not in ("None", "merge")
    assert ("log1p_of" in trace.counts()) is stable and ("stabilize" in names) is stable
    full = optimizer in ("fast_run", "unsafe", "o3", "o4")
    assert ("specialize" in names) is ("fusion" in names) is full
    (value,) = evaluate(graph.outputs, {graph.inputs[0]: np.array([0.5])})
    np.testing.assert_allclose(value, 2 * np.log(1 + np.exp([0.5])))


def test_excluding_by_name_and_by_tag():
    y = [T.neg(T.neg(T.log(1 + X)))]
    assert {"neg_neg", "log1p"} <= set(fired(Mode(), y))
    assert "neg_neg" not in fired(Mode().excluding("neg_neg"), y)
    assert "log1p" in fired(Mode().excluding("neg_neg"), y)
    assert set(fired(Mode().excluding("stabilize"), y)) & {r.name for r in STABILIZE} == set()
    assert set(fired(Mode().excluding("canonicalize"), y)) & {r.name for r in CANONICALIZE} == set()
    assert "merge" not in fired(Mode().excluding("merge"), [T.exp(X) + T.exp(X)])
    assert "merge" in fired(Mode(), [T.exp(X) + T.exp(X)])
    folds = [X * (T.constant(2.0) + 1.0)]
    assert "constant_folding" in fired(Mode(), folds)
    assert "constant_folding" not in fired(Mode().excluding("constant_folding"), folds)


def test_including_by_name_and_by_tag():
    y = [T.neg(T.neg(T.log(1 + X)))]
    plain = Mode(optimizer="merge")
    assert set(fired(plain, y)) <= {"merge"}
    assert "neg_neg" in fired(plain.including("neg_neg"), y)
    assert "log1p" not in fired(plain.including("neg_neg"), y)
    assert "log1p" in fired(plain.including("stabilize"), y)
    both = plain.including("stabilize", "canonicalize").excluding("log1p")
    assert "neg_neg" in fired(both, y) and "log1p" not in fired(both, y)
    assert "log1p" in fired(both.including("log1p"), y), "the last word counts"


def test_config_includes_and_excludes():
    y = [T.neg(T.neg(T.log(1 + X)))]
    with symcomp.config.change_flags(optimizer_excluding="neg_neg:log1p"):
        assert set(fired(Mode(), y)) & {"neg_neg", "log1p"} == set()
    with symcomp.config.change_flags(optimizer_including="log1p"):
        assert "log1p" in fired(Mode(optimizer="merge"), y)
    with symcomp.config.change_flags(optimizer="None"):
        assert fired(Mode(), y) == {}


def test_rules_say_what_they_do():
    names = [r.name for r in (*CANONICALIZE, *STABILIZE)]
    assert len(set(names)) == len(names)
    for r in (*CANONICALIZE, *STABILIZE):
        assert r.why and "->" in r.before_after and r.name in r.tags and r.name in repr(r), r


def test_rule_sets_are_added_and_found_by_kind():
    both = RuleSet([to_sin], ["one"]) + RuleSet([to_exp], ["two"])
    assert [r.name for r in both] == ["to_sin", "to_exp"] and len(both) == 2
    assert [r.name for r in both.for_node(T.exp(X).owner)] == ["to_sin"]
    assert both.selected(lambda tags: "two" in tags).for_node(T.exp(X).owner) == []
    assert both.selected(lambda tags: True) is both
    assert both.selected(lambda tags: "one" in tags) is both.selected(lambda tags: "one" in tags)

    @rule(Elemwise, why="a test")
    def general(node, graph):
        """f(x) -> f(x)"""

    mixed = RuleSet([general, to_sin])
    assert [r.name for r in mixed.for_node(T.exp(X).owner)] == ["to_sin", "general"]
    assert [r.name for r in mixed.for_node((X + Y).owner)] == ["general"]


def test_rules_of_a_row_leave_its_in_place_applications():
    def rewritten(y):
        mode = symcomp.Mode(linker="py").excluding("fusion")
        f = symcomp.function([symcomp.In(X, mutable=True)], y, accept_inplace=True, mode=mode)
        return [str(node.op) for node in f.maker.fgraph.toposort()]

    assert rewritten(inplace.second_inplace(X, T.exp(X))) == ["exp", "second_inplace"]
    assert rewritten(inplace.log_inplace(1.0 + X))[-1] == "log_inplace"
    assert rewritten(T.log(1.0 + X)) == ["log1p"]


def test_engines_that_share_what_is_known_merge_each_node_once():
    """Merge only what changed since; merge it into what the engines before saw."""

    @rule("tanh", why="a test")
    def tanh_is_sin(node, graph):
        return T.sin(node.inputs[0])

    x = T.dvector("x")
    graph = FunctionGraph([x], [T.sin(x), T.tanh(x), T.exp(T.cos(x)), T.exp(T.cos(x))])
    known, merged = Known(), []

    class Counting(Engine):
        def _merge(self, node):
            merged.append(str(node.op))
            return super()._merge(node)

    Counting(graph, RuleSet([]), known=known).run()
    assert sorted(merged) == ["cos", "cos", "exp", "exp", "sin", "tanh"]
    assert len(graph.nodes) == 4
    merged.clear()
    Counting(graph, RuleSet([tanh_is_sin]), known=known).run()
    assert merged == ["sin"] and len(graph.nodes) == 3
    assert graph.outputs[0] is graph.outputs[1] and graph.outputs[2] is graph.outputs[3]
    merged.clear()
    Counting(graph, RuleSet([tanh_is_sin]), known=known).run()
    assert not merged


def test_rules_read_deep_products_to_a_limit(monkeypatch):
    read = []
    is_quotient = rational._is_quotient
    monkeypatch.setattr(rational, "_is_quotient", lambda x: read.append(x) or is_quotient(x))
    x, y = T.dvectors("xy")
    deep = x
    for _ in range(2000):
        deep = deep * y
    rational._divides(deep)
    assert len(read) <= 2 * DEEPEST + 1
