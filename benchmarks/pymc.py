"""PyMC models in mode SYMCOMP beside NUMBA, JAX and nutpie: cold starts, calls, sampling.

    python benchmarks/pymc.py [--models NAME ...] [--modes MODE ...]
        [--parts densities sampling nuts] [--repeats N]

Run it with a Python that has PyMC, and the peers numba, jax and nutpie where they are wanted; lines
of JSON go to standard output, a table to standard error. Each measurement is a process of its own.

densities: CPU seconds from a built model to the first log density and gradient, with empty caches
    (threads and processes that compile count), and the least microseconds a call of many batches.
    PyMC and SciPy are imported before, as PyTensor imports SciPy's functions in any mode for the
    first constant that needs one.
sampling: CPU seconds of `pm.sample(500, tune=500, chains=2, cores=1)` in a mode that is the default
    of all functions, and of `sample_nuts`; with empty caches, once more, and with the caches of
    another model.
nuts: effective draws a second of sampling, the smallest of all variables, of `sample_nuts`, PyMC's
    NUTS and nutpie; compiling is not counted. The samplers take turns on each model. Here and for
    sampling radon is the model of examples/radon.py, which is not centred.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

TEN = (
    "linear_regression", "eight_schools", "radon", "logistic", "gaussian_process",
    "autoregression", "kalman_filter", "ordinal", "correlated_normals", "dirichlet_multinomial",
)  # fmt: skip
MODES = ("SYMCOMP", "NUMBA", "JAX")
SAMPLED = ("linear_regression", "eight_schools", "radon")
SAMPLERS = ("sample_nuts", "pymc", "pymc NUMBA", "nutpie", "nutpie SYMCOMP")


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def model_of(name: str) -> Any:
    """Return a model of the tests."""
    from symcomp.tests.pymc.models import MODELS

    return MODELS[name]()


def sampled_model(name: str) -> Any:
    """Return a model that samplers move in well."""
    if name != "radon":
        return model_of(name)
    path = Path(__file__).parents[1] / "examples" / "radon.py"
    spec = importlib.util.spec_from_file_location("example_radon", path)
    assert spec is not None and spec.loader is not None
    example = sys.modules["example_radon"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.radon_model(example.simulated())


def prepare(mode: str) -> None:
    """Import what the mode needs; that is counted."""
    if mode == "SYMCOMP":
        import symcomp.pytensor_backend  # noqa: F401


def is_settling(call: Any) -> bool:
    """Tell whether symcomp still compiles code for a function in the background."""
    function = getattr(getattr(call.vm, "jit_fn", None), "function", None)
    return function is not None and "being compiled" in function.plan()


def density(name: str, mode: str) -> dict[str, Any]:
    """Measure the first value of log density and gradient, and later ones."""
    import numpy as np
    import pymc as pm
    import scipy.special  # noqa: F401

    model = model_of(name)
    start = pm.blocking.DictToArrayBijection.map(model.initial_point())
    before, began = cpu_seconds(), time.perf_counter()
    prepare(mode)
    f = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    f.set_extra_values({})
    call = f._pytensor_function
    call.trust_input = True
    call(start.data)
    cold, first = cpu_seconds() - before, time.perf_counter() - began
    rng = np.random.default_rng(1)
    points = [start.data + 0.1 * rng.normal(size=start.data.shape) for _ in range(8)]
    while time.perf_counter() < began + first + 12.0:  # code that is optimized meanwhile
        for x in points:
            call(x)
    while is_settling(call):
        time.sleep(0.1)
        call(start.data)
    best, end = np.inf, time.perf_counter() + 3.0
    while time.perf_counter() < end:
        t = time.perf_counter()
        for x in points:
            for z in call(x):
                np.asarray(z)
        best = min(best, (time.perf_counter() - t) / len(points))
    values = [[float(np.sum(z)) for z in call(x)] for x in points[:2]]
    return {
        "cold cpu s": round(cold, 2), "first s": round(first, 2), "us": round(best * 1e6, 2),
        "values": values,
    }  # fmt: skip


def sampling(name: str, way: str) -> dict[str, Any]:
    """pm.sample from end to end."""
    import pymc as pm
    import pytensor
    from pytensor.compile.mode import get_mode

    model = sampled_model(name)
    given: dict[str, Any] = {
        "tune": 500, "chains": 2, "cores": 1, "random_seed": 1, "progressbar": False,
        "compute_convergence_checks": False,
    }  # fmt: skip
    before = cpu_seconds()
    prepare(way)
    with model:
        if way == "sample_nuts":
            import symcomp.pymc

            symcomp.pymc.sample_nuts(500, **given)
        else:
            with pytensor.config.change_flags(mode=get_mode(way)):
                pm.sample(500, nuts_sampler="pymc", compile_kwargs={"mode": way}, **given)
    return {"cpu s": round(cpu_seconds() - before, 2)}


def nuts(name: str, sampler: str) -> dict[str, Any]:
    """Effective draws for each second that sampling took, on one core."""
    import arviz_stats
    import numpy as np
    import pymc as pm

    import symcomp.pymc

    model = sampled_model(name)
    given: dict[str, Any] = {
        "tune": 1000,
        "chains": 2,
        "cores": 1,
        "random_seed": 2,
        "progressbar": False,
    }
    with model:
        if sampler == "sample_nuts":
            idata = symcomp.pymc.sample_nuts(1000, compute_convergence_checks=False, **given)
        elif sampler == "nutpie SYMCOMP":
            idata = sampled_by_nutpie(**given)
        else:
            mode = {} if sampler == "nutpie" else {
                "compile_kwargs": {"mode": "NUMBA" if "NUMBA" in sampler else "SYMCOMP"}
            }  # fmt: skip
            idata = pm.sample(
                1000,
                nuts_sampler=sampler.split()[0],
                compute_convergence_checks=False,
                **given,
                **mode,
            )
    seconds = float(idata.posterior.attrs["sampling_time"])
    free = [v.name for v in model.free_RVs]
    effective = arviz_stats.ess(idata, var_names=free, group="posterior")
    least = min(float(np.min(effective[v].values)) for v in free)
    steps = idata.sample_stats["n_steps"].values if "n_steps" in idata.sample_stats else np.nan
    means = {v: float(idata.posterior[v].values.mean()) for v in free}
    return {
        "seconds": round(seconds, 2), "least ess": round(least), "ess/s": round(least / seconds),
        "steps": float(np.mean(steps)), "means": means,
    }  # fmt: skip


def sampled_by_nutpie(
    tune: int, chains: int, cores: int, random_seed: int, progressbar: bool
) -> Any:
    """Let nutpie sample the model of the context by its address."""
    import nutpie

    from symcomp.pymc.nutpie import compile_model

    compiled = compile_model()
    began = time.perf_counter()
    idata = nutpie.sample(
        compiled, draws=1000, tune=tune, chains=chains, cores=cores, seed=random_seed,
        progress_bar=progressbar,
    )  # fmt: skip
    idata.posterior.attrs["sampling_time"] = time.perf_counter() - began
    return idata


PARTS = {"density": density, "sampling": sampling, "nuts": nuts}


def run(part: str, name: str, way: str, caches: Path) -> dict[str, Any]:
    """One measurement in a process of its own, with these caches."""
    environment = os.environ | {
        "PYTENSOR_FLAGS": f"base_compiledir={caches / 'pytensor'}",
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "SYMCOMP_FLAGS": f"compiledir={caches / 'symcomp'}",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    # As for installed packages, the bytecode of modules is kept.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # -P: the folder of this file holds no package `pymc`.
    command = [sys.executable, "-P", __file__, "--one", part, name, way]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        reason = done.stderr.strip().splitlines()[-1:] or ["no output"]
        return {"part": part, "model": name, "way": way, "failed": reason[0][:200]}
    found = json.loads(lines[-1])
    return {"part": part, "model": name, "way": way} | found


def measurements(
    parts: list[str], names: list[str], modes: list[str], repeats: int
) -> Iterator[dict[str, Any]]:
    """Make all measurements; of the densities of one model, the ways take turns."""
    for _ in range(repeats):
        for name in names:
            if "densities" in parts:
                for mode in modes:
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                        yield run("density", name, mode, Path(folder))
        for name in [n for n in names if n in SAMPLED]:
            if "sampling" in parts:
                for way in [*(m for m in modes if m != "JAX"), "sample_nuts"]:
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                        yield run("sampling", name, way, Path(folder)) | {"caches": "cold"}
                        yield run("sampling", name, way, Path(folder)) | {"caches": "warm"}
                        other = SAMPLED[SAMPLED.index(name) - 1]
                        yield run("sampling", other, way, Path(folder)) | {"caches": f"of {name}"}
            if "nuts" in parts:
                for sampler in SAMPLERS:
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                        yield run("nuts", name, sampler, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--one", nargs=3, metavar=("PART", "MODEL", "WAY"))
    parser.add_argument("--models", nargs="*", default=list(TEN))
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--parts", nargs="*", default=["densities", "sampling", "nuts"])
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    if given.one:
        part, name, way = given.one
        print(json.dumps(PARTS[part](name, way)))
        return
    for found in measurements(given.parts, given.models, given.modes, given.repeats):
        print(json.dumps(found), flush=True)
        shown = {k: v for k, v in found.items() if k not in ("values", "means")}
        print(*shown.values(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
