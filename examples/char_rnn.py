"""A character language model: a recurrent network (GRU or LSTM) that learns to go on with a text.

    python examples/char_rnn.py [FILE] [--model gru|lstm] [--hidden N] [--batch N] [--length N]
                                [--steps N] [--state FILE] [--resume] [--output DIR]

Without a file it reads the sources of Python's standard library. It is trained by truncated
backpropagation through time: each step takes the next ``length`` characters of ``batch`` places of
the text, and starts from the last states of the previous step. The last twentieth of the text is
kept for validation. The model is saved to ``--state``; ``--resume`` continues from there.
With ``--output`` the perplexity of each step is drawn into ``char_rnn.png``.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sysconfig
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from tqdm import tqdm

import symcomp
import symcomp.tensor as T

matplotlib.use("Agg")  # pictures go to files; no screen is needed

UNKNOWN = "\ufffd"  # stands for characters that are rarer than that
RAREST = 20
HELD_OUT = 20


def read_text(path: pathlib.Path | None, most: int) -> str:
    """Read a file, or the modules of the standard library; at most ``most`` characters."""
    if path is not None:
        return path.read_text(encoding="utf-8", errors="replace")[:most]
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)[:most]


class Alphabet:
    """The characters of a text, numbered."""

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._number = {c: i for i, c in enumerate(characters)}

    @classmethod
    def of(cls, text: str) -> Alphabet:
        """Return the alphabet of the characters that occur often enough to be learned."""
        counts = Counter(text)
        often = (c for c, n in counts.items() if n >= RAREST and c != UNKNOWN)
        return cls("".join(sorted(often)) + UNKNOWN)

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> np.ndarray:
        """Return the numbers of characters, int32."""
        unknown = len(self) - 1
        return np.array([self._number.get(c, unknown) for c in text], np.int32)

    def decode(self, codes: np.ndarray) -> str:
        """Return the characters that have these numbers."""
        return "".join(self.characters[i] for i in codes)


def gru_step(x, h, w):
    """Cho et al. (2014), with the reset gate behind the product: h + (1 - z) (n - h)."""
    size = h.shape[-1]
    a = T.dot(h, w)
    r = T.nnet.sigmoid(x[:, :size] + a[:, :size])
    z = T.nnet.sigmoid(x[:, size : 2 * size] + a[:, size : 2 * size])
    n = T.tanh(x[:, 2 * size :] + r * a[:, 2 * size :])
    return (n + z * (h - n),)


def lstm_step(x, h, c, w):
    """Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000)."""
    size = h.shape[-1]
    a = x + T.dot(h, w)
    i = T.nnet.sigmoid(a[:, :size])
    f = T.nnet.sigmoid(a[:, size : 2 * size])
    o = T.nnet.sigmoid(a[:, 2 * size : 3 * size])
    c = f * c + i * T.tanh(a[:, 3 * size :])
    return o * T.tanh(c), c


@dataclass(frozen=True)
class Cell:
    """One kind of network: its step, how many gates and states it has."""

    step: Callable
    gates: int
    states: int


CELLS = {"gru": Cell(gru_step, 3, 1), "lstm": Cell(lstm_step, 4, 2)}


def initial_values(cell: Cell, size: int, hidden: int, seed: int) -> dict[str, np.ndarray]:
    """u: a row of gates for each character; w: states to gates; v, b: states to characters."""
    rng = np.random.default_rng(seed)
    limit = hidden**-0.5
    shapes = {
        "u": (size, cell.gates * hidden),
        "w": (hidden, cell.gates * hidden),
        "v": (hidden, size),
    }
    values = {
        name: rng.uniform(-limit, limit, shape).astype(np.float32) for name, shape in shapes.items()
    }
    return values | {"b": np.zeros(size, np.float32)}


def adam(cost, parameters, rate: float, clip: float):
    """Kingma and Ba (2015), with gradients whose joint norm is at most ``clip``."""
    gradients = symcomp.grad(cost, parameters)
    norm = T.sqrt(sum((g**2).sum() for g in gradients))
    scale = T.minimum(np.float32(1), np.float32(clip) / (norm + np.float32(1e-6)))
    time = symcomp.shared(np.float32(0), "time")
    t = time + np.float32(1)
    step = np.float32(rate) * T.sqrt(1 - T.pow(np.float32(0.999), t))
    step = step / (1 - T.pow(np.float32(0.9), t))
    updates = [(time, t)]
    for p, g in zip(parameters, gradients, strict=True):
        zeros = np.zeros_like(p.get_value())
        mean = symcomp.shared(zeros, f"{p.name}_mean")
        square = symcomp.shared(zeros, f"{p.name}_square")
        g = g * scale
        m = np.float32(0.9) * mean + np.float32(0.1) * g
        v = np.float32(0.999) * square + np.float32(0.001) * g**2
        updates += [(mean, m), (square, v), (p, p - step * m / (T.sqrt(v) + np.float32(1e-8)))]
    return updates


class Model:
    """Parameters and compiled functions.

    Attributes
    ----------
    shared : dict of str to SharedVariable
        All that training changes, by name.
    train : callable
        (characters, next characters), each (length, batch) int32 -> mean loss in nats; one step.
    test : callable
        The same without a step; the states go on from those of the last test.
    sample : callable
        (number of a character, its states, noise (n, characters), temperature) -> n numbers.
    """

    def __init__(
        self, kind: str, values: dict[str, np.ndarray], batch: int, rate: float, clip: float = 1.0
    ) -> None:
        self.cell, self.kind = CELLS[kind], kind
        self.hidden = values["w"].shape[0]
        parameters = [symcomp.shared(value, name) for name, value in values.items()]
        self._u, self._w, self._v, self._b = parameters
        codes, targets = T.imatrix("codes"), T.imatrix("targets")
        states = self._shared_states("state", batch)
        loss, ends = self._loss(codes, targets, states)
        updates = adam(loss, parameters, rate, clip)
        self.shared = {
            v.name: v for v in (*parameters, *states, *(target for target, _ in updates))
        }
        updates += zip(states, ends, strict=True)
        self.train = symcomp.function([codes, targets], loss, updates=updates, name="train")
        tested = self._shared_states("tested", batch)
        loss, ends = self._loss(codes, targets, tested)
        updates = [*zip(tested, ends, strict=True)]
        self.test = symcomp.function([codes, targets], loss, updates=updates, name="test")
        self._tested = tested
        self.sample = self._sampler()

    def _shared_states(self, name: str, batch: int):
        zeros = np.zeros((batch, self.hidden), np.float32)
        return [symcomp.shared(zeros, f"{name}{i}") for i in range(self.cell.states)]

    def _loss(self, codes, targets, states):
        """Return the mean loss of the next characters, and the final states."""
        traces, _ = symcomp.scan(
            self.cell.step, self._u[codes], list(states), [self._w], return_list=True
        )
        h = traces[0].reshape((codes.size, self.hidden))
        log_p = T.nnet.log_softmax(T.dot(h, self._v) + self._b)
        loss = -log_p[T.arange(codes.size), targets.flatten()].mean()
        return loss, [trace[-1] for trace in traces]

    def _sampler(self):
        """Compile a loop whose step draws a character and reads it in the next."""
        code, noise, temperature = T.iscalar("code"), T.fmatrix("noise"), T.fscalar("temperature")
        states = [T.fmatrix(f"h{i}") for i in range(self.cell.states)]

        def step(noise, code, *rest):
            states, (u, w, v, b, temperature) = rest[:-5], rest[-5:]
            new = self.cell.step(u[code].dimshuffle("x", 0), *states, w)
            logits = T.dot(new[0], v)[0] + b
            # The largest of logits with noise of Gumbel is drawn with the probability of softmax.
            return [T.cast(T.argmax(logits / temperature + noise), "int32"), *new]

        captured = [self._u, self._w, self._v, self._b, temperature]
        outputs, _ = symcomp.scan(step, noise, [code, *states], captured, return_list=True)
        return symcomp.function([code, *states, noise, temperature], outputs[0], name="sample")

    def perplexity(self, batches) -> float:
        """exp of the mean loss over some batches, from states that are zero."""
        for state in self._tested:
            state.set_value(np.zeros_like(state.get_value()))
        return float(np.exp(np.mean([self.test(*pair) for pair in batches])))

    def write(self, alphabet: Alphabet, n: int, temperature: float, rng) -> str:
        """n characters of the model's own."""
        zeros = np.zeros((1, self.hidden), np.float32)
        noise = rng.gumbel(size=(n, len(alphabet))).astype(np.float32)
        noise[:, -1] = -np.inf  # a character that is none
        start = alphabet.encode("\n")[0]
        states = [zeros] * self.cell.states
        return alphabet.decode(self.sample(start, *states, noise, np.float32(temperature)))


