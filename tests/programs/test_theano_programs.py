"""Programs of the classic kind, written for ``import theano``, run unchanged."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
from symcomp.compat import install_as_theano
from symcomp.compat.modules import DEFAULTS, PATCHES
from symcomp.config import config
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator

PROGRAMS = Path(__file__).parent / "compat"


@pytest.fixture(autouse=True)
def theano(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(PROGRAMS)
    for name in DEFAULTS:
        monkeypatch.setitem(config.values, name, config._options[name].default)
        monkeypatch.setitem(config._origins, name, "default")
    for kind, members in PATCHES.items():
        for name, member in members.items():
            monkeypatch.setattr(kind, name, member, raising=False)
    install_as_theano()
    yield
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if name.partition(".")[0] == "theano" or (path and Path(path).parent == PROGRAMS):
            del sys.modules[name]


def program(name: str) -> Any:
    return importlib.import_module(name)


def falls(losses: Any, to: float) -> bool:
    """Tell whether the mean of the last tenth is at most ``to`` times that of the first."""
    tenth = max(1, len(losses) // 10)
    return bool(np.mean(losses[-tenth:]) <= to * np.mean(losses[:tenth]))


def check_gradient(cost: Any, inputs: Any, values: Any, parameters: Any) -> None:
    """Compare gradients with respect to shared variables with central differences."""
    of_parameters = symcomp.function(list(inputs), symcomp.grad(cost, list(parameters)))
    of_cost = symcomp.function(list(inputs), cost)
    rng = np.random.default_rng(0)
    for parameter, slope in zip(parameters, of_parameters(*values), strict=True):
        direction = rng.normal(size=slope.shape)
        at, costs = parameter.get_value(), []
        for step in (1e-5, -1e-5):
            parameter.set_value(at + step * direction)
            costs.append(float(of_cost(*values)))
        parameter.set_value(at)
        difference = (costs[0] - costs[1]) / 2e-5
        assert np.sum(slope * direction) == pytest.approx(difference, rel=1e-5, abs=1e-9)


def test_logistic_regression() -> None:
    module = program("logistic_regression")
    costs, errors, model, cost, inputs = module.train(n_epochs=4)
    assert falls(costs, 0.7)
    assert errors[-1] < 0.2
    x, y = module.blobs(10, 12, 5, 3)
    check_gradient(cost, inputs, [x, y.astype("int32")], model.params)


def test_multilayer_perceptron() -> None:
    module = program("multilayer_perceptron")
    costs, error, model, cost, inputs = module.train()
    assert falls(costs, 0.3)
    assert error < 0.05
    values = module.two_moons(np.random.RandomState(0), 10)
    check_gradient(cost, inputs, values, model.params)


def test_elman_network() -> None:
    module = program("elman_network")
    losses, network, cost, inputs = module.train()
    assert falls(losses, 0.15)
    sequence = np.random.RandomState(1).normal(size=(6, 1))
    check_gradient(cost, inputs, [sequence, sequence], network.params)


def test_lstm() -> None:
    module = program("lstm")
    costs, right, model, cost, inputs = module.train()
    assert falls(costs, 0.2)
    assert right > 0.95
    values = module.sentences(np.random.RandomState(1), 4)
    check_gradient(cost, inputs, values, model.params)


def test_word_vectors() -> None:
    costs, groups = program("word_vectors").train()
    assert falls(costs, 0.6)
    own = [group.count(word // 4) for word, group in enumerate(groups)]
    assert np.mean(own) > 3.5  # of the four words nearest to each, itself among them


def test_convolutional_network() -> None:
    module = program("convolutional_network")
    costs, error, params, cost, inputs = module.train()
    assert falls(costs, 0.3)
    assert error < 0.05
    check_gradient(cost, inputs, module.stripes(np.random.RandomState(1), 20), params)


def test_denoising_autoencoder() -> None:
    costs, before, after, _, _ = program("denoising_autoencoder").train()
    assert falls(costs, 0.3)
    assert after < 0.2 * before  # the share of wrong bits


def test_restricted_boltzmann_machine() -> None:
    likelihoods, bars, _ = program("restricted_boltzmann_machine").train()
    assert np.mean(likelihoods[-100:]) > -1.0 > np.mean(likelihoods[:100])
    assert bars > 0.6  # of 512 pictures, 6 are bars


def test_hamiltonian_monte_carlo() -> None:
    samples, rate, _ = program("hamiltonian_monte_carlo").train()
    assert np.allclose(samples.mean(axis=0), [1.0, -2.0], atol=0.1)
    assert np.allclose(np.cov(samples.T), [[1.0, 0.6], [0.6, 2.0]], atol=0.15)
    assert 0.8 < rate < 0.97


def test_stacked_autoencoders() -> None:
    pretraining, costs, error, stack = program("stacked_autoencoders").train()
    assert pretraining[5] < 0.8 * pretraining[0] and pretraining[11] < 0.9 * pretraining[6]
    assert costs[-1] < 0.2 * costs[0]
    assert error < 0.1
    x, y = program("stacked_autoencoders").noisy_patterns(np.random.RandomState(1), 5)
    check_gradient(stack.cost, [stack.x, stack.y], [x, y.astype("int32")], stack.params)


def test_attention() -> None:
    module = program("attention")
    costs, alphas, tparams, cost, inputs = module.train()
    assert falls(costs, 0.6)
    assert alphas.shape == (4, 5, 4)
    np.testing.assert_allclose(alphas.sum(axis=2), 1)
    values = module.batch(np.random.RandomState(1), 3, 6)
    check_gradient(cost, inputs, values, tparams.values())


def test_mixture_density_network() -> None:
    before, after, samples, network = program("mixture_density").train()
    assert before > 0 and after < -1
    # At 0.5, the function has three values.
    shares = [((samples > low) & (samples < low + 0.2)).mean() for low in (0.05, 0.4, 0.75)]
    assert min(shares) > 0.1, shares
    x, y = program("mixture_density").points(np.random.RandomState(1), 5)
    check_gradient(network.cost, [network.x, network.y], [x, y], [network.theta])


def test_gaussian_process() -> None:
    process, found, x, y = program("gaussian_process").train()
    for h in (np.zeros(3), found):
        *losses, first, second, third = process.forms(h, x, y)
        np.testing.assert_allclose(losses, losses[0], rtol=1e-6)
        np.testing.assert_allclose([second, third], [first, first], rtol=1e-4, atol=1e-6)
    slopes = [process.loss(found + 1e-5 * e, x, y)[1] for e in np.vstack([np.eye(3), -np.eye(3)])]
    curvature = (np.array(slopes[:3]) - np.array(slopes[3:])) / 2e-5
    np.testing.assert_allclose(process.curvature(found, x, y), curvature, rtol=1e-4, atol=1e-3)
    assert np.linalg.eigvalsh(curvature).min() > 0
    mean, variance = process.predict(found, x, y, x)
    assert abs(mean - np.sin(2 * x[:, 0])).max() < 0.2 and (variance > 0).all()


def test_gauss_newton() -> None:
    costs, network, product, (x, y) = program("gauss_newton").train()
    assert costs[0] > 1 and costs[-1] < 0.1
    rng = np.random.RandomState(1)
    v, w = ([rng.randn(*p.get_value().shape) for p in network.params] for _ in range(2))
    one, other = product(x, y, 0.0, *v), product(x, y, 0.0, *w)
    dot = program("gauss_newton").dot
    assert dot(one, w) == pytest.approx(dot(v, other), rel=1e-8)
    assert dot(one, v) >= 0


def test_annotated_graphs() -> None:
    module = program("annotated_graphs")
    before, costs, after, model = module.train()
    assert falls(costs, 0.4)
    assert after < 0.15 < before
    assert module.saved_step(model)
    whole = module.Graph([model.cost])
    assert whole.inputs == [model.x, model.y]
    recurrent = model.recurrent
    assert set(whole.of_role("parameter")) == {model.V, model.U, recurrent.W, recurrent.start}
    (loop,) = whole.scans
    assert all(v in whole.inner for v in loop.inputs + loop.outputs)
    (state,) = [v for v in whole.inner if getattr(v.tag, "role", "") == "state"]
    assert state.name == "h"
    values = module.batch(np.random.RandomState(1), 4, 5)
    assert recurrent.apply(values[0] @ np.ones((1, 8)), with_start=True).eval().shape == (5, 5, 8)
    check_gradient(model.cost, [model.x, model.y], values, whole.of_role("parameter"))


def test_spaces_and_costs() -> None:
    module = program("spaces_and_costs")
    before, after, descent, shapes = module.train()
    assert module.cuda_ndarray is None
    assert after[0] < 0.5 < before[0]
    assert after[1] < 0.05 < before[1]
    assert set(shapes) == {(20, 36), (30, 36)}
    norms = np.linalg.norm(descent.network.V.get_value(), axis=0)
    assert (norms < 1.5 + 1e-6).all()
    values = module.pictures(np.random.RandomState(1), 4)
    check_gradient(descent.cost, descent.inputs, values, descent.network.params())
    with pytest.raises(TypeError, match="no dtype"):
        module.Space(3, "float128")
    with pytest.raises(ValueError, match="is computed by"):
        module.argument_of_softmax(descent.network.maps(descent.inputs[0]))
    (z,) = descent.network.maps(descent.inputs[0]).owner.inputs
    assert module.argument_of_sigmoid(descent.network.maps(descent.inputs[0])).type == z.type


def test_a_script_is_run_with_its_arguments() -> None:
    script = str(PROGRAMS / "logistic_regression.py")
    command = [sys.executable, "-m", "symcomp.compat", script, "2"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split(":")[0] for line in found.stdout.splitlines()] == ["epoch 0", "epoch 1"]


def test_gpu_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.values, "device", "emu")
    before = set_driver("emu", Emulator())
    module = program("gpu_network")
    assert module.cuda_ndarray is None and module.pygpu is None
    with config.change_flags(cflags="-O0"):
        costs, right, step, network = module.train()
    set_driver("emu", before)
    assert falls(costs, 0.3) and right > 0.9
    assert all(map(module.lives_on_the_gpu, network.params))
    into, out_of = module.transfers(step)
    assert into <= 3 and out_of == 1
    windows = ("Convolve", "MaxPool", "ToPositions")
    assert not any(str(node.op).startswith(windows) for node in step.maker.fgraph.nodes)
