"""The C functions of rows on arrays: dtypes, broadcasting, results in given arrays."""

import numpy as np
import pytest

from symcomp.codegen import ufunc_module
from symcomp.ops import _compiled_ufuncs as ufuncs
from symcomp.ops.compiled_ufuncs import COMPILED, CompiledFunction


def test_the_module_was_compiled_from_the_present_text():
    """Else install symcomp again: its C functions have changed."""
    assert ufunc_module.version() == ufuncs.VERSION


def test_there_is_a_ufunc_for_each_row():
    names = COMPILED | ufunc_module.WITH_PARAMETERS.keys()
    assert len(names) > 60
    for name in names:
        ufunc = getattr(ufuncs, name)
        assert ufunc.nin == ufunc_module.arguments_of(name)
        letters = ("e" * ufunc.nin + "->e", "f" * ufunc.nin + "->f", "d" * ufunc.nin + "->d")
        assert tuple(ufunc.types) == letters


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_results_have_the_dtype_of_the_arguments(dtype):
    tan = CompiledFunction("tan")
    x = np.linspace(-1, 1, 7).astype(dtype)
    found = tan(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.tan(x.astype(float)), rtol=2 * np.finfo(dtype).eps)


def test_integers_become_floats():
    found = CompiledFunction("tan")(np.array([0, 1, -3]))
    assert found.dtype == "float64"
    np.testing.assert_allclose(found, np.tan([0.0, 1.0, -3.0]), rtol=1e-15)


def test_strides_and_shapes():
    tan, x = CompiledFunction("tan"), np.linspace(-1, 1, 24).reshape(4, 6)
    np.testing.assert_array_equal(tan(x.T[::-2, ::3]), tan(x).T[::-2, ::3])
    assert tan(x[:0]).shape == (0, 6)
    assert type(tan(x[0, 0, None][0])) is np.ndarray


def test_results_in_given_arrays():
    tan, x = CompiledFunction("tan"), np.linspace(-1, 1, 9)
    expected, place = tan(x), np.empty(9)
    assert tan(x, place) is place and tan(x, x) is x
    np.testing.assert_array_equal(place, expected)
    np.testing.assert_array_equal(x, expected)


def test_a_row_that_is_newer_than_the_module():
    newer = CompiledFunction("newer_than_the_module")
    COMPILED.remove("newer_than_the_module")
    with pytest.raises(ImportError, match="newer_than_the_module is not .* install symcomp again"):
        newer(np.ones(2))
