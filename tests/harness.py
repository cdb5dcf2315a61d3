"""The check of every op: value, dtype, static shape, inferred shape, L-op and R-op."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp.tensor  # noqa: F401  (installs the operators of variables)
from symcomp.autodiff.check import check_derivatives
from symcomp.compile import features
from symcomp.compile.saving.graphs import GraphReader, GraphWriter
from symcomp.core.closed import ClosedGraph
from symcomp.core.evaluate import evaluate
from symcomp.core.node import Apply, Variable
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.core.walk import toposort
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.linalg.products import Dot
from symcomp.vm.guard import Binder

ALL_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
FLOAT_DTYPES = ("float16", "float32", "float64")
RTOL = {"float16": 2e-3, "float32": 2e-6, "complex64": 2e-6}
# The ops, and the kinds of their inputs, that were saved and read again.
SAVED: set[Any] = set()


def variables_for(values: tuple[Any, ...], static: str) -> list[TensorVariable]:
    """Make a variable for each value: with all lengths known, or only lengths of 1."""
    kinds = []
    for value in values:
        shape = np.shape(value)
        known = shape if static == "full" else tuple(1 if n == 1 else None for n in shape)
        kinds.append(TensorType(np.asarray(value).dtype, known))
    return [kind(f"x{i}") for i, kind in enumerate(kinds)]


def infer_shapes(outputs: list[Any], values: dict[Variable, Any]) -> list[tuple[int, ...]]:
    """Compute the shapes of ``outputs`` by every op's infer_shape from those of the inputs."""
    known: dict[Variable, Any] = {}
    nodes = toposort(outputs)
    for node in nodes:
        for x in node.inputs:
            if x.owner is None and isinstance(x, TensorVariable):
                known[x] = np.shape(values[x] if x in values else x.data)
    for x in outputs:
        if x.owner is None:
            known[x] = np.shape(values[x] if x in values else x.data)
    for node in nodes:
        shapes = [known.get(x) for x in node.inputs]
        for out, shape in zip(node.outputs, node.op.infer_shape(node, shapes), strict=True):
            known[out] = shape
    result = []
    for out in outputs:
        entries = [as_tensor_variable(n) for n in known[out]]
        result.append(tuple(int(n) for n in evaluate(entries, values)))
    return result


def check_aliasing(nodes: list[Apply], found: dict[Variable, Any]) -> None:
    """Check that no node gives memory of its inputs other than its view_map says."""
    for node in nodes:
        for j, out in enumerate(node.outputs):
            places = (*node.op.view_map.get(j, ()), *node.op.destroy_map.get(j, ()))
            allowed = {node.inputs[i] for i in places}
            for i, x in enumerate(node.inputs):
                shared = x not in allowed and np.may_share_memory(found[out], found[x])
                assert not shared, f"output {j} of {node} shares memory with input {i}"
            fresh = not places and isinstance(found[out], np.ndarray)
            assert not fresh or found[out].flags.writeable, f"output {j} of {node} is read-only"


def check_saving(inputs: list[Any], outputs: list[Any]) -> None:
    """Check that the graph, written as JSON and read again, is the same, if it has an op, or one
    for such inputs, that was not saved before.
    """
    kinds = {
        (node.op, *((type(v.type), getattr(v, "dtype", None), getattr(v, "ndim", None))
                    for v in node.inputs))
        for node in toposort(outputs)
    }  # fmt: skip
    if kinds <= SAVED:
        return
    SAVED.update(kinds)
    writer = GraphWriter()
    text = json.loads(json.dumps(writer.graph(inputs, outputs), allow_nan=False))
    loaded = GraphReader(writer.shared, writer.arrays).graph(text)
    assert ClosedGraph(*loaded) == ClosedGraph(inputs, outputs)


def check_writing(nodes: list[Apply], found: dict[Variable, Any]) -> None:
    """Check that nodes that can write into a given array compute the same there."""
    bind = Binder(planning=features.planning())
    for node in nodes:
        planning = bind.planning_of(node)
        compute = None if node.op.destroy_map else planning.into(node)
        if compute is None:
            continue
        wants = [found[out] for out in node.outputs]
        for j, want in enumerate(wants):
            places = planning.overwritable(node, j)
            fitting = [i for i in places if found[node.inputs[i]].shape == want.shape]
            for i in (None, *fitting):
                # Copies, so that nothing is overwritten that is needed here.
                arrays = {x: np.array(found[x], copy=True) for x in node.inputs}
                targets = [np.ones_like(w) for w in wants]
                targets[j] = targets[j] if i is None else arrays[node.inputs[i]]
                results = compute(*(arrays[x] for x in node.inputs), *targets)
                for got, z in zip(
                    results if node.op.multiple_outputs else (results,), wants, strict=True
                ):
                    kind = type(got), got.dtype
                    assert kind == (type(z), z.dtype), f"{node} into an array gave {kind}"
                    # NumPy computes by other instructions into arrays that lie otherwise.
                    slack = 4 * np.finfo(z.dtype).eps if z.dtype.kind in "fc" else 0
                    # Copies are in order, so that sums of products are added up otherwise.
                    sums = z
                    if isinstance(node.op, Dot):
                        sums = node.op.perform(*(np.abs(found[x]) for x in node.inputs))
                    limit = slack * np.abs(sums).max(initial=0, where=np.isfinite(sums))
                    np.testing.assert_allclose(
                        got, z, slack, limit, err_msg=f"{node} into the array of input {i}"
                    )


