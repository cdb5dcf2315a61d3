"""The examples do what they say."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_are_learned(tmp_path):
    pytest.importorskip("sklearn")
    errors = load("train_digits").main(["--output", str(tmp_path)])
    assert errors["network"] <= 0.03
    assert errors["logistic regression"] <= 0.06
    for name in ("digits_learning.png", "digits_weights.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_rosenbrock_is_minimized():
    result = load("rosenbrock_newton").main(["--dimensions", "20"])
    np.testing.assert_allclose(result.x, 1, atol=1e-6)
