"""Cast policies: the one in force, and policies of higher layers."""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.config import config
from symcomp.ops import casting

POLICIES = ("numpy+floatX", "numpy", "theano")


@pytest.mark.parametrize("floatx", ["float32", "float64"])
@pytest.mark.parametrize("policy", POLICIES)
def test_numbers_among_integers(policy, floatx):
    with config.change_flags(cast_policy=policy, floatX=floatx):
        x = T.vector(dtype="int16")
        assert (x * 2).dtype == "int16"
        assert (x * 0.5).dtype == ("float64" if policy == "numpy" else floatx)
        assert (x * np.float64(0.5)).dtype == (floatx if policy == "theano" else "float64")


@pytest.mark.parametrize("policy", POLICIES)
def test_functions_and_masks_of_integers(policy):
    with config.change_flags(cast_policy=policy):
        narrow = T.vector(dtype="int8")
        assert T.exp(narrow).dtype == ("float32" if policy == "theano" else "float16")
        mask = T.switch(T.vector(dtype="bool"), 1, 0)
        assert mask.dtype == ("int8" if policy == "theano" else "int64")
        wide = narrow + 300 if policy == "theano" else None
        assert wide is None or wide.dtype == "int16"


def test_a_policy_of_a_higher_layer(monkeypatch):
    class Wide(casting.CastPolicy):
        def integer_among(self, number, met):
            return "int64"

    monkeypatch.setitem(casting._policies, "numpy", Wide())
    with config.change_flags(cast_policy="numpy"):
        assert (T.vector(dtype="int8") + 1).dtype == "int64"
    assert (T.vector(dtype="int8") + 1).dtype == "int8"