def check_lengths(nodes: list[Apply], found: dict[Variable, Any]) -> None:
    """Check that nodes that computed a value do not refuse their inputs beforehand."""
    bind = Binder(planning=features.planning())
    for node in nodes:
        inputs = [found[x] for x in node.inputs]
        planning = bind.planning_of(node)
        pairs = planning.equal_lengths(node, [getattr(v, "shape", None) for v in inputs])
        assert all(m == n for m, n in pairs or ()), f"{node} needs no equal lengths {pairs}"
        check = planning.checking(node)
        if check is not None:
            before = [np.array(v, copy=True) for v in inputs]
            check(*inputs)
            for v, w in zip(inputs, before, strict=True):
                np.testing.assert_array_equal(v, w, err_msg=f"the check of {node} wrote")


def check(
    function: Callable[..., Any],
    *values: Any,
    expected: Any,
    static: str = "both",
    grad: bool = True,
    rtol: float | None = None,
    atol: float = 0.0,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Check ``function`` of variables for ``values`` against ``expected``.

    Parameters
    ----------
    function : callable
        From variables to one variable or a list of them.
    *values : array_like
        Arrays or NumPy scalars; the dtype of the variables is theirs.
    expected : callable or array_like or list
        The value, or a function from the values to it. A list or tuple for several outputs.
    static : {"none", "full", "both"}
        How much of the shapes the types of the variables know.
    grad : bool
        Check derivatives with respect to floating inputs of floating outputs.
    rtol, atol : float, optional
        For the values; by default suited to the dtype.
    tolerance : float, optional
        For the derivatives (absolute and relative).
    """
    arrays = tuple(np.asarray(v) for v in values)
    with np.errstate(all="ignore"):
        wanted = expected(*arrays) if callable(expected) else expected
    differences: dict[int, Any] = {}  # of the outputs: those of both modes are equal functions
    for mode in ("none", "full") if static == "both" else (static,):
        inputs = variables_for(arrays, mode)
        built = function(*inputs)
        several = isinstance(built, list | tuple)
        outputs = list(built) if several else [built]
        wants = list(wanted) if several else [wanted]
        given = dict(zip(inputs, arrays, strict=True))
        before = [a.copy() for a in arrays]
        with np.errstate(all="ignore"):
            nodes = toposort(outputs)
            between = [x for node in nodes for x in (*node.inputs, *node.outputs)]
            results, found = evaluate(outputs, given), evaluate(between, given)
            found = dict(zip(between, found, strict=True))
            check_aliasing(nodes, found)
            check_saving(list(given), outputs)
            check_writing(nodes, found)
            check_lengths(nodes, found)
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b, err_msg="an input was modified")
        inferred = infer_shapes(outputs, given)
        checks = zip(outputs, results, wants, inferred, strict=True)
        for j, (out, got, want, shape) in enumerate(checks):
            _check_value(out, got, np.asarray(want), shape, rtol, atol)
            if grad and out.dtype[0] in "fc" and any(x.dtype[0] in "fc" for x in inputs):
                rng, known = np.random.default_rng(seed), differences.get(j)
                with np.errstate(all="ignore"):
                    differences[j] = check_derivatives(
                        inputs, out, arrays, rng, None, tolerance, tolerance, numeric=known
                    )


def _check_value(out: Any, got: Any, want: Any, shape: Any, rtol: Any, atol: float) -> None:
    assert isinstance(got, np.ndarray), f"{out} gave {type(got)}"
    assert got.dtype.name == out.dtype, f"{out} is {out.dtype}, its value {got.dtype}"
    assert got.dtype == want.dtype, f"{out} has dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{out} has shape {got.shape}, expected {want.shape}"
    assert all(n is None or n == m for n, m in zip(out.type.shape, got.shape, strict=True)), (
        f"{out} has static shape {out.type.shape}, its value {got.shape}"
    )
    assert shape == got.shape, f"infer_shape of {out} gave {shape}, its value has {got.shape}"
    tolerance = RTOL.get(got.dtype.name, 1e-12) if rtol is None else rtol
    if got.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=atol, equal_nan=True)
    else:
        np.testing.assert_array_equal(got, want)
