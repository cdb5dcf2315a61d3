"""Models of PyMC for the sampler: the density as a graph, starts, and values of draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import join_nonshared_inputs
from pymc.sampling.mcmc import _init_jitter

from symcomp.pytensor_backend.graphs import Graph
from symcomp.pytensor_backend.mode import SYMCOMP


@contextmanager
def in_symcomp() -> Iterator[None]:
    """Inside, PyTensor's functions are compiled by symcomp unless they name another mode."""
    before = pytensor.config.mode
    pytensor.config.mode = SYMCOMP
    try:
        yield
    finally:
        pytensor.config.mode = before


class Density:
    """A model's log density and its gradient, of all its variables in one vector.

    Attributes
    ----------
    size : int
        The length of the vector.
    """

    def __init__(self, model: Any) -> None:
        discrete = [v.name for v in model.value_vars if v.dtype not in pm.vartypes.continuous_types]
        if discrete:
            raise TypeError(
                f"sample_nuts: {', '.join(discrete)} are discrete; NUTS needs continuous "
                "variables: use pm.sample, or marginalize them"
            )
        if not model.value_vars:
            raise ValueError("sample_nuts: the model has no free variables")
        self.model = model
        self.point = model.initial_point()
        raveled = self._raveled(self.point)
        self.size = len(raveled.data)
        self._map = raveled.point_map_info
        # Bounds of parameters are switches to -inf, or not checked, as in pm.sample.
        checks = (
            "local_check_parameter_to_ninf_switch"
            if model.check_bounds
            else "local_remove_check_parameter"
        )
        (logp,), joined = join_nonshared_inputs(self.point, [model.logp()], model.value_vars)
        self._graph = Graph([joined], [logp, pytensor.grad(logp, joined)], [checks])

    def __call__(self, position: Any) -> tuple[Any, Any]:
        """Return the log density and its gradient at a vector of symcomp's."""
        logp, gradient = self._graph(position)
        return logp, gradient

    def _raveled(self, point: dict[str, Any]) -> RaveledVars:
        ordered = {v.name: point[v.name] for v in self.model.value_vars}
        return DictToArrayBijection.map(ordered)

    def starts(
        self, evaluate: Any, initvals: Any, seeds: Sequence[int], jitter: bool, retries: int
    ) -> list[np.ndarray]:
        """Return a start for each seed, with a finite log density if one was found.

        Parameters
        ----------
        evaluate : callable
            From a vector to the log density and its gradient.
        """
        points = _init_jitter(
            self.model, initvals, seeds, jitter, retries,
            lambda point: evaluate(self._raveled(point).data)[0],
        )  # fmt: skip
        return [self._raveled(point).data for point in points]

    def values(self, draws: np.ndarray, names: Sequence[str] | None) -> dict[str, np.ndarray]:
        """Compute the variables and deterministics of draws, (chains, draws, size).

        Parameters
        ----------
        draws : ndarray
        names : sequence of str, optional
            By default all that are no transforms of others.
        """
        model = self.model
        wanted = [
            v
            for v in model.unobserved_value_vars
            if (v.name in names if names is not None else not pm.util.is_transformed_name(v.name))
        ]
        outputs, joined = join_nonshared_inputs(self.point, wanted, model.value_vars)
        f = pytensor.function([joined], [pt.as_tensor(z) for z in outputs], mode=SYMCOMP)
        f.trust_input = True
        rows = [f(row) for row in draws.reshape(-1, self.size)]
        return {
            v.name: np.array([row[i] for row in rows]).reshape(*draws.shape[:2], *rows[0][i].shape)
            for i, v in enumerate(wanted)
        }
