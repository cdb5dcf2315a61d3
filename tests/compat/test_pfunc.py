"""``theano.compile.pfunc.rebuild_collect_shared``."""

import importlib

import numpy as np
import pytest


@pytest.fixture
def rebuild(theano):
    return theano.compile.rebuild_collect_shared


def test_copies_and_shared_variables(theano, rebuild):
    T = theano.tensor
    x, y, s = T.dscalar("x"), T.dscalar("y"), theano.shared(2.0, "s")
    z = x * y + s
    inputs, found, (copies, updates, pairs, shared) = rebuild(
        [z, x], [x, theano.In(y)], updates={s: s * 3}
    )
    assert inputs[0] is x and inputs[1].variable is y and found[1] is x
    assert found[0] is copies[z] is not z
    assert float(found[0].eval({x: 3.0, y: 4.0})) == 14.0
    assert shared == [s] and [v for v, _ in pairs] == [s]
    assert float(updates[s].eval()) == 6.0
    inputs, found, others = rebuild(z, [x, y], copy_inputs_over=False)
    assert inputs[0] is not x and others[0][s] is not s
    assert float(found.eval({inputs[0]: 3.0, inputs[1]: 4.0})) == 14.0


def test_replacements(theano, rebuild):
    T = theano.tensor
    x, y = T.dscalars("x", "y")
    _, found, _ = rebuild({"z": theano.Out(x + 1.0), "w": x}, [y], replace=[(x, y * 2)])
    assert float(found["z"].variable.eval({y: 3.0})) == 7.0
    assert float(found["w"].eval({y: 3.0})) == 6.0
    with pytest.raises(TypeError):
        rebuild(x, replace={x: T.dvector()})
    wide = T.dvector("v")
    _, found, _ = rebuild(x + 1.0, replace={x: wide}, rebuild_strict=False)
    np.testing.assert_array_equal(found.eval({wide: [1.0, 2.0]}), [2.0, 3.0])


def test_default_updates(theano, rebuild):
    s, t = theano.shared(1.0, "s"), theano.shared(2.0, "t")
    s.default_update = s + t
    t.default_update = t * 2
    _, _, (_, updates, pairs, shared) = rebuild(s + 1)
    assert list(updates) == [s, t] == shared == [v for v, _ in pairs]
    assert float(updates[s].eval()) == 3.0
    assert list(rebuild(s + 1, no_default_updates=[t])[2][1]) == [s]
    assert not rebuild(s + 1, no_default_updates=True)[2][1]
    module = importlib.import_module("theano.compile.pfunc")
    assert module.rebuild_collect_shared is rebuild
    assert list(module.iter_over_pairs({1: 2})) == [(1, 2)]


def test_what_is_no_output(theano, rebuild):
    assert rebuild(None)[1] == []
    with pytest.raises(TypeError, match="no variable"):
        rebuild([3])
    with pytest.raises(TypeError, match="no shared variable"):
        rebuild(None, updates=[(theano.tensor.dscalar(), 1.0)])
