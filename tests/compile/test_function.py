"""function and Function: every argument, every method, and what bad input does."""

import copy
import gc
import io
import pickle
import threading
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import (
    CyclicGivensError,
    DTypeError,
    GraphError,
    MissingInputError,
    ShapeError,
    UnusedInputError,
)


def test_outputs_in_every_structure():
    x = T.dscalar("x")
    assert symcomp.function([x], x * 2)(3.0) == 6.0
    assert symcomp.function([x], [x, x * 2])(3.0) == [3.0, 6.0]
    assert symcomp.function([x], (x,))(3.0) == [3.0]
    assert symcomp.function([x], {"b": x, "a": x * 2})(3.0) == {"a": 6.0, "b": 3.0}
    assert symcomp.function([x], on_unused_input="ignore")(3.0) is None
    assert symcomp.function([], [])() == []
    assert symcomp.function([x], [x, 1])(3.0) == [3.0, 1]
    with pytest.raises(TypeError, match="keys of outputs must be strings"):
        symcomp.function([x], {1: x})
    with pytest.raises(TypeError, match="output 0 is 'nonsense'"):
        symcomp.function([x], ["nonsense"])


def test_calls_by_position_and_name():
    x, y = T.dscalars("x", "y")
    f = symcomp.function([x, symcomp.In(y, value=10.0)], x - y)
    assert (
        f(1.0) == -9.0
        and f(1.0, 2.0) == -1.0
        and f(x=1.0, y=3.0) == -2.0
        and f(y=1.0, x=5.0) == 4.0
    )
    with pytest.raises(TypeError, match=r"missing argument 0 \(x, float64 scalar\)"):
        f()
    with pytest.raises(TypeError, match="got 3 positional arguments"):
        f(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="unknown argument 'z'"):
        f(1.0, z=2.0)
    with pytest.raises(TypeError, match="'x' is given by position and by name"):
        f(1.0, x=2.0)
    twins = symcomp.function(
        [T.dscalar("t"), T.dscalar("t")], x, givens={x: 1.0}, on_unused_input="ignore"
    )
    with pytest.raises(TypeError, match="unknown argument 't'"):
        twins(1.0, t=2.0)


def test_calls_of_all_kinds_are_alike():
    x, y = T.dvectors("x", "y")
    f = symcomp.function([x, symcomp.In(y, value=np.ones(2))], [x + y])
    a, b = np.array([1.0, 2.0]), np.array([5.0, 7.0])
    assert np.array_equal(partial(f, a)(y=b), [a + b])
    assert np.array_equal(f.__call__(a, y=b), [a + b])
    assert np.array_equal([*map(f, [a], [b])], [[a + b]])
    assert np.array_equal(f(*[a], y=b), [a + b])
    with pytest.raises(TypeError, match="argument 1"):
        f(a, "wrong")

    class Doubled(type(f)):
        def __call__(self, *args, **kwargs):
            return [2 * z for z in super().__call__(*args, **kwargs)]

    class Derived(type(f)):
        pass

    assert np.array_equal(Doubled(f.maker)(a), [2 * (a + 1)])
    assert np.array_equal(Doubled(f.maker)(a, y=b), [2 * (a + b)])
    derived = Derived(f.maker)
    assert np.array_equal(derived(a, b), [a + b])
    Derived.__call__ = lambda self, *args, **kwargs: (args, kwargs)
    assert derived(1) == ((1,), {}) and derived(1, y=2) == ((1,), {"y": 2})


