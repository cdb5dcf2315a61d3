"""Copies to devices out of loops: captured values and sequences of a loop that stays on the host
are copied once, before its first step.

The phase stands behind all others, and the bodies that it changes are not rewritten again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from symcomp.compile.device_loops import RewriteBody
from symcomp.compile.hoisted_rows import rows_there
from symcomp.core.closed import ClosedGraph
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Variable
from symcomp.core.walk import graph_inputs, rebuild
from symcomp.gpu.rules import is_needed
from symcomp.gpu.transfers import ToDevice, ToHost, on_device
from symcomp.gpu.type import DeviceType
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.trace import Firing
from symcomp.scan.layout import flat_arguments, flat_body_inputs, flat_results
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
            after = str(made[0].owner)
            firings.append(Firing("hoisted copies", "hoist", node.source, str(node), after))
            graph.replace_all(zip(node.outputs, made, strict=True))


def _hoisted(graph: FunctionGraph, node: Apply, rewrite_body: RewriteBody) -> list[Variable] | None:
    """Return the results of a loop with captured values on devices; None if its steps need none
    there.
    """
    op: Any = node.op
    given = op.layout.arguments(node.inputs)
    body, lent = _rewritten(op, given.captured, rewrite_body)
    step = op.layout.step(body.inputs)
    outside: dict[Variable, Variable] = dict(
        zip(step.captured, [*given.captured, *lent.values()], strict=True)
    )
    for there, i in zip(step.captured[len(given.captured) :], lent, strict=True):
        _read_on_host(body, there, step.captured[i])
    for x in step.captured:
        for client, _ in body.clients[x]:
            if client != "output" and isinstance(client.op, ToDevice):
                copied = on_device(graph, outside[x], client.op.device)
                outside[client.outputs[0]] = copied
    rows = rows_there(graph, op, given, body)
    outside |= rows.arrays
    outputs = rebuild(body.outputs, rows.parts)
    read = set(graph_inputs(outputs, {*body.inputs, *outside}))
    kept = [x for x in outside if x in read]
    if not any(isinstance(x.type, DeviceType) for x in kept):
        return None
    pairs = [
        (row, x)
        for row, x in zip(step.rows, given.sequences, strict=True)
        if row in read or row not in rows.copied
    ]
    layout = replace(op.layout, n_sequences=len(pairs))
    step = step._replace(rows=[row for row, _ in pairs], captured=kept)
    given = given._replace(
        sequences=[x for _, x in pairs], captured=[outside[x] for x in kept]
    )
    new = layout.results(outputs)
    if rows.parts:
        layout, step, given, new = rows.carried(layout, step, given, new)
    closed = ClosedGraph(flat_body_inputs(step), flat_results(new))
    made = replace(op, body=closed, layout=layout, selects=by_nothing)
    inputs = flat_arguments(given)
    found = layout.results(Apply(made, inputs, made.output_types(*inputs), node.source).outputs)
    return flat_results(found._replace(carried=found.carried[: op.layout.n_carried]))


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
    RuleSet([]), ("devices", *FULL), hoist_copies, is_needed, sweeps_bodies=True,
)  # fmt: skip
FEATURE = Feature("hoisted copies", (("scatters", PHASE),))


def offer() -> None:
    """Hoist copies from now on."""
    offer_feature(FEATURE)
