"""``T.nnet.ctc``: the loss of sequences of labels whose places in time are not known."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.dtype import working
from symcomp.core.tensor import TensorVariable
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.control.conditions import Assert
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_logic import and_, eq, ge, gt, le, lt, neq, switch
from symcomp.ops.elementwise.scalar_logistic import logaddexp
from symcomp.ops.elementwise.scalar_math import cast, maximum
from symcomp.ops.indexing.gather import take_along_axis
from symcomp.ops.indexing.subtensors import getitem, set_subtensor
from symcomp.ops.linalg.products import same_lengths
from symcomp.ops.nnet.functions import log_softmax
from symcomp.ops.nnet.labels import Labels
from symcomp.ops.reductions.functions import all as all_
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import full
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.reshaping import flatten
from symcomp.ops.shapes.shape import reshape, shape_tuple
from symcomp.ops.sorting.functions import argsort
from symcomp.scan.build import scan

# log 0, but finite: differences of two such values must be numbers.
NEVER = -1e30


def ctc(activations: Any, labels: Any, input_lengths: Any) -> TensorVariable:
    """Connectionist temporal classification: minus the logarithm of the probability that a sequence
    of outputs, blanks and repetitions left out, is a sequence of labels.

    The probabilities of all alignments are added up from left to right, as logarithms (Graves et
    al., ICML 2006, section 4.1).

    Parameters
    ----------
    activations : tensor of 3 axes
        (time, sequences, symbols): what goes into a softmax over the symbols, of which symbol 0 is
        the blank.
    labels : integer matrix
        (sequences, labels); negative entries are left out.
    input_lengths : integer vector
        The steps of each sequence that count.

    Returns
    -------
    vector
        The loss of each sequence; infinite, with a gradient of 0, where it has too few steps for
        its labels.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> x, labels, lengths = T.dtensor3("x"), T.lmatrix("labels"), T.lvector("lengths")
    >>> loss = T.nnet.ctc.ctc(x, labels, lengths)
    >>> loss.eval({x: np.zeros((2, 1, 2)), labels: [[1]], lengths: [2]})  # of 4 outputs 3 are good
    array([0.28768207])
    """
    x, y, steps = map(as_tensor_variable, (activations, labels, input_lengths))
    _check(x, y, steps)
    y = same_lengths("ctc", x, y, [(1, 0)])
    steps = same_lengths("ctc", x, steps, [(1, 0)])
    fits = all_(and_(ge(steps, 0), le(steps, shape_tuple(x)[0])))
    steps = Assert("ctc: input_lengths must be between 0 and the steps of activations")(steps, fits)
    x = cast_to(x, dtypes.to_float(x.dtype))
    logs = log_softmax(cast_to(x, working(x.dtype)))
    states, count = _states(y, shape_tuple(x)[2])
    emitted = take_along_axis(logs, states.dimshuffle("x", 0, 1), axis=2)
    loss = -_log_total(emitted, states, count, steps)
    impossible = gt(loss, -NEVER / 2)
    return cast_to(switch(impossible, np.asarray(np.inf, loss.dtype), loss), x.dtype)


def _check(x: TensorVariable, y: TensorVariable, steps: TensorVariable) -> None:
    for name, v, ndim in (("activations", x, 3), ("labels", y, 2), ("input_lengths", steps, 1)):
        if v.ndim != ndim:
            raise ShapeError(f"ctc: {name} is {v.type}; it must have {ndim} axes")
    for name, v in (("labels", y), ("input_lengths", steps)):
        if not dtypes.is_integer(v.dtype):
            raise DTypeError(f"ctc: {name} is {v.type}; integers are needed")


def _states(y: TensorVariable, symbols: Any) -> tuple[TensorVariable, TensorVariable]:
    """Return the labels with blanks around each, (sequences, 2 labels + 1), and the number of
    states.
    """
    there = ge(y, 0)
    order = argsort(lt(y, 0), axis=1, kind="stable")
    y = cast(take_along_axis(maximum(y, 0), order, axis=1), "int64")
    y = reshape(Labels("ctc: labels")(flatten(y), symbols), shape_tuple(y), 2)
    b, n = shape_tuple(y)
    blanks = full((b, 2 * n + 1), 0, dtype="int64")
    states = set_subtensor(getitem(blanks, (slice(None), slice(1, None, 2))), y)
    return states, sum_(there, axis=1, dtype="int64")


def _log_total(
    emitted: TensorVariable, states: TensorVariable, count: TensorVariable, steps: TensorVariable
) -> TensorVariable:
    """Return the logarithm of the sum of the probabilities of all ways through the states."""
    never = np.asarray(NEVER, emitted.dtype)
    b, n = shape_tuple(states)
    before = full((b, 2), never, dtype=emitted.dtype)
    # A blank between two labels may be left out where they differ.
    earlier = concatenate([full((b, 2), 0, dtype="int64"), states], axis=1)[:, :-2]
    skips = switch(and_(neq(states, 0), neq(states, earlier)), np.asarray(0, never.dtype), never)

    def step(t: Any, row: Any, logs: Any, skips: Any, before: Any, steps: Any) -> Any:
        padded = concatenate([before, logs], axis=1)
        one, two = padded[:, 1:-1], padded[:, :-2] + skips
        new = logaddexp(logaddexp(logs, one), two) + row
        return switch(lt(t, steps).dimshuffle(0, "x"), new, logs)

    first = switch(eq(arange(n), 0), np.asarray(0, never.dtype), never) + full(
        (b, n), 0, dtype=emitted.dtype
    )
    rows, _ = scan(
        step, [arange(shape_tuple(emitted)[0]), emitted], [first], [skips, before, steps],
        name="ctc", strict=True,
    )  # fmt: skip
    last = concatenate(
        [before[:, :1], concatenate([first.dimshuffle("x", 0, 1), rows])[-1]], axis=1
    )
    ends = [take_along_axis(last, (2 * count + k).dimshuffle(0, "x"), 1)[:, 0] for k in (0, 1)]
    return logaddexp(*ends)


__all__ = ["ctc"]