def test_conversion_of_arguments():
    x = T.fvector("weights")
    f = symcomp.function([x], x * 2, name="double")
    assert f(np.ones(2, np.float16)).dtype == np.float32
    assert f([1, 2]).tolist() == [2, 4] and f(np.array([1, 2], np.int8)).tolist() == [2, 4]
    with pytest.raises(
        TypeError,
        match=r"double: argument 0 \(weights, float32 vector\).*float64 .*allow_input_downcast",
    ):
        f(np.ones(2))
    with pytest.raises(ShapeError, match=r"expected 1 axes .*got 2: an array of shape \(2, 2\)"):
        f(np.ones((2, 2), np.float32))
    with pytest.raises(TypeError, match="symbolic variable weights"):
        f(x)
    with pytest.raises(TypeError, match="is not numeric"):
        f(["a"])
    g = symcomp.function([x], x * 2, allow_input_downcast=True)
    assert g(np.ones(2)).dtype == np.float32
    i = T.iscalar("i")
    h = symcomp.function([i], i)
    assert h(3) == 3 and h(np.int16(3)) == 3
    with pytest.raises(TypeError):
        h(np.int64(3))
    with pytest.raises(TypeError):
        h(3.5)
    with pytest.raises(TypeError):
        h(2**40)
    s = T.fscalar()
    with pytest.raises(TypeError):
        symcomp.function([s], s)(0.1)
    with symcomp.config.change_flags(floatX="float32"):
        assert symcomp.function([s], s)(0.1) == np.float32(0.1)
    d = T.dvector()
    e = symcomp.function([d], d)
    assert e(np.array([2**53])).tolist() == [2.0**53]
    with pytest.raises(TypeError, match="lose precision"):
        e(np.array([2**53 + 1]))
    strict = symcomp.function([symcomp.In(d, strict=True)], d)
    with pytest.raises(TypeError, match="strict"):
        strict([1.0])
    with pytest.raises(ShapeError, match=r"expected shape \(2, None\), got \(3, 1\)"):
        m = T.tensor(dtype="float64", shape=(2, None))
        symcomp.function([m], m)(np.ones((3, 1)))


def test_unusual_arrays():
    x = T.dmatrix("x")
    f = symcomp.function([x], x + 1)
    value = np.arange(6.0).reshape(2, 3)
    swapped = value.astype(">f8")
    for other in (value[::-1, ::2], np.asfortranarray(value), swapped, value.view(np.matrix)):
        result = f(other)
        assert type(result) is np.ndarray and result.dtype.isnative
        np.testing.assert_array_equal(result, np.asarray(other) + 1)


def test_missing_unused_and_wrong_inputs():
    x, y = T.dscalars("x", "y")
    with pytest.raises(
        MissingInputError, match="need y of type float64 scalar, made at .*test_function.py"
    ):
        symcomp.function([x], x + y)
    with pytest.raises(UnusedInputError, match="the input y of type float64 scalar is not used"):
        symcomp.function([x, y], x)
    with pytest.warns(UserWarning, match="not used"):
        symcomp.function([x, y], x, on_unused_input="warn")
    with symcomp.config.change_flags(on_unused_input="ignore"):
        assert symcomp.function([x, y], x)(1.0, 2.0) == 1.0
    with pytest.raises(UnusedInputError, match="given more than once"):
        symcomp.function([x, x], x)
    with pytest.raises(TypeError, match="inputs must be a list"):
        symcomp.function(x, x)
    with pytest.raises(TypeError, match="input 0 is 3"):
        symcomp.function([3], x)
    with pytest.raises(TypeError, match="shared variable and cannot be an input"):
        symcomp.function([symcomp.shared(1.0)], x)
    with pytest.raises(TypeError, match="constant and cannot be an input"):
        symcomp.function([T.constant(1.0)], x)
    with pytest.raises(ValueError, match="on_unused_input='other'"):
        symcomp.function([x, y], x, on_unused_input="other")


def test_intermediate_variable_as_input():
    x = T.dscalar("x")
    y = x**2
    assert symcomp.function([y], y + 1)(5.0) == 6.0


def test_updates_use_old_values_and_come_after_outputs():
    a, b = symcomp.shared(1.0, "a"), symcomp.shared(2.0, "b")
    f = symcomp.function([], [a, b], updates=[(a, b), (b, a + b)])
    assert f() == [1.0, 2.0] and (a.get_value(), b.get_value()) == (2.0, 3.0)
    assert symcomp.function([], a, updates={a: a + 1})() == 2.0
    assert (
        symcomp.function([], a, updates=OrderedDict([(a, 0.5)]))() == 3.0 and a.get_value() == 0.5
    )


def test_updates_in_error():
    a, x = symcomp.shared(np.zeros(2, np.float32), "a"), T.dvector("x")
    with pytest.raises(
        TypeError, match=r"update of a \(float32 vector\) has type float64 vector.*Cast it"
    ):
        symcomp.function([x], updates=[(a, x)])
    with pytest.raises(ValueError, match="a is updated twice"):
        symcomp.function([], updates=[(a, a), (a, a + 1)])
    with pytest.raises(TypeError, match="x is not a shared variable"):
        symcomp.function([], updates=[(x, x)])
    with pytest.raises(TypeError, match="updates must be pairs"):
        symcomp.function([], updates=[a])


