"""Lower a FunctionGraph to a Program: slots, order, lazy regions, copies and frees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.core.record import record, replace
from symcomp.core.special_types import generic
from symcomp.core.walk import toposort
from symcomp.errors import GraphError
from symcomp.ops.control.conditions import IfElse
from symcomp.ops.control.regions import ROOT, Placement, Region, place
from symcomp.rewrite.shapes import shapes_of
from symcomp.vm.commit import Commit, Gate, Tail, find_commits, split, writing
from symcomp.vm.destinations import Destination, Search
from symcomp.vm.frugal import frugal_order
from symcomp.vm.guard import UNCHECKED, Binder
from symcomp.vm.liveness import add_frees
from symcomp.vm.opcodes import Opcode
from symcomp.vm.order import alias_roots, destroyed_inputs, schedule
from symcomp.vm.program import Instruction, Program
from symcomp.vm.storage import plan_storage


def lower(
    graph: FunctionGraph,
    destroyable: Collection[Variable] = (),
    given_away: Collection[Variable] = (),
    stored: Collection[int] = (),
    borrowed: Collection[int] = (),
    collect: bool = True,
    bind: Binder = UNCHECKED,
    inplace: bool = True,
    sharing: bool = True,
    frugal: bool = True,
    updated: Mapping[int, Variable] | None = None,
    written_over: Mapping[int, int] | None = None,
) -> Program:
    """Make the program that computes the outputs of ``graph``.

    Parameters
    ----------
    graph : FunctionGraph
    destroyable : collection of Variable
        Inputs whose values may be overwritten.
    given_away : collection of Variable
        Inputs whose arrays instructions may overwrite with results, after their last use: each is
        writable, in row-major order, and shares no memory with others.
    stored : collection of int
        Outputs that must not lie in these arrays.
    borrowed : collection of int
        Outputs that may share memory with inputs, constants or other outputs; the others are
        copied if they would.
    collect : bool
        Drop values after their last use.
    bind : Binder
        Returns the function that computes a node.
    inplace, sharing : bool
        Write results over inputs after their last use; into other arrays after the last use of
        their values. Both need ``collect``.
    frugal : bool
        Look for an order with a lower peak of memory.
    updated : mapping of int to Variable, optional
        Outputs that may be written over inputs, by their positions, if the arrays have no other
        holders. The program may then take one more input, as ``Program.claimed`` says.
    written_over : mapping of int to int, optional
        As ``write_over_inputs`` returns it.
    """
    written_over = written_over or {}
    destroyable = {*destroyable, *(graph.inputs[i] for i in written_over.values())}
    order, after, copies = schedule(graph, destroyable)
    regions = place(order, graph.outputs)
    commits: list[Commit] = []
    if updated and collect and inplace:
        order, after, commits = _with_commits(graph, order, after, regions, updated, bind)
    over = {
        out: old
        for commit in commits
        for out, old in zip(commit.node.outputs, commit.targets, strict=True)
        if old is not None
    }
    if frugal:
        order = list(frugal_order(order, graph.outputs, after, in_place=over))
    tail = Tail(order, -1, [])
    if commits:
        tail = split(order, commits, regions, shapes_of(graph), bind)
    destinations: dict[Apply, Destination] = {}
    if collect and inplace:
        facts = shapes_of(graph)
        search = Search(graph, tail.order, tail.start, after, regions, facts, bind)
        order, destinations = search.destinations()
        tail = replace(tail, order=order)
    emitter = _Emitter(
        tail.order, regions, copies, bind, tail, {c.node: c for c in commits}, destinations
    )
    emitter.slots(graph)
    emitter.emit()
    committed = {i for i, old in (updated or {}).items() if over.get(graph.outputs[i]) is old}
    outputs = emitter.protect_outputs(graph, set(borrowed), committed)
    token = [] if emitter.token < 0 else [emitter.token]
    program = Program(
        emitter.code,
        emitter.variables,
        (*(emitter.slot_of[v] for v in graph.inputs), *token),
        tuple(outputs),
        emitter.constants,
        tuple(graph.inputs.index(v) for v in emitter.overwritten),
        written_over,
    )
    if collect:
        blocks, own = emitter.block_of, {emitter.slot_of[v] for v in given_away}
        add_frees(program, emitter.blocks, blocks, emitter.shared_slots, own)
        if inplace or sharing:
            facts = shapes_of(graph)
            apart = [outputs[i] for i in stored]
            plan_storage(program, blocks, facts, bind, inplace, sharing, own, apart)
    return program


def _with_commits(
    graph: FunctionGraph,
    order: list[Apply],
    after: dict[Apply, list[Apply]],
    regions: Placement,
    updated: Mapping[int, Variable],
    bind: Binder,
) -> tuple[list[Apply], dict[Apply, list[Apply]], list[Commit]]:
    """Return an order in which inputs can be overwritten, its constraints, and the nodes that
    overwrite.
    """
    commits, readers = find_commits(graph, order, regions, updated, bind)
    both = {node: [*after.get(node, ()), *readers.get(node, ())] for node in (*after, *readers)}
    try:
        return toposort(graph.outputs, graph.inputs, both), both, commits
    except GraphError:
        # One waits for an in-place node that waits for it: nothing is written over inputs.
        return order, after, []


@record(frozen=False)
class _Emitter:
    order: Sequence[Apply]
    regions: Placement
    copies: set[tuple[Apply, int]]
    bind: Binder
    tail: Tail
    commits: Mapping[Apply, Commit]
    destinations: Mapping[Apply, Destination]
    # The slot of what says which inputs may be overwritten, and those of the arrays that it gives.
    token: int = -1
    claimed: dict[Variable, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    slot_of: dict[Variable, int] = field(default_factory=dict)
    constants: dict[int, Any] = field(default_factory=dict)
    # Blocks of straight code: (parent block, position of the instruction at which the ifelse
    # joins).
    blocks: list[tuple[int, int]] = field(default_factory=lambda: [(-1, -1)])
    block_of: list[int] = field(default_factory=list)
    shared_slots: set[int] = field(default_factory=set)
    computes: dict[Apply, Callable[..., Any]] = field(default_factory=dict)
    # The slots of places made for results: in which the node's output is computed.
    places: dict[Apply, int] = field(default_factory=dict)

    def slots(self, graph: FunctionGraph) -> None:
        """Give a slot to every variable."""
        for variable in graph.inputs:
            self._new_slot(variable)
        if self.commits:
            self.token = self._new_slot(generic("claims"))
        for node in self.order:
            for x in node.inputs:
                self._constant_slot(x)
            for out in node.outputs:
                slot = self._new_slot(out)
                if len(self.regions[node]) > 1:
                    self.shared_slots.add(slot)
        for out in graph.outputs:
            self._constant_slot(out)

    def _constant_slot(self, x: Variable) -> None:
        if isinstance(x, Constant) and x not in self.slot_of:
            self.constants[self._new_slot(x)] = x.data

    def _new_slot(self, variable: Variable) -> int:
        self.variables.append(variable)
        self.slot_of[variable] = len(self.variables) - 1
        return len(self.variables) - 1

    def _add(self, step: Instruction, block: int) -> Instruction:
        self.code.append(step)
        self.block_of.append(block)
        return step

    def emit(self) -> None:
        """Emit every region, outermost first; nested ones through an explicit stack."""
        nodes_in: dict[Region, list[Apply]] = {}
        for node in self.order:
            for region in self.regions[node]:
                nodes_in.setdefault(region, []).append(node)
        stack = [self._region(ROOT, 0, nodes_in)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._region(*inner, nodes_in))

    def _region(
        self, region: Region, block: int, nodes_in: dict[Region, list[Apply]]
    ) -> Iterator[tuple[Region, int]]:
        """Emit one region; yields the regions to be emitted in between."""
        for node in nodes_in.get(region, ()):
            if self.commits and node is self.order[self.tail.start]:
                self._gate(block)
            guard = None
            if len(self.regions[node]) > 1:
                slot = self.slot_of[node.outputs[0]]
                guard = self._add(Instruction(Opcode.SKIP_IF_SET, (slot,)), block)
            if node in self.joins:
                self._reserve(self.joins[node], block)
            if isinstance(node.op, IfElse):
                yield from self._ifelse(node, block)
            else:
                self._call(node, block)
            if guard is not None:
                guard.target = len(self.code)

    def _ifelse(self, node: Apply, block: int) -> Iterator[tuple[Region, int]]:
        n = node.op.n_outputs
        outs = tuple(self.slot_of[v] for v in node.outputs)
        condition = self.slot_of[node.inputs[0]]
        branch = self._add(Instruction(Opcode.BRANCH, (condition,), node=node), block)
        jump = None
        opened = []
        for side in (0, 1):
            self.blocks.append((block, -1))
            inner = len(self.blocks) - 1
            opened.append(inner)
            yield (node, side), inner
            values = node.inputs[1 + side * n : 1 + (side + 1) * n]
            slots = tuple(self.slot_of[v] for v in values)
            self._add(Instruction(Opcode.MOVE, slots, outs), inner)
            if side == 0:
                jump = self._add(Instruction(Opcode.JUMP), inner)
                branch.target = len(self.code)
        assert jump is not None
        jump.target = len(self.code)
        self._add(Instruction(Opcode.FREE), block)
        for inner in opened:
            self.blocks[inner] = (block, len(self.code) - 1)

    @cached_property
    def joins(self) -> dict[Apply, Apply]:
        """For what computes a part of a join in its place, the join."""
        return {part: join for join, made in self.destinations.items() for part in made.views}

    @property
    def overwritten(self) -> list[Variable]:
        """The inputs that are overwritten, in the order in which the gate asks for them."""
        return [old for commit in self.commits.values() for old in commit.overwritten]

    def _gate(self, block: int) -> None:
        """Check what can fail; ask for the arrays that are overwritten."""
        held = [self.slot_of[old] for old in self.overwritten]
        slots = list(dict.fromkeys([self.token, *held]))
        checks = []
        for node in (commit.node for commit in self.tail.checked):
            places = []
            for slot in (self.slot_of[x] for x in node.inputs):
                if slot not in slots:
                    slots.append(slot)
                places.append(slots.index(slot))
            check = self.bind.planning_of(node).checking(node)
            assert check is not None
            checks.append((node, check, places))
        views = [self.slot_of[v] for v in self.tail.views(self.overwritten)]
        outputs = []
        for old in self.overwritten:
            self.variables.append(old)
            outputs.append(len(self.variables) - 1)
        self.claimed = dict(zip(self.overwritten, outputs, strict=True))
        gate = Gate(len(held), len(views), checks)
        step = Instruction(
            Opcode.CALL,
            (*slots, *views),
            tuple(outputs),
            compute=gate,
            several=True,
            claims=tuple(held),
        )
        self._add(step, block)

    def _commit(self, commit: Commit, block: int) -> None:
        """Add a call that leaves its results in the arrays given by the gate."""
        node = commit.node
        own = {old: self.claimed[old] for old in commit.overwritten}
        into = [-1 if old is None else self.claimed[old] for old in commit.targets]
        compute = self.bind.into(node)
        assert compute is not None
        step = Instruction(
            Opcode.CALL,
            tuple(own.get(x, self.slot_of[x]) for x in node.inputs),
            tuple(self.slot_of[v] for v in node.outputs),
            node=node,
            compute=writing(compute, into, node.op.multiple_outputs),
            several=node.op.multiple_outputs,
            into=tuple(into),
        )
        self._add(step, block)

    def _call(self, node: Apply, block: int) -> None:
        if node in self.commits:
            self._commit(self.commits[node], block)
            return
        inputs = [self.slot_of[v] for v in node.inputs]
        for i in destroyed_inputs(node):
            if (node, i) in self.copies:
                inputs[i] = self._copy(node.inputs[i], inputs[i], block)
        outputs = tuple(self.slot_of[v] for v in node.outputs)
        step = Instruction(
            Opcode.CALL, tuple(inputs), outputs, node=node, several=node.op.multiple_outputs
        )
        if node in self.places:
            compute = self.bind.into(node)
            assert compute is not None
            step.into = (self.places[node],)
            step.compute = writing(compute, step.into, step.several)
        else:
            if node not in self.computes:
                self.computes[node] = self.bind(node)
            step.compute = self.computes[node]
        self._add(step, block)

    def _reserve(self, join: Apply, block: int) -> None:
        """Make the array of a join, and the views of it for parts, if that is not done."""
        if join in self.places:
            return
        made = self.destinations[join]
        slots = []
        for variable in (join.outputs[0], *made.reserved.outputs[1:]):
            self.variables.append(variable)
            slots.append(len(self.variables) - 1)
        own = dict(zip(made.reserved.outputs, slots, strict=True))
        self._new_node(made.reserved, [self.slot_of[x] for x in made.reserved.inputs], slots, block)
        self.places[join] = slots[0]
        for maker, view in made.views.items():
            self.variables.append(maker.outputs[0])
            place = len(self.variables) - 1
            self._new_node(view, [own[x] for x in view.inputs], [place], block)
            self.places[maker] = place

    def _new_node(
        self, node: Apply, inputs: Sequence[int], outputs: Sequence[int], block: int
    ) -> None:
        """Add a call of a node that is not part of the graph."""
        step = Instruction(
            Opcode.CALL,
            tuple(inputs),
            tuple(outputs),
            node=node,
            compute=self.bind(node),
            several=node.op.multiple_outputs,
            makes_room=True,
        )
        self._add(step, block)

    def _copy(self, variable: Variable, slot: int, block: int) -> int:
        self.variables.append(variable)
        fresh = len(self.variables) - 1
        copier = variable.type.copy_value
        self._add(Instruction(Opcode.COPY, (slot,), (fresh,), compute=copier), block)
        return fresh

    def protect_outputs(
        self, graph: FunctionGraph, borrowed: set[int], committed: Collection[int]
    ) -> list[int]:
        """Copy the outputs that share memory with something that outlives the call, apart from the
        ``committed``, which lie in that of inputs.
        """
        taken = {graph.outputs[i] for i in committed}
        slots = []
        for position, variable in enumerate(graph.outputs):
            if position in committed:
                slots.append(self.slot_of[variable])
                continue
            roots = alias_roots(variable)
            slot = self.slot_of[variable]
            outlives = any(root.owner is None for root in roots) or bool(roots & taken)
            if outlives and position not in borrowed:
                slot = self._copy(variable, slot, 0)
            taken |= roots
            slots.append(slot)
        return slots
