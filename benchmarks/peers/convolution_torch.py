"""PyTorch's side of ``benchmarks/convolution.py``, eager, run by a Python that has torch:
``python convolution_torch.py SECONDS`` prints the seconds of one step.
"""

import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
SHAPES = ((20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (800, 500), (500,), (500, 10), (10,))


def trainer():
    """Return a function that does one training step."""
    torch.manual_seed(0)
    params = [(0.1 * torch.randn(s)).requires_grad_() for s in SHAPES]
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x, y = torch.randn(60, 1, 28, 28), torch.randint(10, (60,))

    def step():
        h = torch.tanh(F.max_pool2d(F.conv2d(x, w1, b1), 2))
        h = torch.tanh(F.max_pool2d(F.conv2d(h, w2, b2), 2))
        h = torch.tanh(torch.addmm(b3, h.flatten(1), w3))
        cost = F.cross_entropy(torch.addmm(b4, h, w4), y)
        grads = torch.autograd.grad(cost, params)
        with torch.no_grad():
            for p, g in zip(params, grads, strict=True):
                p.sub_(g, alpha=0.1)

    return step


def main():
    """Measure for as long as the command line says."""
    step = trainer()
    for _ in range(3):
        step()
    best, end = float("inf"), time.perf_counter() + float(sys.argv[1])
    while time.perf_counter() < end:
        started = time.process_time()
        for _ in range(5):
            step()
        best = min(best, (time.process_time() - started) / 5)
    print(best)


if __name__ == "__main__":
    main()
