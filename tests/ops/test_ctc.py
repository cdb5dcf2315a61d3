"""Connectionist temporal classification, against the sum over all sequences of outputs."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, LabelError, ShapeError
from symcomp.tests.harness import check

RNG = np.random.default_rng(0)
LABELS = np.array([[1, 2, -1], [1, -1, 1], [-1, -1, -1], [2, 1, 2]])
LENGTHS = np.array([4, 3, 2, 4])


def written_out(x: Any, labels: Any, lengths: Any) -> Any:
    logs = log_softmax(x, axis=2)
    losses = []
    for b, n in enumerate(lengths):
        wanted = [label for label in labels[b] if label >= 0]
        total = 0.0
        for outputs in itertools.product(range(x.shape[2]), repeat=n):
            if [k for k, _ in itertools.groupby(outputs) if k] == wanted:
                total += np.exp(sum(logs[t, b, k] for t, k in enumerate(outputs)))
        losses.append(-np.log(total))
    return np.array(losses)


@pytest.mark.parametrize("kernels", [False, True])
def test_loss_of_all_alignments(kernels: bool) -> None:
    x = RNG.normal(size=(4, 4, 3))
    with symcomp.config.change_flags(kernels=kernels):
        check(
            lambda a: T.nnet.ctc.ctc(a, LABELS, LENGTHS),
            x,
            expected=lambda a: written_out(a, LABELS, LENGTHS),
            rtol=1e-12,
        )


def test_lengths_known_when_it_runs() -> None:
    x, labels, lengths = T.dtensor3(), T.imatrix(), T.ivector()
    loss = T.nnet.ctc.ctc(x, labels, lengths)
    f = symcomp.function([x, labels, lengths], [loss, T.grad(loss.sum(), x)])
    values = RNG.normal(size=(4, 2, 3))
    for given, steps in (([[1, 2], [-1, -1]], [4, 1]), ([[], []], [3, 0])):
        wanted = np.array(given, np.int32).reshape(2, -1)
        np.testing.assert_allclose(
            f(values, wanted, steps)[0], written_out(values, wanted, steps), rtol=1e-12, atol=1e-15
        )
    # Equal labels need a blank between them, and time for it.
    found, gradient = f(values, [[1, 1], [1, 2]], [2, 2])
    assert found[0] == np.inf and np.isfinite(found[1])
    assert not gradient[:, 0].any() and gradient[:2, 1].all() and not gradient[2:].any()


def test_long_sequences_of_float32() -> None:
    x, labels = RNG.normal(size=(300, 2, 20)), RNG.integers(1, 20, (2, 40))
    losses = [
        T.nnet.ctc.ctc(x.astype(dtype), labels, [300, 250]).eval()
        for dtype in ("float64", "float32", "float16")
    ]
    assert [loss.dtype.name for loss in losses] == ["float64", "float32", "float16"]
    assert (losses[0] > 100).all()
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    np.testing.assert_allclose(losses[2], losses[0], rtol=5e-3)


def test_what_is_refused() -> None:
    x, labels, lengths = T.dtensor3(), T.lmatrix(), T.lvector()
    with pytest.raises(ShapeError, match="ctc: labels is .* must have 2 axes"):
        T.nnet.ctc.ctc(x, lengths, lengths)
    with pytest.raises(DTypeError, match="ctc: input_lengths is .*; integers are needed"):
        T.nnet.ctc.ctc(x, labels, T.dvector())
    f = symcomp.function([x, labels, lengths], T.nnet.ctc.ctc(x, labels, lengths))
    values = np.zeros((4, 1, 3))
    with pytest.raises(LabelError, match="ctc: labels.1. is 3, out of bounds: there are 3"):
        f(values, [[1, 3]], [4])
    with pytest.raises(AssertionError, match="input_lengths must be between 0 and the steps"):
        f(values, [[1, 2]], [5])
    with pytest.raises(ShapeError, match="ctc"):
        f(values, [[1, 2], [1, 2]], [4])
