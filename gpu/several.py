"""Several devices side by side: a function for each, and calls that are shared out among them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


def map(functions: Sequence[Callable[..., Any]], *arguments: Sequence[Any]) -> list[Any]:
    """Call functions that compute the same on different devices, each in a thread of its own.

    The calls are dealt out in turn, so that each device does the same calls in every run.

    Parameters
    ----------
    functions : sequence of callable
        Compiled functions, one for each device.
    *arguments : sequence
        Of equal lengths: the first argument of each call, the second, and so on.

    Returns
    -------
    list
        The results in the order of the calls.

    Raises
    ------
    ValueError
        If there is no function, or the sequences have different lengths.
    Exception
        What the first call that failed raised. Later calls may have been made by then.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp import gpu
    >>> x = T.fvector("x")
    >>> functions = []
    >>> for device in ("emu", "emu1"):
    ...     with symcomp.config.change_flags(device=device):
    ...         functions.append(symcomp.function([x], T.sqr(x).sum()))
    >>> [float(z) for z in gpu.map(functions, np.eye(3, dtype="float32") * 2)]
    [4.0, 4.0, 4.0]
    """
    lengths = [len(values) for values in arguments]
    if not functions:
        raise ValueError("gpu.map: there is no function to call")
    if not lengths or len({*lengths}) > 1:
        raise ValueError(
            f"gpu.map: sequences of the lengths {lengths}: one or more of equal length"
        )
    results: list[Any] = [None] * lengths[0]
    failed: list[tuple[int, BaseException]] = []

    def work(first: int) -> None:
        for i in range(first, lengths[0], len(functions)):
            if failed:
                return
            try:
                results[i] = functions[first](*(values[i] for values in arguments))
            except BaseException as problem:  # noqa: BLE001 - raised by the thread of the caller
                failed.append((i, problem))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise min(failed, key=lambda pair: pair[0])[1]
    return results
