"""The C of tiles of keys in shared memory: threads sort a few keys each, and merge sorted runs.

A thread merges as many keys as it sorts: it finds by bisection where its part of the merged run
begins in both runs, then takes the lesser key time after time. Keys of the first run come before
equal ones of the second, so that equal keys stay in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from symcomp.core.record import record

THREADS = 256
# A thread reads this many elements before it waits for them.
BATCH = 8


def unrolled(count: int, body: Sequence[str]) -> list[str]:
    """Return a loop of ``e`` from 0 that the compiler unrolls, so that arrays are registers."""
    head = ["#pragma unroll", f"for (int e = 0; e < {count}; e++) {{"]
    return [*head, *(f"    {line}" for line in body), "}"]


@record
class TileOfKeys:
    """Text for the keys ``key`` of a tile in shared memory, and those ``k`` of a thread.

    Attributes
    ----------
    key : str
        The C type of keys.
    each : int
        The number of keys of a thread, a power of two.
    has_places : bool
        Whether numbers of 16 bits, ``place`` and ``p``, move with the keys.
    """

    key: str
    each: int
    has_places: bool

    @property
    def size(self) -> int:
        """Return the number of keys."""
        return THREADS * self.each

    def at(self, i: str) -> str:
        """Return the index of key ``i``: lanes that read every ``each``-th use different banks.

        Those of one thread, at most 16, lie side by side.
        """
        return f"{i} + ({i} >> {4 if self.key == 'uint64_t' else 5})"

    def shared(self) -> list[str]:
        """Return the arrays in shared memory. A merge reads the key behind the last, unused."""
        length = self.size + (self.size >> (4 if self.key == "uint64_t" else 5)) + 1
        places = [f"uint16_t place[{length}]"] if self.has_places else []
        return [f"{self.key} key[{length}]", *places]

    def own(self, has_keys: bool = True) -> list[str]:
        """Return the arrays of a thread, in registers."""
        keys = [f"{self.key} k[{self.each}];"] if has_keys else []
        return keys + ([f"int p[{self.each}];"] if self.has_places else [])

    def read(self, word: str, reads: Sequence[str], value: Sequence[str]) -> list[str]:
        """Return the reads of keys ``i``, BATCH at a time. Neighbouring threads read neighbours.

        Parameters
        ----------
        word : str
            The C type of elements in memory.
        reads : sequence of str
            Lines that set ``some[e]``, without waiting for memory.
        value : sequence of str
            Lines that declare ``found``, its key.
        """
        batch = min(BATCH, self.each)
        number = f"const int i = (int)threadIdx.x + (from_key + e) * {THREADS};"
        lines = [
            f"{word} some[{batch}];",
            *unrolled(batch, [number, *reads]),
            *unrolled(batch, [number, *value, f"key[{self.at('i')}] = found;"]),
        ]
        return [
            "#pragma unroll 1",
            f"for (int from_key = 0; from_key < {self.each}; from_key += {batch}) {{",
            *(f"    {line}" for line in lines),
            "}",
            "__syncthreads();",
        ]

    def write(self, body: Sequence[str]) -> list[str]:
        """Return a loop over keys ``i`` in which neighbouring threads have neighbours."""
        # Four at a time, positions of 64-bit lengths spilled registers on sm_120.
        return [
            f"#pragma unroll {min(2, self.each)}",
            f"for (int i = threadIdx.x; i < {self.size}; i += {THREADS}) {{",
            *(f"    {line}" for line in body),
            "}",
        ]

    def take_own(self) -> list[str]:
        """Return the reads of the keys of a thread, from ``own`` on; ``p`` are their numbers."""
        reads = ["k[e] = key[slot + e];", *(["p[e] = own + e;"] if self.has_places else [])]
        return [f"const int slot = {self.at('own')};", *unrolled(self.each, reads)]

    def move_places(self) -> list[str]:
        """Return the reads of the places of merged keys."""
        reads = unrolled(self.each, [f"p[e] = place[{self.at('p[e]')}];"])
        return reads if self.has_places else []

    def store(self, has_keys: bool = True) -> list[str]:
        """Return the writes from ``slot`` of what a thread has; before and after, threads wait."""
        writes = ["key[slot + e] = k[e];"] if has_keys else []
        writes += ["place[slot + e] = (uint16_t)p[e];"] if self.has_places else []
        return ["__syncthreads();", *unrolled(self.each, writes), "__syncthreads();"]

    def sort_own(self) -> list[str]:
        """Return a stable sort of the keys of a thread: it swaps neighbours alone."""
        swap = [f"const {self.key} lesser = k[e + 1]; k[e + 1] = k[e]; k[e] = lesser;"]
        if self.has_places:
            swap += ["const int q = p[e + 1]; p[e + 1] = p[e]; p[e] = q;"]
        return [
            "#pragma unroll",
            f"for (int pass = 0; pass < {self.each}; pass++)",
            "    #pragma unroll",
            f"    for (int e = pass & 1; e < {self.each - 1}; e += 2)",
            "        if (k[e] > k[e + 1]) {",
            *(f"            {line}" for line in swap),
            "        }",
        ]

    def merge(
        self, first: str, middle: str, end: str, d: str, has_keys: bool = True
    ) -> list[str]:
        """Return the merge of runs from ``first`` to ``middle`` and from there to ``end``.

        The thread has the keys from the one with the number ``d``, and ``p`` where they were.
        """
        taken = ["k[e] = is_first ? a : b;"] if has_keys else []
        taken += ["p[e] = is_first ? x : y;"] if self.has_places else []
        ahead = "key[{}] <= key[{}]".format(
            self.at(f"({first} + at)"), self.at(f"({middle} + {d} - 1 - at)")
        )
        return [
            f"int low = {d} - ({end} - {middle}) > 0 ? {d} - ({end} - {middle}) : 0;",
            f"int high = {d} < {middle} - {first} ? {d} : {middle} - {first};",
            "#pragma unroll 1",
            "while (low < high) {",
            "    const int at = (low + high) >> 1;",
            f"    if ({ahead})",
            "        low = at + 1;",
            "    else",
            "        high = at;",
            "}",
            f"int x = {first} + low, y = {middle} + {d} - low;",
            f"{self.key} a = key[{self.at('x')}], b = key[{self.at('y')}];",
            *unrolled(
                self.each,
                [
                    f"const bool is_first = y >= {end} || (x < {middle} && a <= b);",
                    *taken,
                    "const int next = (is_first ? x : y) + 1;",
                    f"const {self.key} later = key[{self.at('next')}];",
                    "x = is_first ? next : x;",
                    "y = is_first ? y : next;",
                    "a = is_first ? later : a;",
                    "b = is_first ? b : later;",
                ],
            ),
        ]
