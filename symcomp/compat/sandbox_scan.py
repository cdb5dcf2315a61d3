"""``theano.sandbox.scan.scan``: loops with preallocated memory for all values of their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.core.tensor import TensorVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import maximum
from symcomp.ops.shapes.joining import concatenate
from symcomp.scan.build import scan as official_scan


def scan(
    fn: Callable[..., Any],
    sequences: Any = None,
    states: Any = None,
    params: Any = None,
    n_steps: Any = None,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: Any = None,
) -> tuple[Any, Any]:
    """Build ``theano.scan`` with memory given for its states; results begin with the initial
    values.

    Parameters
    ----------
    fn : callable
        One step, as for ``theano.scan``.
    sequences, params : Variable or list, optional
        What steps take in turn, and what all of them take.
    states : Variable, dict, None, or list of them
        A state is a tensor with the initial values in its first rows; it has as many rows as values
        are to be kept, the last ones. A dict has it as ``membuf``, and ``taps``, by default [-1]. A
        result that is no state is None or ``{"steps": number of rows to keep}``.
    n_steps : int or integer scalar
    mode, name, profile, allow_gc
        As for ``theano.scan``.

    Returns
    -------
    (results, updates)
        As of ``theano.scan``, but that results of states begin with the initial values.
    """
    if n_steps is None:
        raise TypeError("sandbox.scan: n_steps is missing: this loop looks at nothing else")
    described = [_described(state, n_steps) for state in _as_list(states)]
    results, updates = official_scan(
        fn, sequences=_as_list(sequences), outputs_info=[_initial(d) for d in described],
        non_sequences=_as_list(params), n_steps=n_steps, mode=mode, name=name, profile=profile,
        return_list=True, allow_gc=allow_gc,
    )  # fmt: skip
    described = described or [_described(None, n_steps) for _ in results]
    kept = [_kept(z, state) for z, state in zip(results, described, strict=True)]
    return kept[0] if len(kept) == 1 else kept, updates


def _as_list(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _described(state: Any, n_steps: Any) -> dict[str, Any]:
    """Return a dict for a state, with its memory and taps, or for a result, with the number of rows
    kept.
    """
    if state is None:
        return {"steps": n_steps}
    if not isinstance(state, dict):
        state = {"membuf": state}
    if state.get("membuf") is None and state.get("taps"):
        raise ValueError(f"sandbox.scan: {state} has taps, but no membuf with the initial values")
    if state.get("membuf") is None:
        return {"steps": state.get("steps", n_steps)}
    taps = list(state.get("taps") or [-1])
    if max(taps) > -1:
        raise ValueError(f"sandbox.scan: taps are {taps}; those of states must be negative")
    return {"membuf": as_tensor_variable(state["membuf"]), "taps": taps}


def _initial(described: dict[str, Any]) -> Any:
    if "membuf" not in described:
        return None
    taps = described["taps"]
    first = -min(taps)
    memory = described["membuf"]
    return {"initial": memory[0] if taps == [-1] else memory[:first], "taps": taps}


def _kept(z: TensorVariable, described: dict[str, Any]) -> TensorVariable:
    """Return the last rows: as many as there is memory for."""
    if "membuf" not in described:
        return z[maximum(z.shape[0] - described["steps"], 0) :]
    memory: TensorVariable = described["membuf"]
    every = concatenate([memory[: -min(described["taps"])], z])
    return every[maximum(every.shape[0] - memory.shape[0], 0) :]


__all__ = ["scan"]
