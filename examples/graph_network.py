"""Label the members of Zachary's karate club from two of them: a two-layer graph convolution.

    python examples/graph_network.py [--hidden N] [--steps N] [--seed N] [--output DIR]

The graph has the 34 members of a club that split in two, and their 78 friendships (W. W. Zachary,
"An information flow model for conflict and fission in small groups", Journal of Anthropological
Research 33, 1977). Only the sides of the instructor and of the president are given. The network is
that of T. Kipf and M. Welling (arXiv:1609.02907): two products with the normalized adjacency
matrix, which stays sparse, also in the gradients. Writes ``graph_network.png``: the members
where the last layer puts them while it learns.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import matplotlib
import numpy as np
import scipy.sparse
from matplotlib import pyplot as plt

import symcomp
import symcomp.tensor as T
from symcomp import sparse

matplotlib.use("Agg")  # pictures go to files; no screen is needed

# The friends of each member among those before; the instructor is member 0, the president 33.
FRIENDS = {
    1: [0], 2: [0, 1], 3: [0, 1, 2], 4: [0], 5: [0], 6: [0, 4, 5], 7: [0, 1, 2, 3], 8: [0, 2],
    9: [2], 10: [0, 4, 5], 11: [0], 12: [0, 3], 13: [0, 1, 2, 3], 16: [5, 6], 17: [0, 1],
    19: [0, 1], 21: [0, 1], 25: [23, 24], 27: [2, 23, 24], 28: [2], 29: [23, 26], 30: [1, 8],
    31: [0, 24, 25, 28], 32: [2, 8, 14, 15, 18, 20, 22, 23, 29, 30, 31],
    33: [8, 9, 13, 14, 15, 18, 19, 20, 22, 23, 26, 27, 28, 29, 30, 31, 32],
}  # fmt: skip
# Members who stayed with the instructor.
INSTRUCTOR = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21]
MEMBERS = 34
KNOWN = np.array([0, 33])


def normalized_adjacency() -> Any:
    """Return the adjacency matrix with loops, divided by the roots of the degrees of both ends."""
    pairs = [(i, j) for i, friends in FRIENDS.items() for j in friends]
    rows, columns = np.array(pairs).T
    lower = scipy.sparse.coo_array((np.ones(len(pairs)), (rows, columns)), (MEMBERS, MEMBERS))
    adjacency = (lower + lower.T + scipy.sparse.eye_array(MEMBERS)).tocsr()
    scale = scipy.sparse.diags_array(1 / np.sqrt(adjacency.sum(axis=1)))
    return (scale @ adjacency @ scale).tocsr()


def sides() -> np.ndarray:
    """Return 0 for members who stayed with the instructor, 1 for those with the president."""
    labels = np.ones(MEMBERS, "int64")
    labels[INSTRUCTOR] = 0
    return labels


class Network:
    """Two graph convolutions; each member's features are its number, one-hot."""

    def __init__(self, adjacency: Any, hidden: int, rng: np.random.Generator) -> None:
        self.adjacency = symcomp.shared(adjacency, name="adjacency")
        shapes = {"W": (MEMBERS, hidden), "V": (hidden, 2)}
        self.params = [
            symcomp.shared(rng.normal(size=s) * np.sqrt(2 / sum(s)), name=name)
            for name, s in shapes.items()
        ]
        W, V = self.params
        # The one-hot features are the identity, so the first product with W is W itself.
        self.features = T.tanh(sparse.dot(self.adjacency, W))
        self.scores = sparse.dot(self.adjacency, T.dot(self.features, V))

    def training(self, labels: np.ndarray, rate: float) -> Any:
        """Compile a step on the labels of the known members, which returns the cost before it."""
        likely = T.nnet.log_softmax(self.scores)
        decay = 5e-4 * sum((p**2).sum() for p in self.params)
        cost = -likely[KNOWN, labels[KNOWN]].mean() + decay
        updates = sparse.adam(cost, self.params, rate)
        return symcomp.function([], cost, updates=updates)


def main(arguments: list[str] | None = None) -> float:
    """Train, draw, and return the share of members whose side is found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--hidden", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    labels = sides()
    network = Network(normalized_adjacency(), options.hidden, np.random.default_rng(options.seed))
    step = network.training(labels, 0.02)
    scores = symcomp.function([], network.scores)
    times = {0, options.steps // 40, options.steps // 8}
    seen = {}
    for k in range(options.steps):
        if k in times:
            seen[k] = scores()
        cost = float(step())
    found = scores()
    share = float((found.argmax(axis=1) == labels).mean())
    print(f"cost {cost:.4f} after {options.steps} steps; {share:.1%} of {MEMBERS} sides are found")
    seen[options.steps] = found
    draw(seen, labels, options.output / "graph_network.png")
    return share


def draw(seen: dict[int, np.ndarray], labels: np.ndarray, path: pathlib.Path) -> None:
    """Draw the members by their two scores, after some numbers of steps."""
    figure, axes = plt.subplots(1, len(seen), figsize=(3 * len(seen), 3), layout="constrained")
    for ax, (steps, scores) in zip(np.atleast_1d(axes), seen.items(), strict=True):
        for i, friends in FRIENDS.items():
            for j in friends:
                ax.plot(*scores[[i, j]].T, color="0.85", linewidth=0.6, zorder=1)
        ax.scatter(*scores.T, c=labels, cmap="coolwarm", s=25, zorder=2)
        ax.scatter(*scores[KNOWN].T, facecolors="none", edgecolors="black", s=70, zorder=3)
        ax.set_title(f"after {steps} steps")
        ax.set_xticks([])
        ax.set_yticks([])
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
