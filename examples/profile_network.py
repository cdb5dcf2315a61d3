"""Profile a training step of a convolutional network: time by op, and memory while a call runs.

    python examples/profile_network.py [--batch N] [--calls N] [--output DIR] [--page FILE]

The network has two convolutions, a pooling and two dense layers, on scikit-learn's digits. The
profile counts in the machine; the memory report follows every value of a call, once with an array
for each value and once with the storage plan of the compiler. Writes ``profile_network.png``; with
``--page`` also a page that shows the program as a graph, coloured by time.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

import symcomp
import symcomp.tensor as T

matplotlib.use("Agg")  # pictures go to files; no screen is needed


class Network:
    """A convolutional classifier: its parameters, and a function that takes a training step."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.parameters: list[Any] = []
        x, y = T.ftensor4("x"), T.ivector("y")
        h = T.nnet.relu(self.convolution(x, 1, 16, "first"))
        h = T.nnet.relu(self.convolution(h, 16, 32, "second"))
        h = T.signal.pool.pool_2d(h, (2, 2), ignore_border=True).flatten(2)
        h = T.nnet.relu(self.dense(h, 32 * 16, 64, "hidden"))
        log_p = T.log_softmax(self.dense(h, 64, 10, "output"))
        cost = -log_p[T.arange(y.shape[0]), y].mean()
        rate = np.float32(0.05)
        gradients = symcomp.grad(cost, self.parameters)
        self.step = symcomp.function(
            [x, y],
            cost,
            updates=[(p, p - rate * g) for p, g in zip(self.parameters, gradients, strict=True)],
            profile="a training step",
            name="step",
        )

    def parameter(self, shape: tuple[int, ...], inputs: int, name: str) -> Any:
        """Make a parameter, drawn with the spread of He and others (2015)."""
        value = self.rng.normal(size=shape) * np.sqrt(2 / inputs) if inputs else np.zeros(shape)
        self.parameters.append(symcomp.shared(value.astype("float32"), name=name))
        return self.parameters[-1]

    def convolution(self, x: Any, channels: int, filters: int, name: str) -> Any:
        """Return the 3 x 3 convolution of images with their border kept, plus a bias."""
        w = self.parameter((filters, channels, 3, 3), 9 * channels, f"{name} kernels")
        b = self.parameter((filters,), 0, f"{name} bias")
        return T.nnet.conv2d(x, w, border_mode="half") + b[:, None, None]

    def dense(self, x: Any, inputs: int, outputs: int, name: str) -> Any:
        """Return an affine function of rows."""
        w = self.parameter((inputs, outputs), inputs, f"{name} weights")
        return T.dot(x, w) + self.parameter((outputs,), 0, f"{name} bias")


def live_bytes(report: Any) -> np.ndarray:
    """Return the bytes of all values that are alive at each instruction, without a plan."""
    length = 1 + max(value.dies for value in report.values)
    live = np.zeros(length)
    for value in report.values:
        live[value.born : value.dies + 1] += value.bytes
    return live


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Train, profile, draw; return the costs, the profile and the memory report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--calls", type=int, default=150)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args(arguments)
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    labels = labels.astype("int32")
    network, rng, costs = Network(), np.random.default_rng(0), []
    for _ in range(options.calls):
        batch = rng.choice(len(images), options.batch, replace=False)
        costs.append(float(network.step(images[batch], labels[batch])))
    profile = network.step.profile
    print(profile.text(6))
    report = network.step.memory_report(images[: options.batch], labels[: options.batch])
    print(report.text(5))
    if options.page is not None:
        profile.to_html(options.page)
        print(f"wrote {options.page}")
    data = profile.to_dict()
    draw(data["ops"], report, options.output / "profile_network.png")
    return {"costs": costs, "profile": data, "memory": report}


def draw(ops: list[dict[str, Any]], report: Any, file: pathlib.Path) -> None:
    """Draw the time by op, and the memory held at each instruction."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    slowest = sorted(ops, key=lambda row: row["seconds"])[-8:]
    total = sum(row["seconds"] for row in ops)
    names = [row["name"] if len(row["name"]) < 34 else row["name"][:31] + "..." for row in slowest]
    axes[0].barh(range(len(slowest)), [100 * row["seconds"] / total for row in slowest])
    axes[0].set_yticks(range(len(slowest)), names, fontsize=8)
    axes[0].set(title="Time by op (%)")
    axes[1].step(range(len(live_bytes(report))), live_bytes(report) / 2**20, where="mid")
    for name, peak, colour in (
        ("an array for each value", report.unplanned, "tab:red"),
        ("peak without a plan", report.unplanned_peak, "tab:gray"),
        ("peak as planned", report.peak, "tab:green"),
    ):
        axes[1].axhline(peak / 2**20, color=colour, linestyle="--", label=name)
    axes[1].set(title="Memory alive (MiB)", xlabel="instruction", ylim=(0, None))
    axes[1].legend(loc="upper left")
    figure.savefig(file, dpi=110)
    plt.close(figure)
    print(f"wrote {file}")


if __name__ == "__main__":
    main()
