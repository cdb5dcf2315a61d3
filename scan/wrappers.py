"""map, reduce, foldl, foldr and scan_checkpoints: scans of common forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.control.conditions import assert_op
from symcomp.ops.elementwise.scalar_logic import eq
from symcomp.ops.elementwise.scalar_math import minimum
from symcomp.ops.shapes.creation import arange
from symcomp.ops.shapes.filled import zeros
from symcomp.ops.shapes.joining import concatenate
from symcomp.ops.shapes.shape import reshape, shape_tuple
from symcomp.scan.arguments import as_list, read_steps
from symcomp.scan.build import scan
from symcomp.scan.calling import check_step, described, read_tensor


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_list: bool = False,
) -> Any:
    """Apply ``fn`` to every row of the sequences.

    Parameters
    ----------
    fn : callable
        (rows, non_sequences) -> outputs.
    sequences, non_sequences, truncate_gradient, go_backwards, mode, name, return_list
        As for ``scan``.

    Returns
    -------
    outputs, updates
        As of ``scan``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> norms, _ = symcomp.map(lambda row: T.sqrt((row ** 2).sum()), x)
    >>> norms.eval({x: [[3, 4], [6, 8]]})
    array([ 5., 10.])
    """
    return scan(
        fn,
        _present(sequences, name or "map"),
        [],
        non_sequences,
        None,
        truncate_gradient,
        go_backwards,
        mode,
        name or "map",
        return_list=return_list,
    )


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_list: bool = False,
) -> Any:
    """Fold sequences: like ``scan``, returning only the results of the last step.

    Parameters
    ----------
    fn : callable
        (rows, states, non_sequences) -> states.
    sequences, outputs_info, non_sequences, go_backwards, mode, name, return_list
        As for ``scan``.

    Returns
    -------
    outputs, updates
        The outputs without the axis of steps.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> total, _ = symcomp.reduce(lambda row, total: total + row, x, T.constant(0.0))
    >>> total.eval({x: [1.0, 2.0, 3.0]})
    array(6.)
    """
    outputs, updates = scan(
        fn,
        _present(sequences, name or "reduce"),
        outputs_info,
        non_sequences,
        None,
        -1,
        go_backwards,
        mode,
        name or "reduce",
        return_list=True,
    )
    last = [y[-1] for y in outputs]
    if not return_list and len(last) <= 1:
        return (last[0] if last else None), updates
    return last, updates


def foldl(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_list: bool = False,
) -> Any:
    """Fold from the first row to the last; see ``reduce``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> number, _ = symcomp.foldl(lambda digit, value: 10 * value + digit, x, T.constant(0.0))
    >>> number.eval({x: [1.0, 2.0, 3.0]})
    array(123.)
    """
    return reduce(
        fn, sequences, outputs_info, non_sequences, False, mode, name or "foldl", return_list
    )


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_list: bool = False,
) -> Any:
    """Fold from the last row to the first; see ``reduce``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> number, _ = symcomp.foldr(lambda digit, value: 10 * value + digit, x, T.constant(0.0))
    >>> number.eval({x: [1.0, 2.0, 3.0]})
    array(321.)
    """
    return reduce(
        fn, sequences, outputs_info, non_sequences, True, mode, name or "foldr", return_list
    )


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
) -> Any:
    """Build a scan whose gradient keeps the states of every N-th step and computes the others
    again.

    Memory falls by about the factor N, for one more computation of the steps.

    Parameters
    ----------
    fn, sequences, outputs_info, non_sequences, name, n_steps
        As for ``scan``; sequences are tensors of one length, and outputs have no taps but -1.
    save_every_N : int
        About the square root of the number of steps is best.
    padding : bool
        Whether the number of steps may be something else than a multiple of N: a copy of the
        sequences is filled up (no step sees what they are filled with). If false, it is checked
        when the function runs.

    Returns
    -------
    outputs, updates
        The results of the last step: outputs have one row.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dvector("x")
    >>> y, _ = symcomp.scan_checkpoints(
    ...     lambda row, y: T.sin(y) + row, x, T.constant(0.0), save_every_N=2
    ... )
    >>> slope = symcomp.grad(y[-1], x)
    >>> slope.eval({x: [0.5, 1.0, 2.0]}).round(4)
    array([0.0801, 0.0912, 1.    ])
    """
    check_step(fn, name)
    if isinstance(save_every_N, bool) or not isinstance(save_every_N, int | np.integer):
        raise TypeError(f"{name}: save_every_N is {described(save_every_N)}; it must be an int")
    size = int(save_every_N)
    if size < 1:
        raise ValueError(f"{name}: save_every_N is {save_every_N}; it must be positive")
    inputs = [_plain(x, i, name) for i, x in enumerate(as_list(sequences))]
    states = as_list(outputs_info)
    for i, state in enumerate(states):
        if isinstance(state, dict) and state.get("taps", [-1]) not in (None, [-1], -1):
            raise ValueError(f"{name}: output {i} has taps; scan_checkpoints knows -1 alone")
    states = [s.get("initial") if isinstance(s, dict) else s for s in states]
    fixed = as_list(non_sequences)
    n = read_steps(inputs[0].shape[0] if n_steps is None and inputs else n_steps, (), name)
    if not padding:
        n = assert_op(n, eq(n % size, 0), msg=f"{name}: the steps are no multiple of {size}")
    chunks = (n + size - 1) // size
    lengths = minimum(size, n - size * arange(chunks))
    parts = [_chunked(x[:n], chunks, size, n, padding) for x in inputs]
    reads = [s is not None for s in states]

    def chunk(*given: Any) -> Any:
        rows, rest = given[: len(inputs)], list(given[len(inputs) + 1 :])
        starts = [rest.pop(0) if read else None for read in reads]
        outputs, updates = scan(
            fn, list(rows), starts, rest, given[len(inputs)], name=f"{name}_inner", return_list=True
        )
        return [y[-1] for y in outputs], updates

    outputs, updates = scan(
        chunk, [*parts, lengths], states, fixed, chunks, name=name, return_list=True, recompute=True
    )
    last = [y[-1:] for y in outputs]
    return (last[0] if len(last) == 1 else last), updates


def _present(sequences: Any, who: str) -> Any:
    if not as_list(sequences):
        raise ValueError(
            f"{who}: sequences is {sequences!r}; at least one is needed, a tensor with at least "
            "one axis, whose length is the number of steps"
        )
    return sequences


def _plain(x: Any, position: int, who: str) -> TensorVariable:
    if isinstance(x, dict):
        raise ValueError(f"{who}: sequence {position} has taps; scan_checkpoints takes tensors")
    x = read_tensor(x, f"{who}: sequence {position}", "pass a tensor with at least one axis")
    if x.ndim == 0:
        raise ShapeError(
            f"{who}: sequence {position} is a {x.type}, which has no rows: pass a tensor with at "
            "least one axis"
        )
    return x


def _chunked(x: Any, chunks: Any, size: int, n: Any, padding: bool) -> Any:
    """Return the rows of ``x`` in chunks of ``size``: (chunks, size, ...)."""
    rest = shape_tuple(x)[1:]
    if padding:
        x = concatenate([x, zeros([chunks * size - n, *rest], x.dtype)])
    return reshape(x, [chunks, np.int64(size), *rest], ndim=x.ndim + 1)
