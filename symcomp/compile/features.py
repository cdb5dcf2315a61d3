"""The features of the compiler, in order: phases of rewriting, lowerings and kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from symcomp.compile.builders import OpFromGraph
from symcomp.config import config
from symcomp.core.tensor import TensorType
from symcomp.cvm import machine
from symcomp.cvm.machine import Lowered
from symcomp.cvm.prepare import CPU
from symcomp.lazy import lazy_module
from symcomp.rewrite.phases import PHASES, Phase
from symcomp.rewrite.registry import is_extended
from symcomp.vm.bodies import OP_BODIES, BodiesOf
from symcomp.vm.features import (
    Feature,
    Lowering,
    lowerings_for,
    offered_features,
    with_phases,
)
from symcomp.vm.planning import Plannings
from symcomp.vm.program import Instruction


def lowered_graph(step: Instruction) -> Lowered | None:
    """Lower a graph used as an op, whose results are tensors."""
    node: Any = step.node
    if not all(isinstance(v.type, TensorType) for v in node.outputs):
        return None
    body = step.bodies[0].nested()
    return None if body is None else machine.graph(step, body)


GRAPHS = Feature("graphs", lowerings={(OpFromGraph, "cpu"): lowered_graph}, bodies=OP_BODIES)

loops = lazy_module("symcomp.scan.lowering")
devices = lazy_module("symcomp.gpu.rules")
device_loops = lazy_module("symcomp.compile.device_loops")
device_sparse = lazy_module("symcomp.compile.device_sparse")
hoisted_copies = lazy_module("symcomp.compile.hoisted_copies")
sparse_loops = lazy_module("symcomp.compile.sparse_loops")

_registered: list[Feature] = []
_MODULES_OF_LOOPS = frozenset(["symcomp.scan.op", "symcomp.scan.rows", "symcomp.autodiff.maprows"])


def register_feature(feature: Feature) -> None:
    """Add a feature; functions that are compiled from now on have it.

    Parameters
    ----------
    feature : Feature
        If two features lower an op for a target, the one registered later is used.

    Raises
    ------
    ValueError
        If there is a feature of that name.

    Examples
    --------
    >>> from symcomp.compile.features import features, register_feature, unregister_feature
    >>> from symcomp.vm.features import Feature
    >>> register_feature(Feature("mine"))
    >>> [feature.name for feature in features()]
    ['cpu', ..., 'graphs', ..., 'mine']
    >>> unregister_feature("mine")
    """
    if feature.name in [known.name for known in features()]:
        raise ValueError(f"register_feature: there is a feature {feature.name!r} already")
    _registered.append(feature)


def unregister_feature(name: str) -> None:
    """Remove a feature that was registered.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    found = [feature for feature in _registered if feature.name == name]
    if not found:
        raise ValueError(f"unregister_feature: there is no feature {name!r}")
    _registered.remove(found[0])


def features() -> tuple[Feature, ...]:
    """Return all features, in order. That of loops is there when an op of loops has been imported,
    or users have registered rules, which may belong to its phase.
    """
    if config.device != "cpu":
        devices.register()
    offered = {feature.name for feature in offered_features()}
    if "devices" in offered:
        device_loops.offer()
        hoisted_copies.offer()
    if {"devices", "sparse"} <= offered:
        device_sparse.offer()
    has_loops = any(name in sys.modules for name in _MODULES_OF_LOOPS) or is_extended()
    if has_loops and "sparse" in offered:
        sparse_loops.offer()
    of_loops = [loops.LOOPS] if has_loops else []
    return (CPU, *of_loops, GRAPHS, *offered_features(), *_registered)


def phases() -> tuple[Phase, ...]:
    """Return the phases of rewriting, those of the features included."""
    return with_phases(PHASES, features())


def lowerings(target: str) -> dict[type, Lowering]:
    """Return the lowerings for a target, by the class of the op."""
    return lowerings_for(features(), target)


def planning() -> Plannings:
    """Return the facts for the planner of programs, by the class of the op."""
    return {op: how for feature in features() for op, how in feature.planning.items()}


def bodies() -> BodiesOf:
    """Return how graphs in ops are compiled and run, by the class of the op."""
    return {op: how for feature in features() for op, how in feature.bodies.items()}


def kernels() -> Mapping[type, Callable[[Any], Any]]:
    """Return the formulas of the nodes that are generated kernels, by the class of the op."""
    return {op: formula for feature in features() for op, formula in feature.kernels.items()}
