"""Characters per second of training ``examples/char_rnn.py``, beside PyTorch's eager mode.

    python benchmarks/char_rnn.py [--peers PYTHON] [--seconds S]

Hidden 128, pieces of 50 characters, batches of 1 and 32; one step is the loss, its gradient,
clipping and Adam. ``--peers`` names a Python that has torch: it starts from the same parameters,
and its first losses must be the same. Both have one thread, whose own time counts, so that other
work on the machine disturbs little: set OMP_NUM_THREADS=1, and pin the process, and with it the
peer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).parent
HIDDEN, LENGTH, PAIRS, FIRST, WINDOWS = 128, 50, 40, 5, 4
BATCHES = (1, 32)
RATE = 3e-3
MOST = 300_000
ROUNDS = 2


def load_example():
    """Import ``examples/char_rnn.py``."""
    path = HERE.parent / "examples" / "char_rnn.py"
    spec = importlib.util.spec_from_file_location("char_rnn", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["char_rnn"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best_rate(step, pairs, seconds: float) -> float:
    """Steps per second of processor time in the best of several windows."""
    best, at = 0.0, 0
    for _ in range(WINDOWS):
        done, started = 0, time.process_time()
        while time.process_time() - started < seconds / WINDOWS:
            step(*pairs[at % len(pairs)])
            at, done = at + 1, done + 1
        best = max(best, done / (time.process_time() - started))
    return best


def peer_result(python: str, file: pathlib.Path, kind: str, batch: int, seconds: float) -> dict:
    """Return the first losses and the rate of PyTorch."""
    script = HERE / "peers" / "char_rnn_torch.py"
    command = [python, str(script), str(file), kind, str(batch), str(seconds)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def measure(example, codes, size: int, kind: str, batch: int, options, folder: pathlib.Path) -> str:
    """One row of the table."""
    values = example.initial_values(example.CELLS[kind], size, HIDDEN, seed=0)
    batches = example.Batches(codes, batch, LENGTH)
    pairs = [batches[i] for i in range(PAIRS)]
    model = example.Model(kind, values, batch, RATE)
    losses = [float(model.train(*pair)) for pair in pairs[:FIRST]]
    file = folder / f"{kind}{batch}.npz"
    np.savez(file, pairs=np.array(pairs), rate=RATE, **values)
    ours = theirs = 0.0
    for _ in range(ROUNDS):
        ours = max(ours, best_rate(model.train, pairs, options.seconds) * batch * LENGTH)
        if options.peers:
            peer = peer_result(options.peers, file, kind, batch, options.seconds)
            np.testing.assert_allclose(losses, peer["losses"], rtol=2e-4)
            theirs = max(theirs, peer["rate"])
    ratio = f"{theirs:,.0f} | {ours / theirs:.2f}" if theirs else "- | -"
    return f"| {kind}, batch {batch} | {ours:,.0f} | {ratio} |"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--peers", default="", help="a Python that has torch")
    parser.add_argument("--seconds", type=float, default=2.0, help="per task, runner and round")
    options = parser.parse_args()
    example = load_example()
    text = example.read_text(None, MOST)
    alphabet = example.Alphabet.of(text)
    codes = alphabet.encode(text)
    print("| model | symcomp (characters/s) | PyTorch eager | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in example.CELLS:
            for batch in BATCHES:
                row = measure(
                    example, codes, len(alphabet), kind, batch, options, pathlib.Path(folder)
                )
                print(row, flush=True)


if __name__ == "__main__":
    main()
