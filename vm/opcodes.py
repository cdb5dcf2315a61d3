"""The opcodes: THE list, each with its effect. ``s`` is the store, one place per slot."""

from __future__ import annotations

from enum import IntEnum


class Opcode(IntEnum):
    """The effect of an instruction. Every instruction then drops the slots in its ``frees``."""

    CALL = 0  # s[outputs] := compute(s[inputs])
    COPY = 1  # s[outputs[0]] := a copy of s[inputs[0]]
    MOVE = 2  # s[outputs] := s[inputs], without copying
    BRANCH = 3  # if not s[inputs[0]]: goto target
    JUMP = 4  # goto target
    SKIP_IF_SET = 5  # if s[inputs[0]] has a value: goto target
    FREE = 6  # only its frees: where lazy branches join
