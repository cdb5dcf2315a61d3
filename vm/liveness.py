"""When a slot's value is needed for the last time, so that the instruction there can drop it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from symcomp.vm.opcodes import Opcode
from symcomp.vm.program import Program


def add_frees(
    program: Program,
    blocks: Sequence[tuple[int, int]],
    block_of: Sequence[int],
    keep: Collection[int],
    given_away: Collection[int] = (),
) -> None:
    """Fill in ``frees`` of every instruction.

    Parameters
    ----------
    program : Program
    blocks : sequence of (parent block, position of the join)
        The blocks of the lazy regions; block 0 is the outermost.
    block_of : sequence of int
        The block of each instruction.
    keep : collection of int
        Slots that are tested for having a value, so must keep it.
    given_away : collection of int
        Slots of inputs whose arrays may be overwritten.
    """
    inputs = set(program.inputs) - set(given_away)
    kept = {*inputs, *program.outputs, *program.constants, *keep}
    born: dict[int, int] = dict.fromkeys(given_away, 0)
    last: dict[int, int] = {}
    for position, step in enumerate(program.instructions):
        for slot in step.outputs:
            # A slot that both branches of an ifelse set belongs to the block around it.
            inner = block_of[position]
            block = blocks[inner][0] if step.opcode is Opcode.MOVE else inner
            if born.setdefault(slot, block) != block:
                kept.add(slot)  # computed in several places: a shared ifelse
            last[slot] = position
        for slot in (*step.inputs, *step.into):
            if slot >= 0:
                last[slot] = position
    frees: dict[int, list[int]] = {}
    for slot, position in last.items():
        if slot in kept or slot not in born:
            continue
        block = block_of[position]
        while block != born[slot]:
            block, position = blocks[block]
        frees.setdefault(position, []).append(slot)
    for position, slots in frees.items():
        program.instructions[position].frees = tuple(sorted(slots))
