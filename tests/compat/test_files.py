"""``theano.misc.pkl_utils``: zip files with pickles and arrays."""

import io
import zipfile

import numpy as np
import pytest

import symcomp
from symcomp.compat import files


def test_shared_variables_by_their_names(theano):
    utils = theano.misc.pkl_utils
    W, b = theano.shared(np.eye(2), "W"), theano.shared(np.ones(2), "b")
    x = theano.tensor.dmatrix("x")
    again, unnamed = theano.shared(np.zeros(3), "W"), theano.shared(np.arange(2.0))
    model = {"y": x.dot(W) + b, "x": x, "both": [W, again, unnamed], "plain": np.full(4, 7)}
    file = io.BytesIO()
    utils.dump(model, file)
    file.seek(0)
    arrays = np.load(file)
    assert {"W", "W_2", "b", "array_0", "array_1", "pkl"} == set(arrays.files)
    np.testing.assert_array_equal(arrays["W"], np.eye(2))
    found = utils.load(file)
    y = found["y"].eval({found["x"]: [[1.0, 2.0]]})
    np.testing.assert_array_equal(y, [[2.0, 3.0]])
    np.testing.assert_array_equal(found["plain"], np.full(4, 7))
    assert [v.get_value().tolist() for v in found["both"][1:]] == [[0, 0, 0], [0, 1]]
    # One shared variable stays one.
    found["both"][0].set_value(np.zeros((2, 2)))
    y = found["y"].eval({found["x"]: [[1.0, 2.0]]})
    np.testing.assert_array_equal(y, [[1.0, 1.0]])


def test_ways_to_write_arrays():
    s = symcomp.shared(np.ones(2), "s")
    for persistent_id, names in (
        (files.PersistentNdarrayID, {"array_0", "pkl"}),
        (None, {"pkl"}),
    ):
        file = io.BytesIO()
        files.dump(s, file, persistent_id=persistent_id)
        assert set(zipfile.ZipFile(file).namelist()) == names
        assert files.load(file).get_value().tolist() == [1.0, 1.0]


class Strict(files.PersistentSharedVariableID):
    def __init__(self, zip_file):
        super().__init__(zip_file, allow_unnamed=False, allow_duplicates=False)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a", None], "has no name"), (["a", "a"], "two .* called 'a'"), (["pkl"], "cannot be")],
)
def test_names_that_are_refused(names, message):
    shared = [symcomp.shared(np.full(2, i), name) for i, name in enumerate(names)]
    with pytest.raises(ValueError, match=message):
        files.dump(shared, io.BytesIO(), persistent_id=Strict)


def test_one_shared_variable_twice_is_no_duplicate():
    s = symcomp.shared(np.ones(2), "s")
    file = io.BytesIO()
    files.dump([s, s], file, persistent_id=Strict)
    a, b = files.load(file)
    assert a is b


def test_one_object_after_the_other():
    file = io.BytesIO()
    files.StripPickler(file, 2).dump([1, 2])
    assert file.getvalue()
