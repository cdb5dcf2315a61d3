"""PyMC models for nutpie, whose samplers call the density by its address: no Python, no numba.

Needs nutpie, and is imported by itself: ``import symcomp.pymc.nutpie``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pymc as pm
from nutpie import _lib, compile_pymc
from nutpie.sample import CompiledModel
from pymc.initial_point import make_initial_point_fn

from symcomp.compile.c_function import CFunction
from symcomp.pytensor_backend.mode import SYMCOMP, cfunc

#: The minor series whose constructors are used here.
SERIES = "0.16"
if version("nutpie").split(".")[:2] != SERIES.split("."):
    raise ImportError(
        f"symcomp.pymc.nutpie is made for nutpie {SERIES}, and {version('nutpie')} is installed: "
        f"pip install 'nutpie=={SERIES}.*'"
    )


@dataclass(frozen=True)
class NutpieModel(CompiledModel):
    """A PyMC model for ``nutpie.sample``. Made by ``compile_model``.

    Attributes
    ----------
    density : CFunction
        From a position to the log density and its gradient.
    expand : CFunction
        From a position to the values of all variables, one after another.
    """

    density: CFunction
    expand: CFunction
    start: Any
    variables: tuple[list[str], list[slice], list[tuple[int, ...]]]
    labels: dict[str, Any]

    @property
    def n_dim(self) -> int:
        return self.density.argument_kinds[0][1][0]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        names, _, shapes = self.variables
        return {name: tuple(shape) for name, shape in zip(names, shapes, strict=True)}

    @property
    def coords(self) -> dict[str, Any]:
        return self.labels

    def _make_sampler(self, settings: Any, mean: Any, cores: Any, *rest: Any) -> Any:
        return _lib.PySampler.from_pymc(settings, cores, self._make_model(mean), *rest)

    def _make_model(self, _mean: Any) -> Any:
        names, _, shapes = self.variables
        sizes = {name: len(values) for name, values in self.labels.items()}
        n, (_, (total,)) = self.n_dim, self.expand.result_kinds[0]
        return _lib.PyMcModel(
            _lib.LogpFunc(self.density.density_address, self.density.data, self),
            _lib.ExpandFunc(n, total, self.expand.map_address, self.expand.data, self),
            _lib.PyVariable.new_variables(
                names, ["float64"] * len(names), shapes, sizes, dict(self.dims or {})
            ),
            n, sizes, dict(self.labels), self.start, _no_adapter,
        )  # fmt: skip


def _no_adapter(*_args: Any, **_given: Any) -> Any:
    raise NotImplementedError(
        "nutpie's normalizing flows need the density in JAX: use nutpie.compile_pymc_model"
    )


def compile_model(model: Any = None, *, var_names: Iterable[str] | None = None) -> NutpieModel:
    """Compile a PyMC model for ``nutpie.sample``.

    Data and shared variables keep the values that they have now. If an op of the density raises,
    nutpie panics, and ``density.error`` of the compiled model is the exception.

    Parameters
    ----------
    model : pymc.Model, optional
        By default that of the context.
    var_names : iterable of str, optional
        The variables and deterministics to keep; by default all.

    Returns
    -------
    NutpieModel

    Examples
    --------
    >>> import nutpie
    >>> import pymc as pm
    >>> from symcomp.pymc.nutpie import compile_model
    >>> with pm.Model():
    ...     x = pm.Normal("x", 3.0, 0.1)
    ...     compiled = compile_model()
    >>> trace = nutpie.sample(compiled, draws=300, chains=2, seed=1, progress_bar=False)
    >>> bool(abs(trace.posterior["x"].mean() - 3.0) < 0.05)
    True
    """
    model = pm.modelcontext(model)
    starting = make_initial_point_fn(
        model=model, default_strategy="support_point", jitter_rvs=set(model.free_RVs),
        return_transformed=True,
    )  # fmt: skip
    n, _, density, expand, start, variables, transformed = compile_pymc._make_functions(
        model, mode=SYMCOMP, compute_grad=True, join_expanded=True,
        pymc_initial_point_fn=compile_pymc._wrap_with_lock(starting), var_names=var_names,
    )  # fmt: skip
    dims, labels = compile_pymc._prepare_dims_and_coords(model, variables, transformed)
    example = start(0) if n else np.zeros(0)
    return NutpieModel(
        dims=dims, reparameterized_names=transformed, density=cfunc(density, example),
        expand=cfunc(expand, example), start=start, variables=variables, labels=labels,
    )  # fmt: skip
