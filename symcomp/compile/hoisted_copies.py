"""Copies to devices out of loops: captured values and sequences of a loop that stays on the host
are copied once, before its first step, and states that its steps compute there stay there.

The phase stands behind all others, and the bodies that it changes are not rewritten again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.compile.device_loops import RewriteBody
from symcomp.compile.device_states import (
    crossings,
    devices_of_results,
    on_devices,
    started_on,
    use_there,
)
from symcomp.compile.hoisted_rows import rows_there
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record, replace
from symcomp.core.walk import graph_inputs, rebuild
from symcomp.gpu.rules import copy_results_together, is_needed
from symcomp.gpu.transfers import ToDevice, ToHost, on_device
from symcomp.gpu.type import DeviceType
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.trace import Firing
from symcomp.scan.layout import Arguments, flat_arguments, flat_body_inputs, flat_results
from symcomp.scan.lowering import chosen_inspector, chosen_rewrites
from symcomp.scan.op import Scan
from symcomp.scan.run import by_nothing
from symcomp.vm.features import Feature, offer_feature


def hoist_copies(graph: FunctionGraph, firings: list[Firing], rewrite_body: RewriteBody) -> None:
    """Copy captured values to devices before the loops whose steps need them there.

    Parameters
    ----------
    graph : FunctionGraph
        Changed in place.
    firings : list of Firing
        Each replacement is added.
    rewrite_body : callable (graph, selects)
        Rewrites a step in place, as the graph around it was.
    """
    for node in graph.toposort():
        if not isinstance(node.op, Scan) or chosen_inspector(node.op) is not None:
            continue
        made = _hoisted(graph, node, rewrite_body)
        if made is not None:
            after = ", ".join(map(str, made))
            firings.append(Firing("hoisted copies", "hoist", node.source, str(node), after))
            graph.replace_all(zip(node.outputs, made, strict=True))
            for z in made:
                if z.owner is not None and isinstance(z.owner.op, ToHost):
                    use_there(graph, z)


def _hoist_from_function(
    graph: FunctionGraph, firings: list[Firing], rewrite_body: RewriteBody
) -> None:
    """Hoist copies; results that are copied to the host for the caller alone arrive together."""
    hoist_copies(graph, firings, rewrite_body)
    copy_results_together(graph)


@record(frozen=False)
class _Loop:
    """A loop whose step has been rewritten.

    Attributes
    ----------
    op : Scan
    given : Arguments
    body : FunctionGraph
        The step, which also has the captured values that lie on devices as inputs.
    lent : dict of int to Variable
        These values outside, by the number of the captured value.
    """

    op: Any
    given: Arguments
    body: FunctionGraph
    lent: dict[int, Variable]


def _rewritten_loop(graph: FunctionGraph, node: Apply, rewrite_body: RewriteBody) -> _Loop:
    """Return a loop that keeps states on devices if there are fewer copies in each step then."""
    op: Any = node.op
    given = op.layout.arguments(node.inputs)
    found = _Loop(op, given, *_rewritten(op, given.captured, rewrite_body))
    devices = devices_of_results(op, found.body)
    if not devices:
        return found
    moved = on_devices(op, devices)
    body, lent = _rewritten(moved, given.captured, rewrite_body)
    if crossings(moved, body) >= crossings(op, found.body):
        return found
    return _Loop(moved, started_on(graph, given, devices), body, lent)


def _values_outside(graph: FunctionGraph, loop: _Loop) -> dict[Variable, Variable]:
    """Return the values of inputs of the body that are the same in all steps, copies of them to
    devices included.
    """
    captured, n = loop.op.layout.step(loop.body.inputs).captured, len(loop.given.captured)
    found: dict[Variable, Variable] = dict(
        zip(captured, [*loop.given.captured, *loop.lent.values()], strict=True)
    )
    for there, i in zip(captured[n:], loop.lent, strict=True):
        _read_on_host(loop.body, there, captured[i])
    for x in captured:
        for client, _ in loop.body.clients[x]:
            if client != "output" and isinstance(client.op, ToDevice):
                found[client.outputs[0]] = on_device(graph, found[x], client.op.device)
    return found


def _hoisted(graph: FunctionGraph, node: Apply, rewrite_body: RewriteBody) -> list[Variable] | None:
    """Return the results of a loop with values on devices; None if its steps need none there."""
    loop = _rewritten_loop(graph, node, rewrite_body)
    layout, given, body = loop.op.layout, loop.given, loop.body
    step, outside = layout.step(body.inputs), _values_outside(graph, loop)
    rows = rows_there(graph, loop.op, given, body)
    outside |= rows.arrays
    outputs = rebuild(body.outputs, rows.parts)
    read = set(graph_inputs(outputs, {*body.inputs, *outside}))
    kept = [x for x in outside if x in read]
    if not any(isinstance(x.type, DeviceType) for x in (*kept, *outputs)):
        return None
    pairs = [
        (row, x)
        for row, x in zip(step.rows, given.sequences, strict=True)
        if row in read or row not in rows.copied
    ]
    layout = replace(layout, n_sequences=len(pairs))
    step = step._replace(rows=[row for row, _ in pairs], captured=kept)
    given = given._replace(
        sequences=[x for _, x in pairs], captured=[outside[x] for x in kept]
    )
    new = layout.results(outputs)
    if rows.parts:
        layout, step, given, new = rows.carried(layout, step, given, new)
    closed = ClosedGraph(flat_body_inputs(step), flat_results(new))
    made = replace(loop.op, body=closed, layout=layout, selects=by_nothing)
    inputs = flat_arguments(given)
    found = layout.results(Apply(made, inputs, made.output_types(*inputs), node.source).outputs)
    results = flat_results(found._replace(carried=found.carried[: loop.op.layout.n_carried]))
    return [ToHost()(z) if isinstance(z.type, DeviceType) else z for z in results]


def _rewritten(
    op: Any, captured: Sequence[Variable], rewrite_body: RewriteBody
) -> tuple[FunctionGraph, dict[int, Variable]]:
    """Return the rewritten body of a loop, which also has the captured values that lie on devices
    as inputs; and these values, by the number of the captured value.
    """
    inner = op.layout.step(op.body.inputs).captured
    lent = {
        i: x.owner.inputs[0]
        for i, x in enumerate(captured)
        if x.owner is not None and isinstance(x.owner.op, ToHost)
    }
    made = [x.type.make_variable(inner[i].name) for i, x in lent.items()]
    pairs = {inner[i]: ToHost()(x) for i, x in zip(lent, made, strict=True)}
    body = FunctionGraph([*op.body.inputs, *made], rebuild(op.body.outputs, pairs))
    rewrite_body(body, chosen_rewrites(op))
    hoist_copies(body, [], rewrite_body)
    return body, lent


def _read_on_host(body: FunctionGraph, there: Variable, here: Variable) -> None:
    """Let a step that needs a captured value on the host, too, read the one that lies there."""
    for client, _ in list(body.clients[there]):
        if client != "output" and isinstance(client.op, ToHost):
            body.replace(client.outputs[0], here)


PHASE = Phase(
    "hoisted copies", "captured values and sequences are copied to devices before loops",
    RuleSet([]), ("devices", *FULL), _hoist_from_function, is_needed, sweeps_bodies=True,
)  # fmt: skip
FEATURE = Feature("hoisted copies", (("scatters", PHASE),))


def offer() -> None:
    """Hoist copies from now on."""
    offer_feature(FEATURE)
