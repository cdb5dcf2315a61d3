"""Variables in programs written for Theano: their methods and attributes where these differ."""

from typing import Any

import numpy as np
import pytest

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


def test_operators_leave_what_is_no_tensor_to_it() -> None:
    class Kernel:
        def __rmul__(self, factor: object) -> tuple[str, object]:
            return "scaled", factor

    x = T.dscalar("x")
    assert x * Kernel() == ("scaled", x)
    with pytest.raises(TypeError, match="unsupported operand"):
        x + Kernel()

    class Values:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array([1.0, 2.0])

    assert np.array_equal((x * Values()).eval({x: 3.0}), [3.0, 6.0])


def test_values_of_a_wider_dtype_are_written(theano: Any) -> None:
    tensor = theano.tensor
    x, y = tensor.ivector("x"), tensor.lscalar("y")
    for write, expected in ((tensor.inc_subtensor, [1, 7]), (tensor.set_subtensor, [1, 5])):
        z = write(x[[1]], y)
        assert z.dtype == "int32"
        assert np.array_equal(z.eval({x: np.int32([1, 2]), y: 5}), expected)
    with pytest.raises(TypeError, match="cannot hold without loss"):
        tensor.set_subtensor(x[0], tensor.dscalar())
