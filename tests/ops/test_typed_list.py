"""Lists in graphs: against Python's lists, and what aliasing, errors and machines make of them."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp import typed_list as L
from symcomp.compat.missing import Missing
from symcomp.compat.modules import resolve
from symcomp.errors import DTypeError, IndexOutOfRangeError, ShapeError
from symcomp.ifelse import ifelse
from symcomp.tests.harness import check

Vectors = L.TypedListType(T.dvector)
POSITIONS = st.one_of(st.none(), st.integers(-7, 7))
MODES = ("FAST_RUN", "FAST_COMPILE", "DebugMode")


def arrays(*numbers):
    return [np.full(int(n), float(n)) for n in numbers]


def same(got, want):
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert isinstance(x, np.ndarray)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("mode", MODES)
def test_each_function_is_that_of_pythons_lists(mode):
    x, y, v, i = Vectors("x"), Vectors("y"), T.dvector("v"), T.lscalar("i")
    outputs = [
        x.append(v), x.extend(y), x.insert(i, v), x.remove(v), x.reverse(), x[i], x[i:], x[::-2],
        x.count(v), x.ind(v), x.length(),
    ]  # fmt: skip
    f = symcomp.function([x, y, v, i], outputs, mode=mode)
    one, two = arrays(1, 3, 2, 3), arrays(0, 4)
    three = np.full(3, 3.0)
    got = f(one, two, three, -2)
    wants = [
        [*one, three], one + two, [*one[:-2], three, *one[-2:]], [one[0], *one[2:]], one[::-1],
    ]  # fmt: skip
    for z, want in zip(got[:5], wants, strict=True):
        same(z, want)
    same([got[5], *got[6], *got[7]], [one[-2], *one[-2:], *one[::-2]])
    assert [int(n) for n in got[8:]] == [2, 1, 4]
    assert all(n.dtype == np.int64 and n.shape == () for n in got[8:])
    same(one, arrays(1, 3, 2, 3))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=5), POSITIONS, POSITIONS, POSITIONS.filter(bool))
def test_slices(numbers, start, stop, step):
    x = Vectors("x")
    value = arrays(*numbers)
    parts = [T.constant(n) if n is not None else None for n in (start, stop, step)]
    same(x[slice(*parts)].eval({x: value}), value[start:stop:step])
    same(x[start:stop:step].eval({x: value}), value[start:stop:step])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=5), st.integers(-7, 7))
def test_insert(numbers, index):
    x, v = Vectors("x"), T.dvector("v")
    want = arrays(*numbers)
    want.insert(index, np.zeros(2))
    same(x.insert(index, v).eval({x: arrays(*numbers), v: [0, 0]}), want)


def test_elements_through_the_harness():
    x, y = np.arange(3.0), np.ones(2)
    check(lambda x, y: L.make_list([x, y])[1] * 2, x, y, expected=2 * y, grad=False)
    check(
        lambda x, y: L.make_list([x]).append(y).reverse()[0], x, y, expected=y, grad=False,
        static="none",
    )  # fmt: skip


def test_no_array_is_overwritten_that_a_list_has():
    v = T.dvector("v")
    for mode in MODES:
        x = L.make_list([v * 2, v * 3])
        changed = T.set_subtensor(x[0][0], 100.0)
        f = symcomp.function([v], [changed, x[0], x, x.append(changed)[2]], mode=mode)
        first, second, whole, third = f([1.0, 2.0])
        same([first, second, third], [np.array([100.0, 4.0]), np.array([2.0, 4.0]), first])
        same(whole, [np.array([2.0, 4.0]), np.array([3.0, 6.0])])
    x = Vectors("x")
    value = arrays(2, 1)
    (result,) = symcomp.function([x], [T.inc_subtensor(x[0][:], 1.0)])(value)
    same([result, *value], [np.full(2, 3.0), *arrays(2, 1)])
    # The results are arrays of the caller's own.
    (back,) = symcomp.function([x], [x.reverse()])(value)
    back[0][:] = 7.0
    same(value, arrays(2, 1))


def test_types():
    deep = L.TypedListType(T.fvector, depth=2)
    assert deep == L.TypedListType(L.TypedListType(L.TypedListType(T.fvector)))
    assert deep != L.TypedListType(T.fvector, depth=1)
    assert (deep.get_depth(), deep("x").ndim, Vectors("x").dtype) == (2, 3, "float64")
    x = L.TypedListType(T.dscalar, depth=1)("x")
    f = symcomp.function([x], [x[0][1], x.append([5.0]), x.count([1.0, 2.0])])
    element, longer, number = f([[1, 2], [], [1, 2]])
    assert (float(element), int(number)) == (2.0, 2)
    assert [[float(v) for v in inner] for inner in longer] == [[1, 2], [], [1, 2], [5]]
    common = L.make_list([T.TensorType("float64", (2, 3))(), T.TensorType("float64", (2, 4))()])
    assert common.ttype == T.TensorType("float64", (2, None))


def test_constants_and_equality():
    x = Vectors.make_constant([[1.0, np.nan], []])
    assert int(x.count([1.0, np.nan]).eval()) == 1
    assert int(x.ind([]).eval()) == 1
    same(x.extend([[2.0]]).eval(), [np.array([1.0, np.nan]), np.array([]), np.array([2.0])])
    assert int(L.make_list([1.0, 2.0, 1.0]).count(1.0).eval()) == 2
    assert int(Vectors.make_constant([]).length().eval()) == 0


def test_lists_of_matrices_in_a_loop():
    x = L.TypedListType(T.dmatrix)("x")
    rows, _ = symcomp.scan(
        lambda i, items: items[i].sum(), sequences=T.arange(x.length()), non_sequences=x
    )
    got = symcomp.function([x], rows)([np.ones((2, 2)), np.ones((1, 3)), np.zeros((0, 1))])
    np.testing.assert_array_equal(got, [4.0, 3.0, 0.0])


def test_saved_pickled_and_chosen(tmp_path):
    x, v = Vectors("x"), T.dvector("v")
    f = symcomp.function([x, v], [ifelse(x.length() > 1, x, x.append(v)), x[0]])
    symcomp.save(tmp_path / "lists.zip", f)
    for g in (f, symcomp.load(tmp_path / "lists.zip"), pickle.loads(pickle.dumps(f))):
        for value in (arrays(2), arrays(2, 3)):
            chosen, first = g(value, [5.0])
            same(chosen, value if len(value) > 1 else [*value, np.array([5.0])])
            same([first], value[:1])


def test_errors_when_built():
    x, v, m = Vectors("x"), T.dvector("v"), T.dmatrix("m")
    with pytest.raises(DTypeError, match=r"Append.*no element for a list of float64 vector"):
        x.append(m)
    with pytest.raises(DTypeError, match="different types, float64 vector and float64 matrix"):
        L.make_list([v, m])
    with pytest.raises(DTypeError, match="An empty list has no type"):
        L.make_list([])
    with pytest.raises(DTypeError, match="length: v .* is no typed list"):
        L.length(v)
    with pytest.raises(DTypeError, match="extend: .* does not fit x"):
        x.extend(L.make_list([m]))
    with pytest.raises(DTypeError, match="index .* must be an integer scalar"):
        x[1.5]
    with pytest.raises(TypeError, match=r"use \.length\(\)"):
        len(x)
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(x)
    with pytest.raises(TypeError, match=r"ttype is 'float64'; a type"):
        L.TypedListType("float64")
    with pytest.raises(ValueError, match="depth is -1"):
        L.TypedListType(T.dvector, -1)
    with pytest.raises(NotImplementedError, match="lists have none; stack"):
        symcomp.grad(L.make_list([v, v])[0].sum(), v)


def test_errors_when_run():
    x, v, i = Vectors("x"), T.dvector("v"), T.lscalar("i")
    with pytest.raises(IndexOutOfRangeError, match="index 2 is out of range for a list of 2"):
        x[i].eval({x: arrays(1, 2), i: 2})
    with pytest.raises(ValueError, match="step of a slice of a list is 0"):
        x[::i].eval({x: arrays(1), i: 0})
    for z in (x.ind(v), x.remove(v)):
        with pytest.raises(ValueError, match="none of the 1 elements"):
            z.eval({x: arrays(1), v: [2.0]})
    with pytest.raises(TypeError, match="a list is needed for list of float64 vector"):
        x.length().eval({x: 3})
    with pytest.raises(ShapeError, match="element 1 of a value of list of float64 vector"):
        x.length().eval({x: [[1.0], [[2.0]]]})


def test_theanos_names():
    names = (
        "Append Count Extend GetItem Index Insert Length MakeList Remove Reverse TypedListConstant "
        "TypedListType TypedListVariable append count extend getitem index_ insert length "
        "make_list remove reverse"
    )
    for name in names.split():
        for module in ("theano.typed_list", "theano.typed_list.basic"):
            assert not isinstance(resolve(module, name), Missing)


def test_results_that_are_arguments():
    """A copy of a list is a list, in the native machine, too."""
    rows = L.TypedListType(T.lvector)("rows")
    for linker in ("vm", "cvm"):
        f = symcomp.function([rows], [rows, rows.reverse()], mode=symcomp.Mode(linker=linker))
        given = [np.array([3, 1]), np.array([5])]
        same, turned = f(given)
        assert type(same) is list
        assert [v.tolist() for v in same] == [[3, 1], [5]] == [v.tolist() for v in turned[::-1]]