def test_failed_call_leaves_shared_variables():
    a, b, x = symcomp.shared(np.zeros(2)), symcomp.shared(1.0), T.dvector("x")
    f = symcomp.function([x], x.sum(), updates=[(b, b + 1), (a, a + x)])
    with pytest.raises(ValueError):
        f(np.ones(3))
    assert b.get_value() == 1.0 and a.get_value().tolist() == [0, 0]
    f([1.0, 2.0])
    assert b.get_value() == 2.0 and a.get_value().tolist() == [1, 2]


def test_update_of_wrong_run_time_shape_changes_nothing():
    a = symcomp.shared(np.zeros((1, 2)), shape=(1, None))
    b, x = symcomp.shared(0.0), T.dmatrix("x")
    f = symcomp.function([x], updates=[(b, b + 1), (a, T.addbroadcast(x, 0))])
    with pytest.raises(ShapeError):
        f(np.ones((3, 2)))
    assert b.get_value() == 0.0 and a.get_value().shape == (1, 2)


def test_nothing_aliases():
    a, x = symcomp.shared(np.zeros((2, 3)), "a"), T.dmatrix("x")
    f = symcomp.function([x], [a, a.T, x, x.T, x.T], updates=[(a, x)])
    value = np.ones((2, 3))
    results = f(value)
    everything = [*results, value, a.get_value(borrow=True)]
    for i, first in enumerate(everything):
        for second in everything[:i]:
            assert not np.shares_memory(first, second)


def test_borrowed_output_may_be_a_view():
    x = T.dmatrix("x")
    value = np.ones((2, 3))
    assert np.shares_memory(symcomp.function([x], symcomp.Out(x.T, borrow=True))(value), value)


def test_givens():
    x, y, z = T.dscalars("x", "y", "z")
    s = symcomp.shared(5.0)
    assert symcomp.function([], x + 1, givens={x: s})() == 6.0
    assert symcomp.function([y], x + 1, givens=[(x, y * 2)])(4.0) == 9.0
    assert symcomp.function([z], x, givens={x: y + 1, y: z * 2})(4.0) == 9.0
    assert symcomp.function([], x + y, givens={x: 1.0, y: 2.0})() == 3.0
    assert (
        symcomp.function([], updates=[(s, s + x)], givens={x: 2.0})() is None
        and s.get_value() == 7.0
    )
    with pytest.raises(CyclicGivensError, match="need one another"):
        symcomp.function([], x, givens={x: y + 1, y: x + 1})
    with pytest.raises(CyclicGivensError):
        symcomp.function([], x, givens={x: y + x, y: x + 1})
    with pytest.raises(RuntimeError, match="is an input of the function as well"):
        symcomp.function([x], x, givens={x: y})
    with pytest.raises(TypeError, match="cannot stand for x of type float64 scalar"):
        symcomp.function([], x, givens={x: T.fscalar("f")})
    f = T.fscalar("f")
    assert (
        symcomp.function([f], x + x, givens={x: f}, rebuild_strict=False)(1.5).dtype == np.float32
    )
    with pytest.raises(TypeError, match="is not a variable"):
        symcomp.function([], x, givens={3: y})


def test_a_replacement_may_be_made_of_what_it_replaces():
    """The replacement is a single substitution, as in Theano."""
    a, b = symcomp.shared(1.0, name="a"), symcomp.shared(5.0, name="b")
    x = T.dscalar("x")
    y = x * 2
    assert symcomp.function([], a * 2, givens={a: a + 10})() == 22.0
    assert symcomp.function([], [a, a + b], givens={a: a + b, b: b * 2})() == [11.0, 21.0]
    assert symcomp.function([x], y + 1, givens={y: y + 1})(3.0) == 8.0
    for order in (1, -1):
        pairs = [(y, y + 1), (x, T.constant(5.0))][::order]
        assert symcomp.function([], y + 1, givens=pairs)() == 12.0
    f = symcomp.function([], a, updates={a: a + 1}, givens={a: a + 10})
    assert (f(), a.get_value(), f(), a.get_value()) == (11.0, 12.0, 22.0, 23.0)
    b.default_update = b + 1
    g = symcomp.function([], b, givens={b: b * 10})
    assert (g(), b.get_value()) == (50.0, 51.0)
    op = symcomp.OpFromGraph([x], [y + x], givens={y: y + 1})
    assert op(x).eval({x: 1.0}) == 4.0
    with pytest.raises(MissingInputError):
        symcomp.function([], y, givens={x: x + 1})


