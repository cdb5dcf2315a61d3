"""Radon in houses of 85 counties: a hierarchical model, sampled by ``symcomp.pymc.sample_nuts``.

    python examples/radon.py [--draws N] [--tune N] [--chains N] [--pymc] [--output DIR]

Needs ``pip install symcomp[pymc]`` and matplotlib. The houses are simulated after those of
Minnesota (Gelman and Hill, 2007, chapter 12): 919 measurements of the logarithm of radon, in
basements or on the first floor, few in most counties; what uranium is in the soil is known for each
county. The model has an intercept and a slope for each county, around a line in uranium. With
``--pymc`` PyMC's own sampler draws as well, in mode SYMCOMP. Writes ``radon.png``: the intercepts
with and without the model, and the truth.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from dataclasses import dataclass
from typing import Any

import arviz_stats
import matplotlib
import numpy as np
import pymc as pm
from matplotlib import pyplot as plt

import symcomp.pymc

matplotlib.use("Agg")  # pictures go to files; no screen is needed

COUNTIES, HOUSES = 85, 919


@dataclass
class Houses:
    """Measurements, and what they were simulated with."""

    county: np.ndarray
    floor: np.ndarray
    log_radon: np.ndarray
    uranium: np.ndarray  # the logarithm, of counties
    intercept: np.ndarray  # the truth, of counties

    @property
    def counts(self) -> np.ndarray:
        """The number of houses in each county."""
        return np.bincount(self.county, minlength=COUNTIES)

    def means_of_basements(self) -> np.ndarray:
        """Average each county's basements; NaN where there is none."""
        below = self.floor == 0
        n = np.bincount(self.county[below], minlength=COUNTIES)
        total = np.bincount(self.county[below], self.log_radon[below], minlength=COUNTIES)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def simulated(seed: int = 0) -> Houses:
    """Houses whose counties differ as those of Minnesota do."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(COUNTIES, 0.7))
    county = np.sort(np.r_[np.arange(COUNTIES), rng.choice(COUNTIES, HOUSES - COUNTIES, p=shares)])
    floor = (rng.random(HOUSES) < 0.17).astype(float)
    uranium = rng.normal(0.0, 0.4, COUNTIES)
    intercept = 1.45 + 0.7 * uranium + rng.normal(0.0, 0.16, COUNTIES)
    slope = -0.65 + rng.normal(0.0, 0.2, COUNTIES)
    noise = rng.normal(0.0, 0.75, HOUSES)
    return Houses(
        county, floor, intercept[county] + slope[county] * floor + noise, uranium, intercept
    )


def radon_model(houses: Houses) -> Any:
    """Intercepts and slopes of counties, not centred, so that the sampler moves well."""
    coords = {"county": np.arange(COUNTIES)}
    with pm.Model(coords=coords) as model:
        level, of_uranium = pm.Normal("level", 0, 5), pm.Normal("of_uranium", 0, 2)
        floor = pm.Normal("floor", 0, 2)
        sd_intercept, sd_slope = pm.HalfNormal("sd_intercept", 1), pm.HalfNormal("sd_slope", 1)
        a = pm.Normal("a", 0, 1, dims="county")
        b = pm.Normal("b", 0, 1, dims="county")
        line = level + of_uranium * houses.uranium
        intercept = pm.Deterministic("intercept", line + sd_intercept * a, dims="county")
        slope = floor + sd_slope * b
        mean = intercept[houses.county] + slope[houses.county] * houses.floor
        pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=houses.log_radon)
    return model


def summary(title: str, idata: Any, seconds: float) -> dict[str, float]:
    """Print what a sampler took, and what it found."""
    names = ["level", "of_uranium", "floor", "sd_intercept", "sd_slope", "noise"]
    found = {name: float(idata.posterior[name].mean()) for name in names}
    effective = arviz_stats.ess(idata, var_names=names, group="posterior")
    least = min(float(effective[name]) for name in names)
    sampling = float(idata.posterior.attrs["sampling_time"])
    print(f"{title}: {seconds:.1f} s, of these {sampling:.1f} s sampling")
    print(f"  least effective draws {least:.0f}, {least / sampling:.0f} a second")
    print("  " + ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    return found


def draw(houses: Houses, idata: Any, path: pathlib.Path) -> None:
    """Draw intercepts against uranium, and how near estimates come to the truth."""
    draws = idata.posterior["intercept"].values.reshape(-1, COUNTIES)
    found = draws.mean(0)
    alone = houses.means_of_basements()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    reach = np.quantile(draws, [0.05, 0.95], axis=0)
    left.vlines(houses.uranium, *reach, color="#9ab", linewidth=1)
    left.plot(houses.uranium, found, "o", markersize=3.5, label="posterior mean and 90 %")
    order = np.argsort(houses.uranium)
    line = idata.posterior["level"].values[..., None]
    line = line + idata.posterior["of_uranium"].values[..., None] * houses.uranium[order]
    left.plot(houses.uranium[order], line.mean((0, 1)), color="#444", label="line in uranium")
    left.set(xlabel="log uranium of the county", ylabel="log radon in basements")
    left.legend(frameon=False)
    right.axhline(0, color="#444", linewidth=0.8)
    right.plot(houses.counts, alone - houses.intercept, "x", color="#c63", label="mean of a county")
    right.plot(houses.counts, found - houses.intercept, "o", markersize=3.5, label="model")
    right.set(xscale="log", xlabel="houses in the county", ylabel="estimate - truth")
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"wrote {path}")


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Sample and draw; return the posterior means, and the errors of both estimates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--pymc", action="store_true", help="let PyMC's sampler draw, too")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    options = parser.parse_args(arguments)
    houses = simulated()
    given: dict[str, Any] = {
        "tune": options.tune, "chains": options.chains, "random_seed": 1, "target_accept": 0.9,
    }  # fmt: skip
    with radon_model(houses):
        start = time.perf_counter()
        idata = symcomp.pymc.sample_nuts(options.draws, progressbar=False, **given)
        found = summary("sample_nuts", idata, time.perf_counter() - start)
        if options.pymc:
            start = time.perf_counter()
            other = pm.sample(
                options.draws, cores=1, nuts_sampler="pymc", progressbar=False,
                compile_kwargs={"mode": "SYMCOMP"}, **given,
            )  # fmt: skip
            summary("pm.sample", other, time.perf_counter() - start)
    means = idata.posterior["intercept"].values.mean((0, 1))
    errors = {
        "model": float(np.sqrt(np.mean((means - houses.intercept) ** 2))),
        "counties alone": float(
            np.sqrt(np.nanmean((houses.means_of_basements() - houses.intercept) ** 2))
        ),
    }
    print("error of intercepts: " + ", ".join(f"{k} {v:.3f}" for k, v in errors.items()))
    draw(houses, idata, options.output / "radon.png")
    return found | errors


if __name__ == "__main__":
    main()
