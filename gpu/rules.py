"""The phase that moves regions of a graph to devices, with copies at their borders.

Nodes move if their inputs are on a device, or, with ``config.device``, if they compute floats of
arrays. Nodes that can be one region become one ``DeviceGraph``; levels (as in fusion) see to it
that regions make no cycles. Lengths of arrays on devices are known without copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symcomp.config import config
from symcomp.core.closed import ClosedGraph
from symcomp.core.dtype import is_discrete
from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.walk import toposort
from symcomp.gpu.branches import choose_on_devices
from symcomp.gpu.driver.devices import canonical
from symcomp.gpu.fusion import fused_for_devices, take_products_apart
from symcomp.gpu.inlining import inline_graphs
from symcomp.gpu.loop_plans import lowered_loop
from symcomp.gpu.loops import DeviceLoop, DeviceUntil, is_count, leave_loops
from symcomp.gpu.lowerings.contract import (
    TARGET,
    is_number,
    lacks_library,
    lowering_of,
    lowerings,
    makes_arrays,
)
from symcomp.gpu.lowerings.decompositions import DECOMPOSITIONS
from symcomp.gpu.lowerings.determinants import DETERMINANTS
from symcomp.gpu.lowerings.elements import ELEMENTS
from symcomp.gpu.lowerings.fourier import FOURIER
from symcomp.gpu.lowerings.linalg import LINALG
from symcomp.gpu.lowerings.parts import PARTS
from symcomp.gpu.lowerings.products import PRODUCTS
from symcomp.gpu.lowerings.views import VIEWS
from symcomp.gpu.lowerings.windows import WINDOWS
from symcomp.gpu.region import DeviceGraph
from symcomp.gpu.rows import DeviceRows
from symcomp.gpu.transfers import (
    DeviceLength,
    DevicePart,
    ToDevice,
    ToHost,
    ToHostTogether,
    on_device,
)
from symcomp.gpu.type import DeviceType
from symcomp.gpu.until import DeviceUntilGraph
from symcomp.ops.control.conditions import IfElse
from symcomp.ops.control.regions import place
from symcomp.ops.formulas.fused import Fused
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import is_advanced
from symcomp.ops.reductions.reduce import ArgReduce
from symcomp.ops.shapes.shape import Shape, ShapeI
from symcomp.ops.sorting.sort import Argsort, SearchSorted
from symcomp.ops.sorting.topk import ArgTopK
from symcomp.rewrite.phases import FULL, Phase
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.trace import Firing
from symcomp.vm.features import Feature, offer_feature
from symcomp.vm.written_rows import written_rows

HOST, DEVICE, LENGTH = "host", "device", "length"


def is_needed(graph: FunctionGraph) -> bool:
    """Return whether values of a graph are on devices, or ``config.device`` is one."""
    return config.device != "cpu" or any(isinstance(v.type, DeviceType) for v in graph.clients)


def move(graph: FunctionGraph, firings: list[Firing]) -> None:
    """Move what can be computed on devices, in place.

    Parameters
    ----------
    graph : FunctionGraph
    firings : list of Firing
        Each replacement is added.
    """
    take_products_apart(graph)
    _take_parts_first(graph)
    mover = _Mover(graph)
    for nodes, device in mover.regions():
        _replace(graph, nodes, device, mover.kinds, firings)
    leave_loops(graph)
    choose_on_devices(graph)
    _cancel(graph)
    copy_results_together(graph)


def _take_parts_first(graph: FunctionGraph) -> None:
    """Take parts of arrays on a device, at positions known in a call only, before regions:
    the plan of a region serves all positions then.
    """
    for node in graph.toposort():
        if not is_part(node):
            continue
        x, *numbers = node.inputs
        known = all(isinstance(n, Constant) for n in numbers)
        if known or x.owner is None or not isinstance(x.owner.op, ToHost):
            continue
        part = DevicePart(node.op.pattern)(x.owner.inputs[0], *numbers)
        part.source = node.source
        graph.replace(node.outputs[0], ToHost()(part))


class _Mover:
    """Decides where nodes are computed.

    Attributes
    ----------
    kinds : dict of Apply to str
        On the host, on a device, or a number that follows from lengths.
    devices : dict of Apply to str
    chosen : dict of Variable to str
        The devices of results of ifelse.
    """

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.order = graph.toposort()
        self.default = None if config.device == "cpu" else canonical(config.device)
        self.kinds: dict[Apply, str] = {}
        self.devices: dict[Apply, str] = {}
        self.chosen: dict[Variable, str] = {}
        for node in self.order:
            self._choose(node)
            if isinstance(node.op, IfElse):
                self._pass_choices(node)
        self._follow_users()
        self._choose_lengths()
        self._leave_lengths()
        self._leave_out_copies()

    def _device_of(self, x: Variable) -> str | None:
        """Return the device that a value is on, or was made on."""
        while x.owner is not None and isinstance(x.owner.op, ToHost | ToDevice):
            if isinstance(x.type, DeviceType):
                return x.type.device
            x = x.owner.inputs[0]
        if isinstance(x.type, DeviceType):
            return x.type.device
        if is_count(x):
            return None
        if x in self.chosen:
            return self.chosen[x]
        maker = x.owner
        return self.devices.get(maker) if maker is not None and self._is(maker, DEVICE) else None

    def _is(self, node: Apply | None, kind: str) -> bool:
        return node is not None and self.kinds.get(node, HOST) == kind

    def _choose(self, node: Apply) -> None:
        self.kinds[node] = HOST
        lowering = lowering_of(node)
        if lowering is None:
            self._choose_number(node)
            return
        on_host = lowering.on_host(node)
        given = [x for i, x in enumerate(node.inputs) if i not in on_host]
        found = [d for d in map(self._device_of, given) if d is not None]
        if isinstance(node.op, Shape | ShapeI):
            if found:
                self.kinds[node], self.devices[node] = LENGTH, found[0]
        elif found:
            self.kinds[node], self.devices[node] = DEVICE, found[0]
        elif not self._choose_number(node) and self._is_work(node, given):
            assert self.default is not None
            self.kinds[node], self.devices[node] = DEVICE, self.default
        if self._is(node, DEVICE) and lacks_library(node, self.devices[node]):
            self.kinds[node] = HOST

    def _pass_choices(self, node: Apply) -> None:
        """Note which results of an ifelse are on a device, as both values are."""
        _, *values = node.inputs
        n = len(node.outputs)
        for z, x, y in zip(node.outputs, values[:n], values[n:], strict=True):
            device = self._device_of(x)
            if device is not None and self._device_of(y) == device:
                self.chosen[z] = device

    def _follow_users(self) -> None:
        """Let elements be moved where all users of the results are. A part is taken there only if
        others need the whole array there, too: else it alone is copied.
        """
        wanted: dict[Apply, str] = {}
        movers = [n for n in reversed(self.order) if self._is(n, HOST) and _only_moves(n)]
        for node in movers:
            device = self._device_of_users(node, wanted)
            if device is not None:
                wanted[node] = device
        for node in movers:
            device = self._device_of_users(node, {})
            if device is None or (is_part(node) and not self._is_copied(node, wanted)):
                continue
            self.kinds[node], self.devices[node] = DEVICE, device

    def _device_of_users(self, node: Apply, wanted: dict[Apply, str]) -> str | None:
        """Return the device that all uses of a node's results are on, or that they want to be on;
        None if there is none.
        """
        uses = [client for z in node.outputs for client in self.graph.clients[z]]
        found = {wanted.get(user) or self._device_of_use(user, i) for user, i in uses}
        return found.pop() if len(found) == 1 else None

    def _device_of_use(self, user: Any, i: int) -> str | None:
        """Return the device that a node reads its input ``i`` on; None if it does on the host."""
        if user == "output" or not self._is(user, DEVICE):
            return None
        lowering = lowering_of(user)
        on_host = lowering is not None and i in lowering.on_host(user)
        return None if on_host else self.devices[user]

    def _is_copied(self, part: Apply, wanted: dict[Apply, str]) -> bool:
        """Return whether other nodes, too, need the array there that a part is of."""
        node: Apply | None = part
        while node is not None and _only_moves(node):
            x = node.inputs[0]
            others = [c for c in self.graph.clients[x] if c[0] not in ("output", node)]
            if wanted[part] in [wanted.get(c[0]) or self._device_of_use(*c) for c in others]:
                return True
            node = x.owner
        return False

    def _leave_out_copies(self) -> None:
        """Let what a device computes be used there itself, where users asked for a copy."""
        for node in self.order:
            if not isinstance(node.op, ToHost):
                continue
            there = node.inputs[0]
            if there.owner is None or not isinstance(there.owner.op, ToDevice):
                continue
            made = there.owner.inputs[0]
            if self._is(made.owner, DEVICE) and self.devices[made.owner] == there.type.device:
                self.graph.replace(node.outputs[0], made)
        self.order = self.graph.toposort()

    def _choose_lengths(self) -> None:
        """Let numbers that only devices need, and that follow from the lengths of arrays which are
        copied there, be computed with them.
        """
        wanted: dict[Apply, str] = {}
        for node in reversed(self.order):
            users = [client for z in node.outputs for client, _ in self.graph.clients[z]]
            places = {
                self.devices.get(user) if self.kinds.get(user, HOST) != HOST else wanted.get(user)
                for user in users
            }
            place = places.pop() if len(places) == 1 else None
            if self.kinds[node] == HOST and place is not None and is_number(node):
                wanted[node] = place
        for node in self.order:
            if node not in wanted:
                continue
            if isinstance(node.op, Shape | ShapeI):
                users = [client for client, _ in self.graph.clients[node.inputs[0]]]
                moved = any(
                    self._is(user, DEVICE) and self.devices[user] == wanted[node] for user in users
                )
                if moved:
                    self.kinds[node], self.devices[node] = LENGTH, wanted[node]
            else:
                self._choose_number(node)

    def _leave_lengths(self) -> None:
        """Let lengths of arrays that are on a device before the call, and that the host needs, be
        known there: the host then needs no region for them.
        """
        for node in self.order:
            if not self._is(node, LENGTH) or not isinstance(node.op, ShapeI):
                continue
            users = [client for z in node.outputs for client, _ in self.graph.clients[z]]
            is_wanted = any(self.kinds.get(user, HOST) == HOST for user in users)
            if is_wanted and _origin(node.inputs[0]).owner is None:
                self.kinds[node] = HOST

    def _choose_number(self, node: Apply) -> bool:
        """Let a number that follows from lengths be computed where these are known; those of arrays
        on the host may be among them.
        """
        makers = [x.owner for x in node.inputs if not isinstance(x, Constant)]
        lengths = [m for m in makers if self._is(m, LENGTH)]
        others = [m for m in makers if not self._is(m, LENGTH)]
        known = all(m is not None and isinstance(m.op, Shape | ShapeI) for m in others)
        if not lengths or not known or not is_number(node):
            return False
        self.kinds[node], self.devices[node] = LENGTH, self.devices[lengths[0]]
        return True

    def _is_work(self, node: Apply, given: Sequence[Any]) -> bool:
        """Return whether a node begins a region on the device of the configuration."""
        if self.default is None or lowering_of(node) is None or _only_moves(node):
            return False
        if isinstance(node.op, DeviceLoop):
            return any(map(self._is_work_of_step, toposort(node.op.body.outputs)))
        return _computes_floats(node) and any(x.ndim for x in given)

    def _is_work_of_step(self, node: Apply) -> bool:
        return self._is_work(node, node.inputs)

    def regions(self) -> list[tuple[list[Apply], str]]:
        """Groups of nodes that can be one, each after those it depends on."""
        placement = place(self.order, self.graph.outputs)
        levels: dict[Apply, int] = {}
        keys: dict[Apply, Any] = {}
        for node in self.order:
            moved = self.kinds[node] != HOST
            alone = node if isinstance(node.op, DeviceUntil) else None
            keys[node] = (self.devices[node], placement[node], alone) if moved else None
            level = 0
            lowering = lowering_of(node) if self._is(node, DEVICE) else None
            on_host = lowering.on_host(node) if lowering is not None else frozenset()
            for i, x in enumerate(node.inputs):
                maker = _origin(x).owner
                if maker is None:
                    continue
                same = keys[maker] == keys[node]
                if same and moved and i in on_host and self._is(maker, DEVICE):
                    same = False  # the host needs the value
                # Nodes with inputs from the host alone may join any region.
                level = max(level, levels[maker] + (keys[maker] is not None and not same))
            levels[node] = level
        self._wait_for_users(levels, keys)
        groups: dict[Any, list[Apply]] = {}
        for node in self.order:
            if keys[node] is not None:
                groups.setdefault((levels[node], keys[node]), []).append(node)
        ordered = sorted(groups.items(), key=lambda item: item[0][0])
        return [
            (nodes, key[1][0])
            for key, nodes in ordered
            if any(self._is(node, DEVICE) for node in nodes)
        ]

    def _wait_for_users(self, levels: dict[Apply, int], keys: dict[Apply, Any]) -> None:
        """Move nodes whose values are needed by later regions of the same place alone to the first
        of these: there is one region less, if no others are left.
        """
        for node in reversed(self.order):
            clients = [client for z in node.outputs for client in self.graph.clients[z]]
            if keys[node] is None or not clients:
                continue
            if all(self._takes_there(user, i, keys, keys[node]) for user, i in clients):
                levels[node] = max(levels[node], min(levels[user] for user, _ in clients))

    def _takes_there(self, user: Any, i: int, keys: dict[Apply, Any], key: Any) -> bool:
        """Tell whether a client is a node with this key, and takes input ``i`` on the device."""
        if user == "output" or keys[user] != key:
            return False
        lowering = lowering_of(user) if self._is(user, DEVICE) else None
        return lowering is None or i not in lowering.on_host(user)


def is_part(node: Apply) -> bool:
    """Return whether a node takes a part of an array that is a view."""
    return isinstance(node.op, Subtensor) and not is_advanced(node.op.pattern)


def _computes_floats(node: Apply) -> bool:
    """Return whether values of a node, or of a step of its formula, are floats; or whether it sorts
    some, or finds extremes of them.
    """
    op: Any = node.op
    dtypes = [z.dtype for z in node.outputs]
    if isinstance(op, Fused):
        dtypes += [step.dtype for step in op.formula.steps]
    if isinstance(op, ArgReduce | Argsort | ArgTopK | SearchSorted):
        dtypes += [x.dtype for x in node.inputs]
    return not all(map(is_discrete, dtypes))


def _only_moves(node: Apply) -> bool:
    """Return whether a node shows or moves elements, and computes none."""
    lowering = lowering_of(node)
    is_length = isinstance(node.op, Shape | ShapeI)
    return lowering is not None and not is_length and (lowering.only_moves or is_part(node))


def _origin(x: Variable) -> Variable:
    """``x``, before it was copied to and from devices."""
    while x.owner is not None and isinstance(x.owner.op, ToHost | ToDevice):
        x = x.owner.inputs[0]
    return x


def _replace(
    graph: FunctionGraph,
    nodes: Sequence[Apply],
    device: str,
    kinds: dict[Apply, str],
    firings: list[Firing],
) -> None:
    """Put one op in the place of nodes, whose order is one of dependence."""
    members = set(nodes)
    inputs: dict[Variable, None] = {}
    on_host: set[Variable] = set()
    for node in nodes:
        lowering = lowering_of(node)
        needed = lowering.on_host(node) if lowering is not None else frozenset()
        for i, x in enumerate(node.inputs):
            if x.owner in members or isinstance(x, Constant):
                continue
            inputs.setdefault(x)
            is_number = kinds[node] == LENGTH and not isinstance(node.op, Shape | ShapeI)
            if i in needed or is_number:
                on_host.add(x)
    outputs = [z for node in nodes for z in node.outputs if _is_used_outside(graph, z, members)]
    # A number that is needed in both places stays on the host: it is a constant of the plan.
    given = [x if x in on_host else on_device(graph, x, device) for x in inputs]
    make = DeviceUntilGraph if isinstance(nodes[0].op, DeviceUntil) else DeviceGraph
    numbers = tuple(i for i, x in enumerate(inputs) if x in on_host)
    op = make(
        fused_for_devices(ClosedGraph(list(inputs), outputs), numbers),
        device,
        numbers,
        tuple(i for i, z in enumerate(outputs) if _is_on_host(z, kinds) or is_count(z)),
    )
    region = Apply(op, given, op.output_types(*given), nodes[-1].source)
    before = ", ".join(str(node.op) for node in nodes)
    firings.append(Firing("devices", "move", region.source, before, str(op)))
    for old, new in zip(outputs, region.outputs, strict=True):
        new.source = old.source
        graph.replace(old, ToHost()(new) if isinstance(new.type, DeviceType) else new)


def _is_on_host(z: Any, kinds: dict[Apply, str]) -> bool:
    """Return whether an output of a region is a number that follows from lengths."""
    return kinds[z.owner] == LENGTH and not makes_arrays(z.owner)


def _is_used_outside(graph: FunctionGraph, x: Variable, members: set[Apply]) -> bool:
    return any(client not in members for client, _ in graph.clients[x])


def _cancel(graph: FunctionGraph) -> None:
    """Leave out copies of values to the device that they are on, and of arrays for lengths."""
    for node in graph.toposort():
        (x, *_) = node.inputs or [None]
        if x is None or x.owner is None or not isinstance(x.owner.op, ToHost):
            continue
        there = x.owner.inputs[0]
        if isinstance(node.op, ToDevice) and there.type.device == node.op.device:
            graph.replace(node.outputs[0], there)
        elif isinstance(node.op, ToDevice):  # from one device to another, without the host
            graph.replace(node.outputs[0], on_device(graph, x, node.op.device))
        elif isinstance(node.op, ShapeI):
            graph.replace(node.outputs[0], DeviceLength(node.op.axis)(there))


def copy_results_together(graph: FunctionGraph) -> None:
    """Let results that are copied to the host, and arrays that results are views of, arrive
    together: the host waits once.
    """
    copies = [
        node
        for node in graph.toposort()
        if isinstance(node.op, ToHost)
        and all(_is_result(graph, client) for client, _ in graph.clients[node.outputs[0]])
    ]
    if len(copies) > 1:
        together = ToHostTogether()(*(node.inputs[0] for node in copies))
        for node, z in zip(copies, together, strict=True):
            graph.replace(node.outputs[0], z)


def _is_result(graph: FunctionGraph, client: Any) -> bool:
    """Return whether a client of a value is a result, or a node that makes nothing but results, as
    views of all its arrays.
    """
    if client == "output":
        return True
    users = [user for z in client.outputs for user, _ in graph.clients[z]]
    shows = bool(client.op.view_map) and not isinstance(client.op, IfElse)
    return shows and all(user == "output" for user in users)


TABLE = {
    **ELEMENTS, **VIEWS, **PARTS, **PRODUCTS, **WINDOWS, **FOURIER, **LINALG, **DETERMINANTS,
    **DECOMPOSITIONS,
}  # fmt: skip
PHASE = Phase(
    "devices", "regions of the graph are computed on devices", RuleSet([]), FULL, move, is_needed
)
GRAPHS = Phase(
    "inline for devices", "regions go through graphs used as ops", RuleSet([]),
    ("devices", *FULL), inline_graphs, is_needed,
)  # fmt: skip
FEATURE = Feature(
    "devices",
    (("inline", GRAPHS), ("fusion", PHASE)),
    {(op, TARGET): how for op, how in lowerings(TABLE).items()}
    | dict.fromkeys([(DeviceLoop, TARGET), (DeviceUntil, TARGET)], lowered_loop),
)


def register() -> None:
    """Rewrite with this phase from now on; loops may have rows on devices."""
    written_rows.register(DeviceType, DeviceRows)
    offer_feature(FEATURE)