class Batches:
    """Consecutive pieces of ``batch`` equal parts of a text, and the characters after each."""

    def __init__(self, codes: np.ndarray, batch: int, length: int) -> None:
        each = (len(codes) - 1) // batch
        if each < length:
            raise ValueError(
                f"{len(codes)} characters are too few for batch {batch} and length {length}: "
                f"{batch * length + 1} are needed"
            )
        self._inputs = codes[: batch * each].reshape(batch, each).T
        self._targets = codes[1 : batch * each + 1].reshape(batch, each).T
        self._length, self.number = length, each // length

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        start = i % self.number * self._length
        part = slice(start, start + self._length)
        return self._inputs[part], self._targets[part]


def save(path: pathlib.Path, model: Model, alphabet: Alphabet, done: int) -> None:
    """Save everything needed to continue; the file is replaced when it is complete."""
    about = {"kind": model.kind, "characters": alphabet.characters, "done": done}
    values = {name: v.get_value() for name, v in model.shared.items()}
    fresh = path.with_name(f"{path.name}.part")
    with fresh.open("wb") as file:
        np.savez(file, about=json.dumps(about), **values)
    fresh.replace(path)


def load(path: pathlib.Path) -> tuple[dict, dict[str, np.ndarray]]:
    """Load a saved file: the kind of model, its characters and steps done; and all values."""
    with np.load(path) as file:
        values = {name: file[name] for name in file.files}
    return json.loads(str(values.pop("about"))), values


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=pathlib.Path, nargs="?", help="UTF-8; default: Python's own")
    parser.add_argument("--model", choices=sorted(CELLS), default="gru")
    parser.add_argument("--hidden", type=int, default=128, help="length of a state")
    parser.add_argument("--batch", type=int, default=32, help="places read at a time")
    parser.add_argument("--length", type=int, default=50, help="characters in a step")
    parser.add_argument("--steps", type=int, default=5000, help="of training")
    parser.add_argument("--rate", type=float, default=3e-3, help="of Adam")
    parser.add_argument("--most", type=int, default=20_000_000, help="characters that are read")
    parser.add_argument("--sample", type=int, default=600, help="characters written in the end")
    parser.add_argument("--temperature", type=float, default=0.7, help="of the sampled text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=pathlib.Path, default=pathlib.Path("char_rnn.npz"))
    parser.add_argument("--output", type=pathlib.Path, help="folder of the picture")
    parser.add_argument("--resume", action="store_true", help="go on from --state")
    return parser.parse_args(arguments)


def prepare(options: argparse.Namespace, text: str) -> tuple[Model, Alphabet, int]:
    """Return a new model, or the saved one, and the number of steps done."""
    if not options.resume:
        alphabet = Alphabet.of(text)
        cell = CELLS[options.model]
        values = initial_values(cell, len(alphabet), options.hidden, options.seed)
        return Model(options.model, values, options.batch, options.rate), alphabet, 0
    about, values = load(options.state)
    batch = len(values["state0"])
    if batch != options.batch:
        raise SystemExit(f"{options.state} was trained with --batch {batch}: pass that")
    start = {name: values[name] for name in ("u", "w", "v", "b")}
    model = Model(about["kind"], start, batch, options.rate)
    for name, variable in model.shared.items():
        variable.set_value(values[name])
    return model, Alphabet(about["characters"]), about["done"]


def main(arguments: list[str] | None = None) -> float:
    """Train, save and write a sample; return the perplexity of the text held out."""
    options = options_of(arguments)
    text = read_text(options.file, options.most)
    model, alphabet, done = prepare(options, text)
    codes = alphabet.encode(text)
    cut = len(codes) - len(codes) // HELD_OUT
    batches = Batches(codes[:cut], options.batch, options.length)
    held_out = Batches(codes[cut:], options.batch, min(options.length, (len(codes) - cut - 1)
                                                       // options.batch))  # fmt: skip
    print(f"{len(text):,} characters, {len(alphabet)} different ones")
    bar = tqdm(range(done, options.steps), initial=done, total=options.steps, unit="step",
               mininterval=0.5)  # fmt: skip
    average, averages = None, []
    try:
        for i in bar:
            loss = float(model.train(*batches[i]))
            average = loss if average is None else 0.98 * average + 0.02 * loss
            averages.append(average)
            done = i + 1
            bar.set_postfix(perplexity=f"{np.exp(average):.2f}", refresh=False)
    except KeyboardInterrupt:
        print("stopped")
    bar.close()
    save(options.state, model, alphabet, done)
    found = model.perplexity(held_out[i] for i in range(held_out.number))
    print(f"perplexity of the text held out after {done:,} steps: {found:.3f}")
    print(f"saved to {options.state}; --resume goes on from there")
    rng = np.random.default_rng(options.seed)
    written = model.write(alphabet, options.sample, options.temperature, rng)
    print(written)
    if options.output is not None:
        draw(done - len(averages), np.exp(averages), found, written, options.output)
    return found


def draw(first: int, perplexities: np.ndarray, found: float, written: str, folder: pathlib.Path):
    """Draw the perplexity from step ``first`` on, beside the first lines of the sample."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    steps = np.arange(first, first + len(perplexities))
    axes[0].semilogy(steps, perplexities, label="training")
    axes[0].axhline(found, color="tab:orange", label=f"held out: {found:.2f}")
    axes[0].set(title="Perplexity of characters", xlabel="step")
    axes[0].legend()
    lines = "\n".join(line[:60] for line in written.splitlines()[:16])
    axes[1].text(0, 1, lines, family="monospace", fontsize=8, va="top", parse_math=False)
    axes[1].set_axis_off()
    axes[1].set_title("Written by the model")
    figure.savefig(folder / "char_rnn.png", dpi=110)
    plt.close(figure)
    print(f"wrote {folder / 'char_rnn.png'}")


if __name__ == "__main__":
    main()
