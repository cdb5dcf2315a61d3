"""Variables in programs written for Theano: their methods and attributes where these differ."""

import numpy as np

import symcomp.tensor as T


def test_a_list_with_slices_is_an_index_of_several_axes() -> None:
    x, value = T.dmatrix("x"), np.arange(6.0).reshape(2, 3)
    key = [slice(None), slice(None, None, -1)]
    assert np.array_equal(x[key].eval({x: value}), value[:, ::-1])
    assert np.array_equal(x[[1, 0]].eval({x: value}), value[[1, 0]])
    written = T.set_subtensor(x[[slice(None), 0]], 7.0).eval({x: value})
    assert np.array_equal(written, [[7, 1, 2], [7, 4, 5]])