def test_eval_refuses_values_that_are_not_used():
    x, y = T.dscalars("x", "y")
    for unused in ({x: 1.0, y: 2.0}, {y: 2.0}):
        with pytest.raises(
            UnusedInputError, match="the input y of type float64 scalar is not used"
        ):
            (T.constant(1.0) + (x if x in unused else 0)).eval(unused)
    assert (x * 2).eval({x: 1.0, y: 2.0}, on_unused_input="ignore") == 2.0
    assert (x * 2).eval({"x": 1.0}) == 2.0
    with pytest.raises(MissingInputError, match="0 inputs .* are named 'y'"):
        (x * 2).eval({x: 1.0, "y": 2.0})


def test_what_an_expression_was_made_of_is_not_unused():
    """As in Theano, where zeros_like(x) reads x."""
    x, v = T.dscalar("x"), T.tensor("v", shape=(2,))
    for y in (T.zeros_like(x), T.full_like(x, 2.0), symcomp.grad(3 * x, x), symcomp.grad(x, x) * 2,
              symcomp.grad(T.floor(x), x), symcomp.Rop(3 * x, x, T.constant(1.0))):  # fmt: skip
        assert symcomp.function([x], y)(1.0).shape == y.eval({x: 1.0}).shape == ()
        with pytest.raises(UnusedInputError, match="the input v"):
            symcomp.function([x, v], y)
    assert T.ones_like(v).eval({v: [1.0, 2.0]}).tolist() == [1, 1]
    f = pickle.loads(pickle.dumps(symcomp.function([x], symcomp.grad(3 * x, x))))
    assert f(1.0) == 3.0


def test_default_updates():
    s = symcomp.shared(0, "counter")
    s.default_update = s + 1
    f = symcomp.function([], s * 10)
    assert [int(f()) for _ in range(3)] == [0, 10, 20]
    g = symcomp.function([], s, no_default_updates=True)
    assert g() == 3 and g() == 3
    assert symcomp.function([], s, no_default_updates=[s])() == 3
    assert symcomp.function([], s, updates=[(s, s * 100)])() == 3 and s.get_value() == 300
    x = T.lscalar()
    assert symcomp.function([], x, givens={x: s})() == 300 and s.get_value() == 301
    with pytest.raises(TypeError, match="must be a bool or a list"):
        symcomp.function([], s, no_default_updates=s)
    h = s * 1  # variables hidden behind an input or a replacement are not updated
    assert (
        symcomp.function([h], h + 1)(5) == 6 and symcomp.function([], h + 1, givens={h: 5})() == 6
    )
    assert s.get_value() == 301


def test_stateful_input_and_old_forms():
    x, state = T.dscalars("x", "state")
    f = symcomp.function([x, symcomp.In(state, value=1.0, update=state + x)], state)
    assert [float(f(2.0)) for _ in range(3)] == [1.0, 3.0, 5.0]
    assert f[state] == 7.0 and f["state"] == 7.0 and f.value[state] == 7.0
    f[state] = 0.0
    assert f.container[state].value == 0.0 and state in f and "nothing" not in f
    with pytest.raises(KeyError):
        f["nothing"]
    assert symcomp.function([x, (state, 4.0)], x + state)(1.0) == 5.0
    with pytest.raises(TypeError, match="use In"):
        symcomp.function([x, (state, 4.0)], x + state, updates=[(symcomp.shared(1.0), 2.0)])


def test_shared_value_as_implicit_input():
    x, w = T.dscalar("x"), symcomp.shared(3.0, "w")
    y = T.dscalar("y")
    assert symcomp.function([x, symcomp.In(y, value=w)], x * y)(2.0) == 6.0


def test_mutable_inputs_may_be_overwritten_but_never_others():
    from symcomp.tensor.inplace import exp_inplace

    x = T.dvector("x")
    with pytest.raises(GraphError, match="in-place op exp_inplace.*accept_inplace=True"):
        symcomp.function([x], exp_inplace(x))
    value = np.zeros(2)
    f = symcomp.function([x], exp_inplace(x), accept_inplace=True)
    assert f(value).tolist() == [1, 1] and value.tolist() == [0, 0]
    g = symcomp.function([symcomp.In(x, mutable=True)], exp_inplace(x), accept_inplace=True)
    assert g(value).tolist() == [1, 1] and value.tolist() == [1, 1]
    h = symcomp.function(
        [symcomp.In(x, mutable=True)], [exp_inplace(x), x + 1], accept_inplace=True
    )
    first, second = h(np.zeros(2))
    assert first.tolist() == [1, 1] and second.tolist() == [1, 1]
    with pytest.raises(ValueError, match="mutable, which implies borrow"):
        symcomp.In(x, mutable=True, borrow=False)
    y = T.dvector("y")
    k = symcomp.function(
        [symcomp.In(x, mutable=True), y], [exp_inplace(x), y * 1], accept_inplace=True
    )
    both = np.zeros(3)
    first, second = k(both[:2], both[1:])
    assert second.tolist() == [0, 0]


