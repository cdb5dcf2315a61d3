"""sample_nuts: PyMC's default sampler as one symcomp program."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pymc as pm
from arviz_base import from_dict, make_attrs
from pymc.backends.arviz import (
    coords_and_dims_for_inferencedata,
    find_constants,
    find_observations,
)
from pymc.stats.convergence import log_warnings, run_convergence_checks
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import symcomp.pytensor_backend as pytensor_backend
from symcomp.nuts.program import Chain, Sampler, compile_sampler
from symcomp.pymc.model import Density, in_symcomp

log = logging.getLogger("symcomp.pymc")

#: Draws between two looks at the clock, the progress bar and Ctrl-C.
CHUNK = 50
#: Where chains begin, and how their mass matrices are found: names of PyMC.
INITS = ("jitter+adapt_diag_grad", "adapt_diag_grad")
#: How InferenceData calls statistics that PyMC's samplers call otherwise.
TITLES = {
    "depth": "tree_depth", "tree_size": "n_steps", "mean_tree_accept": "acceptance_rate",
    "model_logp": "lp",
}  # fmt: skip


def sample_nuts(
    draws: int = 1000,
    *,
    tune: int = 1000,
    chains: int | None = None,
    cores: int | None = None,
    random_seed: Any = None,
    progressbar: bool = True,
    initvals: Any = None,
    init: str = "jitter+adapt_diag_grad",
    jitter_max_retries: int = 10,
    target_accept: float = 0.8,
    max_treedepth: int = 10,
    var_names: Sequence[str] | None = None,
    keep_warmup: bool = False,
    compute_convergence_checks: bool = True,
    model: Any = None,
) -> Any:
    """Draw from the posterior of a PyMC model by NUTS, compiled as one program.

    The log density, its gradient, trajectories and their adaptation are compiled together: a
    leapfrog step runs no Python. The algorithm is multinomial NUTS with dual averaging, as in
    ``pm.sample``; the diagonal mass matrix is estimated from draws and gradients, as by
    ``init="adapt_diag_grad"`` there, which takes fewer draws than from draws alone.

    Parameters
    ----------
    draws, tune : int
        How many draws a chain gives, and before them, while it adapts.
    chains : int, optional
        By default as many as cores, at least 2.
    cores : int, optional
        How many chains run at once, in threads; by default 4, or what the computer has.
    random_seed : int, sequence of int, or numpy.random.Generator, optional
    progressbar : bool
    initvals : dict, or sequence of them, optional
        Start values, as for ``pm.sample``.
    init : {"jitter+adapt_diag_grad", "adapt_diag_grad"}
        Whether starts are moved by up to 1 in all unconstrained variables.
    jitter_max_retries : int
        How often a start without a finite density is moved anew.
    target_accept : float
        The mean acceptance that step sizes aim at; nearer to 1 takes smaller steps.
    max_treedepth : int
        How often a trajectory doubles at most.
    var_names : sequence of str, optional
        Which variables and deterministics to keep; by default all.
    keep_warmup : bool
        Whether to return the draws of the tuning, too.
    compute_convergence_checks : bool
        Whether to warn of divergences, small effective sample sizes and chains that differ.
    model : pymc.Model, optional
        By default that of the context.

    Returns
    -------
    xarray.DataTree
        ArviZ's InferenceData: posterior, sample_stats, observed_data, constant_data, and with
        ``keep_warmup`` those of the tuning.

    Raises
    ------
    TypeError, ValueError
        If the model has discrete variables, or no start with a finite log density is found.

    Examples
    --------
    >>> import pymc as pm
    >>> import symcomp.pymc
    >>> with pm.Model():
    ...     x = pm.Normal("x", 3.0, 0.1)
    ...     idata = symcomp.pymc.sample_nuts(200, tune=300, random_seed=1, progressbar=False)
    >>> bool(abs(idata.posterior["x"].mean() - 3.0) < 0.05)
    True
    """
    model = pm.modelcontext(model)
    _check_counts(draws, tune, target_accept, max_treedepth, init)
    cores = min(4, os.cpu_count() or 1) if cores is None else cores
    chains = max(2, cores) if chains is None else chains
    generator = np.random.default_rng(random_seed)
    started = time.perf_counter()
    with in_symcomp(), model:
        density = Density(model)
        sampler = compile_sampler(density, density.size, max_treedepth)
        seeds = generator.integers(2**30, size=chains).tolist()
        starts = density.starts(
            sampler.density, initvals, seeds, init.startswith("jitter"), jitter_max_retries
        )
        begun = [
            sampler.begin(start, child)
            for start, child in zip(starts, generator.spawn(chains), strict=True)
        ]
        compiled = time.perf_counter()
        runs = _Runs(sampler, draws, tune, target_accept, max_treedepth)
        found = runs.all(begun, cores, progressbar)
        sampled = time.perf_counter()
        idata = _inference_data(density, found, tune, var_names, keep_warmup, sampled - compiled)
        log.info(
            "%d chains of %d + %d draws: %.1f s compiling, %.1f s sampling",
            chains, tune, draws, compiled - started, sampled - compiled,
        )  # fmt: skip
        if compute_convergence_checks:
            log_warnings(run_convergence_checks(idata, model))
    return idata


def _check_counts(draws: int, tune: int, target: float, depth: int, init: str) -> None:
    if draws < 1 or tune < 0:
        raise ValueError(f"sample_nuts: draws={draws} must be positive, tune={tune} not negative")
    if not 0 < target < 1:
        raise ValueError(f"sample_nuts: target_accept={target} must lie between 0 and 1")
    if not 1 <= depth <= 20:
        raise ValueError(f"sample_nuts: max_treedepth={depth} must be from 1 to 20")
    if init not in INITS:
        raise ValueError(f"sample_nuts: init={init!r} must be {' or '.join(map(repr, INITS))}")


class _Runs:
    """The chains of one call, run at once in threads."""

    def __init__(
        self, sampler: Sampler, draws: int, tune: int, target: float, most_depth: int
    ) -> None:
        self._sampler, self._draws, self._tune = sampler, draws, tune
        self._target, self._most_depth = target, most_depth
        self._stop = Event()

    def all(self, chains: Sequence[Chain], cores: int, progressbar: bool) -> list[Any]:
        """Return positions and statistics of all draws of each chain."""
        with _progress(progressbar, len(chains), self._tune + self._draws) as show:
            with ThreadPoolExecutor(min(cores, len(chains))) as pool:
                waiting = [
                    pool.submit(self._one, chain, lambda *news, i=i: show(i, *news))
                    for i, chain in enumerate(chains)
                ]
                try:
                    return [w.result() for w in waiting]
                finally:
                    self._stop.set()

    def _one(self, chain: Chain, show: Callable[..., None]) -> tuple[Any, dict[str, Any]]:
        """One chain, a chunk of draws after the other."""
        positions, statistics, divergences = [], [], 0
        for tuning, total in ((True, self._tune), (False, self._draws)):
            for first in range(0, total, CHUNK):
                if self._stop.is_set():
                    raise KeyboardInterrupt
                count = min(CHUNK, total - first)
                chain, draws, found = self._sampler.advance(
                    chain, count, tuning, self._target, self._most_depth
                )
                positions.append(draws)
                statistics.append(found)
                divergences += 0 if tuning else int(found["diverging"].sum())
                show(count, divergences, float(found["step_size"][-1]))
        merged = {k: np.concatenate([s[k] for s in statistics]) for k in statistics[0]}
        return np.concatenate(positions), merged


class _progress:
    """A bar for each chain; a context whose value is told of new draws."""

    def __init__(self, shown: bool, chains: int, total: int) -> None:
        self._bars = Progress(
            TextColumn("chain {task.fields[chain]}"), BarColumn(),
            TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn(),
            TextColumn("step size {task.fields[step]:.3g}, {task.fields[divergences]} divergences"),
            disable=not shown,
        )  # fmt: skip
        self._tasks = [
            self._bars.add_task("", total=total, chain=i, step=0.0, divergences=0)
            for i in range(chains)
        ]

    def __enter__(self) -> Callable[..., None]:
        self._bars.start()
        return self._show

    def __exit__(self, *problem: Any) -> None:
        self._bars.stop()

    def _show(self, chain: int, count: int, divergences: int, step: float) -> None:
        self._bars.update(self._tasks[chain], advance=count, divergences=divergences, step=step)


def _inference_data(
    density: Density,
    found: Sequence[tuple[Any, dict[str, Any]]],
    tune: int,
    names: Sequence[str] | None,
    keep_warmup: bool,
    seconds: float,
) -> Any:
    """Arrange the draws of all chains as ArviZ wants them."""
    positions = np.stack([p for p, _ in found])
    statistics = {TITLES.get(k, k): np.stack([s[k] for _, s in found]) for k in found[0][1]}
    parts = {"": slice(tune, None)} | ({"warmup_": slice(tune)} if keep_warmup else {})
    groups: dict[str, Any] = {}
    for prefix, part in parts.items():
        groups[f"{prefix}posterior"] = density.values(positions[:, part], names)
        groups[f"{prefix}sample_stats"] = {k: v[:, part] for k, v in statistics.items()}
    model = density.model
    for title, data in (
        ("observed", find_observations(model)),
        ("constant", find_constants(model)),
    ):
        if data:
            groups[f"{title}_data"] = data
    coords, dims = coords_and_dims_for_inferencedata(model)
    attrs = make_attrs({"sampling_time": seconds, "tuning_steps": tune}, inference_library=pm)
    return from_dict(
        groups, coords=coords, dims=dims, sample_dims=["chain", "draw"],
        save_warmup=keep_warmup,
        attrs={"posterior": attrs},
    )  # fmt: skip


__all__ = ["pytensor_backend", "sample_nuts"]
