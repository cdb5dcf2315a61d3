"""The storage plan: the instructions that write into an array that is not needed any more.

An instruction may take the array of one of its own inputs (in place), or one that died earlier (it
is then kept until here). What the plan says is in the program: ``into`` and ``frees``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from symcomp.core.node import Variable
from symcomp.core.tensor import TensorType
from symcomp.rewrite.shapes import Shapes
from symcomp.vm.guard import Binder, is_users
from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Instruction, Program


def plan_storage(
    program: Program,
    block_of: Sequence[int],
    shapes: Shapes,
    bind: Binder,
    inplace: bool = True,
    sharing: bool = True,
    given_away: Collection[int] = (),
    stored: Collection[int] = (),
) -> None:
    """Set ``into`` of the instructions that can write into existing arrays.

    Parameters
    ----------
    program : Program
        A program with frees: only freed values are overwritten. Frees move to the instruction that
        takes over the array.
    block_of : sequence of int
        The block of straight code of each instruction.
    shapes : Shapes
        Facts about the lengths of variables.
    bind : Binder
        Returns functions that write into arrays.
    inplace, sharing : bool
        Write over inputs that die; write over values that died earlier.
    given_away : collection of int
        Slots of the program's inputs whose arrays may be overwritten, as if made here.
    stored : collection of int
        Slots of outputs that are kept when the call has ended: none may lie in such an array.
    """
    planner = _Planner(program, block_of, shapes, bind, given_away)
    planner.keep_apart(stored)
    for position, step in enumerate(program.instructions):
        block = block_of[position]
        pool = planner.pools.setdefault(block, _Pool(planner.key))
        if step.opcode is Opcode.CALL and step.node is not None and not step.into:
            planner.place(step, pool if sharing else None, inplace)
        for slot in step.frees:
            if planner.bury(slot, position) and sharing:
                for dead in planner.arrays_of(slot, block):
                    if dead not in step.into:
                        pool.add(dead, program.variables[dead])


class _Pool:
    """Arrays that died in one block of straight code, by dtype and shape, latest first."""

    def __init__(self, key: Callable[[Variable], Any]) -> None:
        self._key = key
        # By dtype and static shape; lengths are looked up only where one is asked for.
        self._unsorted: dict[Any, list[tuple[int, Variable]]] = {}
        self._sorted: dict[Any, list[int]] = {}

    def add(self, slot: int, variable: Variable) -> None:
        if isinstance(variable.type, TensorType):
            self._unsorted.setdefault(variable.type, []).append((slot, variable))

    def take(self, variable: Variable, barred: Collection[int]) -> int:
        """Return a slot whose array fits ``variable``, none of those barred; -1 if there is none.
        """
        kind = variable.type
        if kind in self._unsorted:
            for slot, dead in self._unsorted.pop(kind):
                self._sorted.setdefault((kind, self._key(dead)), []).append(slot)
        if not self._sorted:
            return -1
        found = self._sorted.get((kind, self._key(variable)), [])
        slot = next((slot for slot in reversed(found) if slot not in barred), -1)
        if slot >= 0:
            found.remove(slot)
        return slot


class _Planner:
    """The state of every slot while the plan is made: its memory, whether it is dead."""

    def __init__(
        self,
        program: Program,
        block_of: Sequence[int],
        shapes: Shapes,
        bind: Binder,
        given_away: Collection[int],
    ) -> None:
        self.program = program
        self._bind = bind
        self.pools: dict[int, _Pool] = {}
        self._shapes = shapes
        n = len(program.variables)
        # Slots that may share memory form a group; a group is dead when all its slots are freed.
        self._leader = list(range(n))
        # The block in which an array of its own was made for the slot; -1: it has none.
        self._home = [0 if slot in given_away else -1 for slot in range(n)]
        self._freed_at = [-1] * n
        for step, block in zip(program.instructions, block_of, strict=True):
            self._read_aliases(step, block)
        # Slots in arrays of the caller, and the groups that must not be in these.
        self._foreign = set(given_away)
        self._apart: set[int] = set()
        self._living = [0] * n
        self._arrays: dict[int, list[int]] = {}
        for slot in range(n):
            leader = self._group(slot)
            self._living[leader] += 1
            if self._home[slot] >= 0:
                self._arrays.setdefault(leader, []).append(slot)

    def keep_apart(self, slots: Collection[int]) -> None:
        """Put no array of the caller's there, nor where they are views of."""
        self._apart = {self._group(slot) for slot in slots}

    def key(self, variable: Variable) -> Any:
        """Equal for variables that are known to have equal lengths."""
        return tuple(n if isinstance(n, int) else id(n) for n in self._shapes.of(variable))

    def _read_aliases(self, step: Instruction, block: int) -> None:
        if step.opcode is Opcode.MOVE:
            for slot, source in zip(step.outputs, step.inputs, strict=True):
                self._join(slot, source)
        elif step.opcode is Opcode.COPY:
            self._home[step.outputs[0]] = block
        elif step.opcode is Opcode.CALL and step.node is not None:
            op, variables = step.node.op, self.program.variables
            held = (*step.inputs, *step.outputs)
            if is_users(op) or any(not isinstance(variables[i].type, TensorType) for i in held):
                for slot in held:  # an unchecked function may hold on to its values
                    self._join(slot, step.outputs[0])
                return
            # An op that writes into given arrays makes one for each output; others may return parts
            # of one array.
            apart = len(step.outputs) == 1 or self._bind.into(step.node) is not None
            for j, slot in enumerate(step.outputs):
                sources = (*op.view_map.get(j, ()), *op.destroy_map.get(j, ()))
                self._home[slot] = -1 if sources else block
                if not apart:
                    self._join(slot, step.outputs[0])
                for i in sources:
                    self._join(slot, step.inputs[i])
                if step.into and step.into[j] >= 0:  # the place that lowering gave it
                    self._home[slot] = -1
                    self._join(slot, step.into[j])

    def _group(self, slot: int) -> int:
        leader = self._leader
        while leader[slot] != slot:
            leader[slot] = leader[leader[slot]]
            slot = leader[slot]
        return slot

    def _join(self, a: int, b: int) -> None:
        self._leader[self._group(a)] = self._group(b)

    def bury(self, slot: int, position: int) -> bool:
        """Note that ``slot`` is freed; true if now all that shares its memory is."""
        leader = self._group(slot)
        self._freed_at[slot] = position
        self._living[leader] -= 1
        return self._living[leader] == 0

    def arrays_of(self, slot: int, block: int) -> list[int]:
        """Return the slots of its group for which arrays were made in ``block``."""
        made = self._arrays.get(self._group(slot), ())
        return [i for i in made if self._home[i] == block]

    def place(self, step: Instruction, pool: _Pool | None, inplace: bool) -> None:
        """Find arrays for the outputs of ``step`` to be written into."""
        node: Any = step.node
        may_overwrite = inplace and any(self._home[slot] >= 0 for slot in step.frees)
        if not may_overwrite and pool is None:
            return
        planning = self._bind.planning_of(node)
        compute = planning.into(node)
        if compute is None:
            return
        into = [-1] * len(step.outputs)
        for j, output in enumerate(node.outputs):
            apart = self._group(step.outputs[j]) in self._apart
            barred = self._foreign if apart else frozenset()
            if may_overwrite:
                places = planning.overwritable(node, j)
                into[j] = self._dying_input(step, places, {*into, *barred})
            if into[j] < 0 and pool is not None and isinstance(output.type, TensorType):
                into[j] = pool.take(output, barred)
            if into[j] in self._foreign:
                self._foreign.add(step.outputs[j])
        if any(slot >= 0 for slot in into):
            step.compute, step.into = compute, tuple(into)
            self._keep_until(step)

    def _keep_until(self, step: Instruction) -> None:
        """Free the arrays that ``step`` takes over there, and no earlier."""
        for slot in step.into:
            if slot >= 0 and slot not in step.frees:
                earlier = self.program.instructions[self._freed_at[slot]]
                earlier.frees = tuple(i for i in earlier.frees if i != slot)
                step.frees = tuple(sorted((*step.frees, slot)))

    def _dying_input(
        self, step: Instruction, positions: Collection[int], taken: Collection[int]
    ) -> int:
        """Return the slot of an input, of those at ``positions``, that is not needed any more; or
        -1.
        """
        for i in positions:
            slot = step.inputs[i]
            if slot in taken or slot not in step.frees or self._home[slot] < 0:
                continue
            leader = self._group(slot)
            dying = sum(self._group(other) == leader for other in step.frees)
            alone = all(
                other == slot and j in positions
                for j, other in enumerate(step.inputs)
                if self._group(other) == leader
            )
            if alone and dying == self._living[leader]:
                return slot
        return -1