def test_output_subset():
    x = T.dscalar("x")
    f = symcomp.function([x], [x, x + 1, x + 2])
    assert f(1.0, output_subset=[2, 0]) == [3.0, 1.0]
    g = symcomp.function([x], {"a": x, "b": x + 1})
    assert g(1.0, output_subset=["b"]) == {"b": 2.0}
    with pytest.raises(ValueError, match="no output 7"):
        f(1.0, output_subset=[7])


def test_an_output_that_is_wanted_twice():
    x = T.dvector("x")
    f = symcomp.function([x], [x * 2, symcomp.Out(x + 1, borrow=True)])
    for _ in range(5):  # as it is, recorded, replayed
        first, other, second, third = f(np.ones(2), output_subset=[0, 1, 0, 0])
        first += 1
        assert second.tolist() == third.tolist() == other.tolist() == [2, 2]
        assert not np.shares_memory(second, third)
    one, same = f(np.ones(2), output_subset=[1, 1])
    assert one is same


def test_fn_runs_without_the_wrapper():
    s = symcomp.shared(0.0)
    f = symcomp.function([], s * 2, updates=[(s, s + 1)])
    assert f.fn() == [0.0] and f.fn(n_calls=3) == [6.0] and s.get_value() == 4.0
    with pytest.raises(ValueError, match="n_calls=0"):
        f.fn(n_calls=0)
    x = T.dscalar("x")
    with pytest.raises(TypeError, match="missing argument"):
        symcomp.function([x], x).fn()


def test_copy_swap_and_delete_updates():
    a, b = symcomp.shared(1.0, "a"), symcomp.shared(10.0, "b")
    f = symcomp.function([], a * 2, updates=[(a, a + 1)])
    g = f.copy(swap={a: b})
    assert g() == 20.0 and b.get_value() == 11.0 and a.get_value() == 1.0
    h = f.copy(delete_updates=True, share_memory=True, name="h")
    assert h() == 2.0 and h() == 2.0 and h.name == "h"
    with pytest.raises(ValueError, match="is not a shared variable of"):
        f.copy(swap={b: a})
    with pytest.raises(TypeError, match="cannot stand for it"):
        f.copy(swap={a: symcomp.shared(np.zeros(2))})


def test_pickle_and_deepcopy():
    x, s = T.dvector("x"), symcomp.shared(np.ones(2), "s")
    f = symcomp.function([x], {"sum": (x * s).sum()}, updates=[(s, s * 2)], name="f")
    for protocol in (0, 1):
        assert pickle.loads(pickle.dumps(s, protocol)).get_value().tolist() == [1, 1]
    g, shared = pickle.loads(pickle.dumps((f, s)))
    assert f([1, 2]) == {"sum": 3.0} and g([1, 2]) == {"sum": 3.0}
    assert g.get_shared()[0].container is shared.container and shared.get_value().tolist() == [2, 2]
    h = copy.deepcopy(f)
    h([1, 2])
    assert s.get_value().tolist() == [2, 2] and h.get_shared()[0].get_value().tolist() == [4, 4]
    assert {f: 1}[f] == 1


def test_deep_graphs_compile_and_pickle():
    x = y = T.dscalar("x")
    for _ in range(6_000):
        y = y + 1.0
    f = symcomp.function([x], y, mode=symcomp.Mode(optimizer="None"))
    assert f(0.0) == 6_000 and pickle.loads(pickle.dumps(f))(1.0) == 6_001


def test_small_methods():
    s = symcomp.shared(1.0)
    f = symcomp.function([], s, mode=symcomp.Mode("vm_nogc"))
    f()
    assert f.get_shared() == [s]
    f.sync_shared()
    f.free()
    assert "takes ()" in repr(f)
    assert f.name.split(":")[0].endswith("test_function.py")
    assert len(f.maker.fgraph.outputs) == 1
    assert "inputs" in str(f.program)


def test_trusted_input_is_not_checked():
    x = T.dvector("x")
    f = symcomp.function([x], x * 2, trust_input=True)
    assert f(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeError, match="multiply"):
        f("text")


