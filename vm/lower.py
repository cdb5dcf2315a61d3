"""Lower a FunctionGraph to a Program: slots, order, lazy regions, copies and frees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from symcomp.core.graph import FunctionGraph
from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.control import IfElse
from symcomp.ops.regions import ROOT, Placement, Region, place
from symcomp.rewrite.shapes import shapes_of
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
    borrowed: Collection[int] = (),
    collect: bool = True,
    bind: Binder = UNCHECKED,
    inplace: bool = True,
    sharing: bool = True,
    frugal: bool = True,
) -> Program:
    """Make the program that computes the outputs of ``graph``.

    Parameters
    ----------
    graph : FunctionGraph
    destroyable : collection of Variable
        Inputs whose values may be overwritten.
    borrowed : collection of int
        Outputs that may share memory with inputs, constants or other outputs; the others are
        copied if they would.
    collect : bool
        Drop values as soon as they are not needed any more.
    bind : Binder
        Gives what computes a node.
    inplace, sharing : bool
        Write results over inputs that are not needed any more; into arrays that were not needed
        any more before. Only where values are collected.
    frugal : bool
        Look for an order that needs less memory at a time.
    """
    order, after, copies = schedule(graph, destroyable)
    if frugal:
        order = list(frugal_order(order, graph.outputs, after))
    emitter = _Emitter(order, place(order, graph.outputs), copies, bind)
    emitter.slots(graph)
    emitter.emit()
    outputs = emitter.protect_outputs(graph, set(borrowed))
    program = Program(
        emitter.code,
        emitter.variables,
        tuple(emitter.slot_of[v] for v in graph.inputs),
        tuple(outputs),
        emitter.constants,
    )
    if collect:
        add_frees(program, emitter.blocks, emitter.block_of, emitter.shared_slots)
        if inplace or sharing:
            plan_storage(program, emitter.block_of, shapes_of(graph), bind, inplace, sharing)
    return program


@dataclass
class _Emitter:
    order: Sequence[Apply]
    regions: Placement
    copies: set[tuple[Apply, int]]
    bind: Binder
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

    def slots(self, graph: FunctionGraph) -> None:
        """Give a slot to every variable."""
        for variable in graph.inputs:
            self._new_slot(variable)
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
            guard = None
            if len(self.regions[node]) > 1:
                slot = self.slot_of[node.outputs[0]]
                guard = self._add(Instruction(Opcode.SKIP_IF_SET, (slot,)), block)
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

    def _call(self, node: Apply, block: int) -> None:
        inputs = [self.slot_of[v] for v in node.inputs]
        for i in destroyed_inputs(node):
            if (node, i) in self.copies:
                inputs[i] = self._copy(node.inputs[i], inputs[i], block)
        if node not in self.computes:
            self.computes[node] = self.bind(node)
        step = Instruction(
            Opcode.CALL,
            tuple(inputs),
            tuple(self.slot_of[v] for v in node.outputs),
            node=node,
            compute=self.computes[node],
            several=node.op.multiple_outputs,
        )
        self._add(step, block)

    def _copy(self, variable: Variable, slot: int, block: int) -> int:
        self.variables.append(variable)
        fresh = len(self.variables) - 1
        copier = variable.type.copy_value
        self._add(Instruction(Opcode.COPY, (slot,), (fresh,), compute=copier), block)
        return fresh

    def protect_outputs(self, graph: FunctionGraph, borrowed: set[int]) -> list[int]:
        """Copy the outputs that share memory with something that outlives the call."""
        taken: set[Variable] = set()
        slots = []
        for position, variable in enumerate(graph.outputs):
            roots = alias_roots(variable)
            slot = self.slot_of[variable]
            outlives = any(root.owner is None for root in roots) or bool(roots & taken)
            if outlives and position not in borrowed:
                slot = self._copy(variable, slot, 0)
            taken |= roots
            slots.append(slot)
        return slots
