"""The examples do what they say."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


def load(name):
    full_name = f"example_{name}"  # a program of tests/programs/compat may have the same name
    spec = importlib.util.spec_from_file_location(full_name, ROOT / "examples" / f"{name}.py")
    module = sys.modules[full_name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_are_learned(tmp_path):
    pytest.importorskip("sklearn")
    errors = load("train_digits").main(["--output", str(tmp_path), "--epochs", "20"])
    assert errors["network"] <= 0.03
    assert errors["logistic regression"] <= 0.06
    for name in ("digits_learning.png", "digits_weights.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_rosenbrock_is_minimized():
    result = load("rosenbrock_newton").main(["--dimensions", "20"])
    np.testing.assert_allclose(result.x, 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_text_is_learned_and_training_resumes(kind, tmp_path, capsys):
    pytest.importorskip("tqdm")
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat; the dog sat on the log.\n" * 200, encoding="utf-8")
    example = load("char_rnn")

    def train(state, steps, *more):
        options = ["--hidden", "24", "--batch", "8", "--length", "12", "--rate", "0.02"]
        options += ["--sample", "40", "--steps", str(steps), "--state", str(state), *more]
        return example.main([str(text), "--model", kind, *options])

    whole, parts = tmp_path / "whole.npz", tmp_path / "parts.npz"
    perplexity = train(whole, 80)
    assert perplexity < 2
    train(parts, 30)
    capsys.readouterr()
    assert train(parts, 80, "--resume") == perplexity
    written = capsys.readouterr().out.rstrip("\n").split("from there\n")[1]
    assert len(written) <= 40
    assert "the " in written
    about, values = example.load(whole)
    again, others = example.load(parts)
    assert about == again
    assert about["done"] == 80
    for name, value in values.items():
        np.testing.assert_array_equal(value, others[name], err_msg=name)


def test_a_text_that_is_too_short_is_refused():
    example = load("char_rnn")
    with pytest.raises(ValueError, match="41 are needed"):
        example.Batches(np.zeros(20, np.int32), batch=4, length=10)


def test_sides_of_a_club_are_found(tmp_path):
    pytest.importorskip("matplotlib")
    assert load("graph_network").main(["--output", str(tmp_path)]) >= 0.9
    assert (tmp_path / "graph_network.png").read_bytes().startswith(b"\x89PNG")


def test_conductivity_is_recovered(tmp_path):
    pytest.importorskip("matplotlib")
    found = load("poisson").main(["--side", "16", "--steps", "80", "--output", str(tmp_path)])
    # Central differences are of second order: at side 40 the error is 1.7e-3, 6 times less.
    assert max(found["errors"].values()) < 0.02
    assert found["misfits"][-1] < 0.02 * found["misfits"][0]
    assert found["distance"] < 0.6 * found["before"]
    assert (tmp_path / "poisson.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def picture(tmp_path):
    """Give the options for a folder, and check that the example draws its picture there."""
    pytest.importorskip("sklearn")
    yield ["--output", str(tmp_path)]
    (drawn,) = tmp_path.glob("*.png")
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_hares_and_lynxes_are_fitted(picture):
    found = load("ode_parameters").main(["--steps", "10", *picture])
    # Published estimates: B. Carpenter, "Predator-prey population dynamics", Stan, 2018.
    published = [0.545, 0.0277, 0.0240, 0.800, 33.9, 5.93]
    np.testing.assert_allclose([*found["parameters"].values()], published, rtol=0.05)
    assert found["spread"] < 0.26


def test_a_gaussian_process_predicts(picture):
    found = load("gaussian_process").main(["--trained", "150", *picture])
    assert found["errors"]["process"] < 0.8
    assert 0.9 < found["inside"] < 0.99


def test_a_posterior_is_sampled(picture):
    example = load("hamiltonian")
    found = example.main(["--draws", "200", *picture])
    assert 0.65 < found["accepted"] < 0.95
    assert found["r_hat"].max() < 1.1
    means = dict(zip(found["names"], found["draws"].mean(axis=(0, 1)), strict=True))
    # The mode of the posterior, by Newton's method, is 1.55 for the texture.
    assert 1.3 < means["texture"] < 2.0


def test_a_stiffness_is_found(picture):
    errors = load("custom_op").main(["--points", "120", *picture])
    assert errors["found"] < 0.6 * min(errors["too soft"], errors["too stiff"])


def test_implicit_gradients_are_those_of_the_iterations(picture):
    found = load("implicit_layer").main(["--epochs", "3", *picture])
    assert found["difference"] < 1e-6
    assert found["error"] < 0.15


def test_curvature_helps(picture):
    costs = load("hessian_free").main(["--steps", "8", "--seconds", "1000", *picture])
    assert costs["Hessian-free"] < 0.8 * costs["momentum"]


def test_a_network_is_profiled(picture):
    found = load("profile_network").main(["--calls", "12", "--batch", "50", *picture])
    assert found["costs"][-1] < found["costs"][0]
    assert found["profile"]["functions"][0]["calls"] == 12
    assert found["memory"].planned < found["memory"].unplanned