def test_function_dump(tmp_path):
    x, s = T.dscalar("x"), symcomp.shared(1.0, "s")
    y = x
    for _ in range(3000):
        y = y + s
    file = tmp_path / "call.pkl"
    symcomp.function_dump(file, [symcomp.In(x, value=0.0)], {"y": y}, updates=[(s, s + x)])
    f = symcomp.function(**pickle.loads(file.read_bytes()))
    assert f(1.0) == {"y": 3001.0} and f() == {"y": 6000.0} and s.get_value() == 1.0


def test_profile():
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x).sum(), profile=True, name="profiled")
    f(np.ones(5))
    f(np.ones(5))
    text = io.StringIO()
    f.profile.summary(file=text)
    assert (
        "Profile of profiled" in text.getvalue()
        and "2 calls" in text.getvalue()
        and "exp" in text.getvalue()
    )
    stats = symcomp.ProfileStats("mine")
    assert symcomp.function([x], x, profile=stats).profile is stats
    assert symcomp.function([x], x, profile="title").profile.message == "title"
    assert symcomp.function([x], x).profile is None


def test_two_threads():
    x = T.dmatrix("x")
    f = symcomp.function([x], T.tanh(T.dot(x, x)) + x)
    inputs = [np.full((30, 30), float(i)) / 100 for i in range(8)]
    wanted = [f(v) for v in inputs]
    got = [None] * 8

    def work(i):
        for _ in range(20):
            got[i] = f(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_garbage_is_collected():
    x = T.dvector("x")
    f = symcomp.function([x], x * 2)
    f([1.0])
    reference = __import__("weakref").ref(f)
    del f
    gc.collect()
    assert reference() is None


def test_error_names_op_shapes_and_line():
    x, y = T.dmatrix("x"), T.dmatrix("y")
    z = T.dot(x, y)
    f = symcomp.function([x, y], z)
    with pytest.raises(ShapeError, match=r"shapes \(2, 3\) and \(2, 3\)") as caught:
        f(np.ones((2, 3)), np.ones((2, 3)))
    note = "\n".join(caught.value.__notes__)
    assert (
        "op Dot" in note and "float64 array of shape (2, 3)" in note and "test_function.py" in note
    )


def test_modes():
    x = T.dvector("x")
    for mode in (
        "FAST_RUN",
        "fast_compile",
        "Mode",
        symcomp.Mode("py", None),
        symcomp.Mode(optimizer="merge"),
    ):
        assert symcomp.function([x], T.exp(x) + T.exp(x), mode=mode)([0.0]).tolist() == [2.0]
    unfused = symcomp.Mode().excluding("fusion")
    merged = symcomp.function([x], T.exp(x) + T.exp(x), mode=unfused)
    plain = symcomp.function([x], T.exp(x) + T.exp(x), mode=unfused.excluding("merge"))
    assert len(plain.maker.fgraph.nodes) == 3 and len(merged.maker.fgraph.nodes) == 2
    folded = symcomp.function([], T.constant(2.0) * 3)
    assert len(folded.maker.fgraph.nodes) == 0 and folded() == 6.0
    unfolded = symcomp.function([], T.constant(2.0) * 3, mode=symcomp.Mode(optimizer="merge"))
    assert len(unfolded.maker.fgraph.nodes) == 1
    included = symcomp.Mode(optimizer="merge").including("constant_folding")
    assert len(symcomp.function([], T.constant(2.0) * 3, mode=included).maker.fgraph.nodes) == 0
    with pytest.raises(
        ValueError, match="mode 'other' does not exist; there are .*FAST_COMPILE, FAST_RUN, Mode"
    ):
        symcomp.function([x], x, mode="other")
    with pytest.raises(ValueError, match="linker 'jit' does not exist"):
        symcomp.Mode("jit")
    with pytest.raises(ValueError, match="optimizer 'best' does not exist"):
        symcomp.Mode(optimizer="best")


def test_variable_eval():
    x, y = T.dscalars("x", "y")
    assert (x + y).eval({x: 1.0, "y": 2.0}) == 3.0
    assert (x + y).eval({x: 1.0, y: 2.0}, mode="FAST_COMPILE") == 3.0
    assert T.constant(3).eval() == 3
    with pytest.raises(MissingInputError, match="0 inputs .* are named 'q'"):
        (x + y).eval({"q": 1.0})


def test_dtype_error_is_a_type_error():
    assert issubclass(DTypeError, TypeError) and issubclass(ShapeError, ValueError)
