"""Loops of very many steps, whose steps are enqueued by chunks: a chunk is one graph of the driver,
which is recorded once and enqueued again and again.
"""

from __future__ import annotations

from collections.abc import Sequence

from symcomp.cvm.machine import MOST_PIECES
from symcomp.gpu.plan import DeviceCall, all_calls, count_pieces

# Loops of fewer pieces of work stay as they are; a chunk has at most PIECES_OF_CHUNK, or two steps.
FEWEST_PIECES, PIECES_OF_CHUNK = 1024, 512
# A loop is enqueued as this many chunks or more.
FEWEST_CHUNKS = 4
# A chunk's rows of all states, sequences and outputs have at most this many bytes.
MOST_BYTES = 2**24


def is_too_long(calls: Sequence[DeviceCall]) -> bool:
    """Return whether a plan has more pieces of work than one graph, and loops among them."""
    return count_pieces(calls) > MOST_PIECES and any(call.step is not None for call in calls)


def chunk_length(
    calls: Sequence[DeviceCall], n: int, rows: Sequence[int], depths: Sequence[int]
) -> int:
    """Return how many steps of a loop are a chunk; 0 if chunks would bring nothing.

    The length is even, as carried values lie in two buffers by turns. It is at least half of the
    largest that is possible, and leaves few steps over.

    Parameters
    ----------
    calls : sequence of DeviceCall
        Of a step.
    n : int
        The number of steps.
    rows : sequence of int
        The bytes of each row that a step reads or writes; a chunk copies them.
    depths : sequence of int
        How many rows before each state steps read.
    """
    pieces = count_pieces(calls)
    libraries = [call.library for call in all_calls(calls) if call.library is not None]
    if n * pieces < FEWEST_PIECES or not all(library.is_recordable for library in libraries):
        return 0
    most = min(
        max(PIECES_OF_CHUNK // pieces, 2), n // FEWEST_CHUNKS, MOST_BYTES // max(sum(rows), 1)
    )
    least = max(most // 2, 2, *depths)
    # A graph takes about as long to enqueue as a piece of work, and so does each copy.
    if most < least or most * pieces > MOST_PIECES or most * pieces < 4 * (1 + len(rows)):
        return 0
    lengths = range(least + least % 2, most + 1, 2)
    return min(lengths, key=lambda length: (n % length, -length), default=0)
