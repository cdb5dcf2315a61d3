"""Sample a posterior by Hamiltonian Monte Carlo, with whole trajectories in a compiled function.

    python examples/hamiltonian.py [--draws N] [--chains N] [--seed N] [--output DIR]

The model is logistic regression: 569 tumours, benign or malignant, by the means of ten measurements
of their cells (UCI's breast cancer data, from scikit-learn), with a normal prior of the weights.
One call draws momenta for all chains, follows Hamilton's equations by leapfrog steps in a ``scan``,
and accepts or rejects each chain. The step size is adapted in the first half of the draws. Writes
``hamiltonian.png``: the posterior of the weights, traces, and R-hat of each weight.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

import symcomp
import symcomp.tensor as T
from symcomp.tensor.random import RandomStream

matplotlib.use("Agg")  # pictures go to files; no screen is needed

FEATURES = 10
LEAPS = 10
TARGET = 0.8  # the acceptance that the step size is adapted to


def log_density(weights: Any, x: np.ndarray, sign: np.ndarray) -> Any:
    """Return the logarithm of the posterior density of each chain's weights, (chains,)."""
    margins = T.dot(weights, x.T) * sign
    return T.log_sigmoid(margins).sum(axis=1) - (weights**2).sum(axis=1) / 8


def compile_sampler(x: np.ndarray, sign: np.ndarray, chains: int, seed: int) -> Any:
    """Compile a function of the step size that moves all chains.

    It returns their weights and the mean probability of acceptance; an update keeps the weights.
    """
    size = x.shape[1]
    weights = symcomp.shared(np.zeros((chains, size)), name="weights")
    step_size = T.dscalar("step size")
    stream = RandomStream(seed)
    momentum = stream.normal(size=(chains, size), dtype="float64")

    def slope(position: Any) -> Any:
        return symcomp.grad(log_density(position, x, sign).sum(), position)

    def leap(position: Any, momentum: Any, step_size: Any) -> Any:
        half = momentum + step_size / 2 * slope(position)
        moved = position + step_size * half
        return moved, half + step_size / 2 * slope(moved)

    (positions, momenta), _ = symcomp.scan(
        leap, outputs_info=[weights, momentum], non_sequences=step_size, n_steps=LEAPS
    )
    proposed, arrived = positions[-1], momenta[-1]
    before = log_density(weights, x, sign) - (momentum**2).sum(axis=1) / 2
    after = log_density(proposed, x, sign) - (arrived**2).sum(axis=1) / 2
    accepted = T.exp(T.minimum(after - before, 0.0))
    chosen = T.lt(stream.uniform(size=(chains,), dtype="float64"), accepted)
    new = T.switch(chosen[:, None], proposed, weights)
    return symcomp.function([step_size], [new, accepted.mean()], updates=[(weights, new)])


def sample(move: Any, draws: int) -> tuple[np.ndarray, float]:
    """Adapt the step size in half of the draws; return the others, (draws, chains, weights)."""
    log_step, kept, rates = np.log(0.1), [], []
    for i in range(2 * draws):
        weights, accepted = move(np.exp(log_step))
        if i < draws:
            log_step += (float(accepted) - TARGET) * (i + 1) ** -0.6
        else:
            kept.append(weights)
            rates.append(float(accepted))
    print(f"step size {np.exp(log_step):.3f}, accepted {100 * np.mean(rates):.0f} %")
    return np.stack(kept), float(np.mean(rates))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """Return the split R-hat of each weight (A. Gelman and others, *Bayesian Data Analysis*)."""
    half = len(draws) // 2
    parts = np.concatenate([draws[:half], draws[half : 2 * half]], axis=1)
    within = parts.var(axis=0, ddof=1).mean(axis=0)
    between = parts.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Sample, draw, and return what the chains tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    data = load_breast_cancer()
    x = data.data[:, :FEATURES]
    x = np.concatenate([(x - x.mean(axis=0)) / x.std(axis=0), np.ones((len(x), 1))], axis=1)
    names = [*(name.removeprefix("mean ") for name in data.feature_names[:FEATURES]), "constant"]
    move = compile_sampler(x, 1.0 - 2.0 * data.target, options.chains, options.seed)
    started = time.perf_counter()
    draws, accepted = sample(move, options.draws)
    seconds = time.perf_counter() - started
    trajectories = 2 * options.draws * options.chains
    print(f"{trajectories} trajectories of {LEAPS} steps in {seconds:.1f} s")
    worst = r_hat(draws)
    print(f"largest R-hat: {worst.max():.3f}")
    draw(draws, worst, names, options.output / "hamiltonian.png")
    return {"draws": draws, "accepted": accepted, "r_hat": worst, "names": names}


def draw(draws: np.ndarray, worst: np.ndarray, names: list[str], file: pathlib.Path) -> None:
    """Draw the posterior of each weight and the traces of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    flat = draws.reshape(-1, len(names))
    axes[0].boxplot(flat, orientation="horizontal", whis=(2.5, 97.5), showfliers=False)
    labels = [f"{name} ({r:.2f})" for name, r in zip(names, worst, strict=True)]
    axes[0].set_yticks(range(1, len(names) + 1), labels)
    axes[0].axvline(0, color="gray", linewidth=0.8)
    axes[0].set_title("Weights of malignancy (R-hat)")
    for chain in range(draws.shape[1]):
        axes[1].plot(draws[:, chain, 1], linewidth=0.5)
    axes[1].set(title=f"Traces of {names[1]}", xlabel="draw")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
