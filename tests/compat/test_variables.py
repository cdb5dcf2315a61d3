"""Variables in programs written for Theano: their methods and attributes where these differ."""

from typing import Any

import numpy as np

import symcomp.tensor as T


def test_a_list_with_slices_is_an_index_of_several_axes() -> None:
    x, value = T.dmatrix("x"), np.arange(6.0).reshape(2, 3)
    key = [slice(None), slice(None, None, -1)]
    assert np.array_equal(x[key].eval({x: value}), value[:, ::-1])
    assert np.array_equal(x[[1, 0]].eval({x: value}), value[[1, 0]])
    written = T.set_subtensor(x[[slice(None), 0]], 7.0).eval({x: value})
    assert np.array_equal(written, [[7, 1, 2], [7, 4, 5]])


def test_an_integer_to_a_negative_power_is_a_float(theano: Any) -> None:
    tensor = theano.tensor
    n = tensor.lvector("n")
    for z in (n**-2, tensor.pow(n, -2), n ** tensor.constant(-2)):
        assert z.dtype == "float64"
        assert np.array_equal(z.eval({n: [1, 2]}), [1.0, 0.25])
    assert (n**2).dtype == "int64" and (tensor.fscalar() ** -2).dtype == "float32"


def test_numpy_makes_one_object_of_a_variable() -> None:
    for x in (T.dscalar("x"), T.dvector("x")):
        objects = np.atleast_1d(x)
        assert objects.shape == (1,) and objects[0] is x
        assert not (objects == 1).any()
    assert np.sum(x).eval({x: [1.0, 2.0]}) == 3.0
