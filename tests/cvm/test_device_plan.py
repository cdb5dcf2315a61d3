"""Plans of devices as the machine enqueues them, by functions that note how they are called."""

import ctypes
import struct
from typing import Any

import pytest

from symcomp.cvm.machine import DescribedCall, DevicePlan, LibraryHandle, library_caller

UNSIGNED, POINTER = ctypes.c_uint, ctypes.c_void_p
Launch = ctypes.CFUNCTYPE(
    ctypes.c_int, POINTER, *[UNSIGNED] * 7, POINTER, POINTER, ctypes.POINTER(POINTER)
)
Copy = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, POINTER)
Fill = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, POINTER)
ONE = (1, 1, 1)
STREAM = 77


class Driver:
    """Notes each call; the one of number ``fails`` is refused."""

    def __init__(self, fails: int = -1) -> None:
        self.seen: list[Any] = []
        self.fails = fails
        self.functions = Launch(self.launch), Copy(self.copy), Fill(self.fill)
        self.addresses: tuple[int, ...] = tuple(
            ctypes.cast(f, POINTER).value or 0 for f in self.functions
        ) + (library_caller(),)

    def _note(self, *what: Any) -> int:
        self.seen.append(what)
        return 13 if len(self.seen) - 1 == self.fails else 0

    def launch(self, kernel: int, *rest: Any) -> int:
        *sizes, shared, stream, parameters, extra = rest
        assert parameters is None and (extra[0], extra[2], extra[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(extra[3]).value
        return self._note("launch", kernel, sizes, shared, stream, ctypes.string_at(extra[1], size))

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> int:
        return self._note("copy", target, source, nbytes, stream)

    def fill(self, target: int, value: int, nbytes: int, stream: int) -> int:
        return self._note("fill", target, value, nbytes, stream)


def launched(kernel: int, patches: Any, parameters: bytes = bytes(24)) -> Any:
    return ("launch", kernel, (2, 3, 4), (32, 1, 1), 5, parameters, patches, 0, (0, 0), [])


def moved(kind: str, patches: Any, nbytes: int) -> Any:
    return (kind, 0, ONE, ONE, 0, b"", patches, nbytes, (0, 0), [])


def repeated(times: int, end: int, motions: Any) -> Any:
    return ("loop", 0, ONE, ONE, 0, b"", [], 0, (times, end), motions)


def test_addresses_are_filled_in() -> None:
    calls = [
        launched(9, [(8, 0, 4), (16, 2, 0)], b"abcdefgh" + bytes(16) + b"xyz"),
        moved("copy", [(0, 1, 8), (1, 0, 0)], 40),
        moved("clear", [(0, 2, 1)], 3),
    ]
    plan = DevicePlan(calls, [(0, 100), (1, 0), (-1, 12345)], 2)
    driver = Driver()
    for bases in ([1000, 5000], [0, 2**63]):
        driver.seen.clear()
        assert plan.enqueue(driver.addresses, STREAM, bases) == (0, -1)
        given = b"abcdefgh" + struct.pack("QQ", bases[0] + 104, 12345) + b"xyz"
        assert driver.seen == [
            ("launch", 9, [2, 3, 4, 32, 1, 1], 5, STREAM, given),
            ("copy", bases[1] + 8, bases[0] + 100, 40, STREAM),
            ("fill", 12346, 0, 3, STREAM),
        ]


def test_loops_in_loops() -> None:
    # Storages: 0 and 1 two buffers; 2 a row of 0; 3 in turn 0 and 1; 4 a part of the row 2.
    calls = [
        moved("clear", [(0, 0, 0)], 1),
        repeated(3, 6, [(2, (0, 10), (0, 10), 100), (3, (0, 0), (1, 7), 0)]),
        moved("copy", [(0, 2, 0), (1, 3, 0)], 2),
        repeated(2, 5, [(4, (2, 1), (2, 1), -8)]),
        moved("clear", [(0, 4, 0)], 3),
        moved("clear", [(0, 3, 0)], 4),
        moved("clear", [(0, 1, 0)], 5),
    ]
    plan = DevicePlan(calls, [(0, 0), (1, 0), (-1, 0), (-1, 0), (-1, 0)], 2)
    driver = Driver()
    plan.enqueue(driver.addresses, STREAM, [1000, 9000])
    wanted: list[Any] = [("fill", 1000, 0, 1, STREAM)]
    for t in range(3):
        row, turn = 1010 + 100 * t, 9007 if t % 2 else 1000
        wanted.append(("copy", row, turn, 2, STREAM))
        wanted += [("fill", row + 1 - 8 * k, 0, 3, STREAM) for k in range(2)]
        wanted.append(("fill", turn, 0, 4, STREAM))
    wanted.append(("fill", 9000, 0, 5, STREAM))
    assert driver.seen == wanted


def test_the_first_error_ends_a_run() -> None:
    calls = [
        repeated(4, 3, [(1, (0, 0), (0, 0), 8)]),
        moved("clear", [(0, 1, 0)], 1),
        launched(1, [(0, 1, 0)]),
        moved("clear", [(0, 0, 0)], 1),
    ]
    plan = DevicePlan(calls, [(0, 0), (-1, 0)], 1)
    driver = Driver(fails=5)
    assert plan.enqueue(driver.addresses, STREAM, [64]) == (13, 2)
    assert len(driver.seen) == 6
    empty = DevicePlan([], [], 0)
    assert empty.enqueue(driver.addresses, STREAM, []) == (0, -1)


@pytest.mark.parametrize(
    ("calls", "origins"),
    [
        ([launched(1, [(17, 0, 0)])], [(0, 0)]),  # behind the parameters
        ([launched(1, [(0, 1, 0)])], [(0, 0)]),  # no such storage
        ([moved("copy", [(2, 0, 0)], 1)], [(0, 0)]),
        ([repeated(1, 3, [])], [(0, 0)]),  # an end behind all calls
        ([repeated(1, 1, [(0, (0, 0), (5, 0), 1)])], [(0, 0)]),
        ([], [(1, 0)]),  # no such base
        ([moved("sort", [], 1)], []),
        ([("library", 1, ONE, ONE, 0, b"", [], 0, (0, 0), [])], []),  # no handle
        ([("library", 1, ONE, ONE, 0, bytes(12), [], 0, (0, 0), [])], []),  # no whole words
        ([("library", 1, ONE, ONE, 0, bytes(200), [], 0, (0, 0), [])], []),  # too many
    ],
)
def test_plans_are_checked(calls: Any, origins: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        DevicePlan(calls, origins, 1)


def test_each_base_needs_an_address() -> None:
    plan = DevicePlan([], [(0, 0)], 1)
    with pytest.raises(ValueError, match="a plan of 1 bases is given 2 addresses"):
        plan.enqueue(Driver().addresses, STREAM, [1, 2])


WORDS = [ctypes.c_uint64] * 4
Function = ctypes.CFUNCTYPE(ctypes.c_int, *WORDS, ctypes.c_int, ctypes.c_int64)
SetStream = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER)
SetWorkspace = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_size_t)


class Library:
    """A library that writes down its calls."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.codes: dict[Any, int] = {}
        self.functions = tuple(f(self._note) for f in (Function, SetStream, SetWorkspace))
        addresses = [ctypes.cast(f, POINTER).value or 0 for f in self.functions]
        self.function = addresses[0]
        self.handle = LibraryHandle(7, *addresses[1:], 4096, 512)

    def _note(self, *words: int) -> int:
        self.seen.append(words)
        return self.codes.get(words, 0)

    def calls(self, n: int) -> DevicePlan:
        """Return a plan of calls, which are given an address in the base 1."""
        words = struct.pack("4Qqq", self.handle.address, 0, 4, 2**64 - 1, -6, -7)
        call = ("library", self.function, ONE, ONE, 0, words, [(8, 1, 5)], 0, (0, 0), [])
        return DevicePlan([call] * n, [(0, 0), (1, 100)], 2)


CALL = (7, 1105, 4, 2**64 - 1, -6, -7)
OTHER_STREAM = 50


def test_functions_of_libraries_on_streams_by_turns() -> None:
    library, functions = Library(), Driver().addresses
    plan = library.calls(2)
    for stream in (STREAM, STREAM, OTHER_STREAM):
        assert plan.enqueue(functions, stream, [0, 1000]) == (0, -1)
    space = (7, 4096, 512)  # a handle loses its workspace with its stream
    of_first, of_second = [(7, STREAM), space, *[CALL] * 4], [(7, OTHER_STREAM), space, *[CALL] * 2]
    assert library.seen == of_first + of_second


@pytest.mark.parametrize("at", [CALL, (7, STREAM), (7, 4096, 512)])
def test_the_first_error_of_a_library(at: Any) -> None:
    library, functions = Library(), Driver().addresses
    plan = library.calls(3)
    library.codes[at] = 3
    assert plan.enqueue(functions, STREAM, [0, 1000]) == (3, 0)
    library.codes.clear()
    assert plan.enqueue(functions, STREAM, [0, 1000]) == (0, -1)
    assert library.seen[-4:].count(CALL) >= 3


def test_addresses_in_descriptors() -> None:
    library, functions = Library(), Driver().addresses
    sets = library.function
    call = DescribedCall([(sets, 31, 2), (sets, 32, 1)], library.function, [5, 2**64 - 2])
    words = struct.pack("6Q", library.handle.address, call.address, *bytes(4))
    patches = [(8 * i, 0, 10 * i) for i in range(2, 6)]
    described = ("library", call.function, ONE, ONE, 0, words, patches, 0, (0, 0), [])
    plan = DevicePlan([described], [(0, 1000)], 1)
    assert plan.enqueue(functions, STREAM, [0]) == (0, -1)
    of_stream, done = library.seen[:2], library.seen[2:]
    assert of_stream == [(7, STREAM), (7, 4096, 512)]
    assert [words[: n + 1] for words, n in zip(done[:2], (2, 1), strict=True)] == [
        (31, 1020, 1030), (32, 1040)
    ]  # fmt: skip
    assert done[2][:4] == (7, 5, 2**64 - 2, 1050)
    library.codes[done[0]] = 4
    library.seen.clear()
    assert plan.enqueue(functions, STREAM, [0]) == (4, 0)
    assert library.seen == done[:1]


@pytest.mark.parametrize(
    ("arrays", "words"), [([(0, 0, 5), (0, 0, 4)], 2), ([(0, 0, 1)] * 5, 2), ([], 16)]
)
def test_descriptors_of_too_many_addresses(arrays: Any, words: int) -> None:
    with pytest.raises(ValueError, match="too many of them|at most 8 are set"):
        DescribedCall(arrays, 0, [0] * words)
