"""PyTorch's side of ``benchmarks/char_rnn.py``: the equations of ``examples/char_rnn.py``, eager.

Run by a Python that has torch: ``python char_rnn_torch.py FILE KIND BATCH SECONDS`` with the
parameters and characters that the benchmark wrote. Prints one JSON object: the losses of the first
steps, and characters per second in the best window.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
FIRST = 5
WINDOWS = 4


def gru(x, w, h):
    """Return the states after each row of gates, and the last one."""
    rows = []
    for row in x:
        xr, xz, xn = row.chunk(3, 1)
        ar, az, an = (h @ w).chunk(3, 1)
        r, z = torch.sigmoid(xr + ar), torch.sigmoid(xz + az)
        n = torch.tanh(xn + r * an)
        h = n + z * (h - n)
        rows.append(h)
    return torch.stack(rows), (h,)


def lstm(x, w, h, c):
    """Return the states after each row of gates, and the last ones."""
    rows = []
    for row in x:
        i, f, o, g = torch.addmm(row, h, w).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        rows.append(h)
    return torch.stack(rows), (h, c)


def trainer(kind, file, batch):
    """Make a function that does one step of training and returns its loss."""
    u, w, v, b = parameters = [
        torch.nn.Parameter(torch.tensor(file[name])) for name in ("u", "w", "v", "b")
    ]
    optimizer = torch.optim.Adam(parameters, lr=float(file["rate"]))
    states = [torch.zeros(batch, w.shape[0]) for _ in range(1 if kind == "gru" else 2)]
    run = gru if kind == "gru" else lstm

    def step(codes, targets):
        h, ends = run(F.embedding(codes, u), w, *states)
        logits = torch.addmm(b, h.reshape(-1, w.shape[0]), v)
        loss = F.cross_entropy(logits, targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        states[:] = [s.detach() for s in ends]
        return loss

    return step


def main():
    """Measure what the command line says."""
    path, kind, batch, seconds = sys.argv[1:]
    file = np.load(path)
    pairs = [tuple(torch.tensor(x).long() for x in pair) for pair in file["pairs"]]
    step = trainer(kind, file, int(batch))
    losses = [step(*pair).item() for pair in pairs[:FIRST]]
    best, at = 0.0, 0
    for _ in range(WINDOWS):
        done, started = 0, time.process_time()
        while time.process_time() - started < float(seconds) / WINDOWS:
            step(*pairs[at % len(pairs)])
            at, done = at + 1, done + 1
        best = max(best, done / (time.process_time() - started))
    print(json.dumps({"losses": losses, "rate": best * pairs[0][0].numel()}))


if __name__ == "__main__":
    main()
