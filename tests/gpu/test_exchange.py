"""Arrays given to other libraries and taken from them: DLPack, `__cuda_array_interface__`."""

import gc
import sys
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.core import dtype as dtypes
from symcomp.cvm.machine import ForeignArray, to_dlpack
from symcomp.errors import DTypeError
from symcomp.gpu import from_dlpack, to_device, to_gpu
from symcomp.gpu.driver.devices import set_driver
from symcomp.gpu.driver.emulator import Emulator

pytestmark = pytest.mark.usefixtures("emu")


class Card(Emulator):
    """An emulator that passes for a card."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_for_others = 0

    def open(self, *given: Any, **options: Any) -> None:
        self.name = "cuda0"
        super().open(*given, **options)

    def wait_for_others(self) -> None:
        self.waits_for_others += 1

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return 2, 0

    @property
    def stream_number(self) -> int | None:
        return 77


@pytest.fixture
def card() -> Iterator[Card]:
    driver = Card()
    before = set_driver("cuda0", driver)
    yield driver
    set_driver("cuda0", before)


class Producer:
    """Another library's array, with the words of the protocol."""

    def __init__(self, value: np.ndarray, device: Any = (1, 0), versioned: bool = True) -> None:
        self.value, self.device, self.versioned = value, device, versioned
        self.streams: list[Any] = []
        self.code: Any = None

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options and not self.versioned:
            raise TypeError("unexpected keyword argument")
        self.streams.append(options.get("stream"))
        x = self.value
        code = self.code or ({"f": 2, "i": 0, "c": 5}[x.dtype.kind], 8 * x.itemsize)
        strides = tuple(s // x.itemsize for s in x.strides)
        return to_dlpack(
            Owner(x), x.ctypes.data, self.device, code, x.shape, strides, self.versioned,
            False, False,
        )  # fmt: skip


class Owner:
    """Keeps an array alive; its weak references tell when it ends."""

    seen: list[weakref.ref[Any]] = []

    def __init__(self, value: np.ndarray) -> None:
        self.value = value
        self.seen.append(weakref.ref(self))

    @classmethod
    def alive(cls) -> int:
        gc.collect()
        return sum(one() is not None for one in cls.seen)


@pytest.fixture(autouse=True)
def fresh() -> None:
    Owner.seen.clear()


@st.composite
def arrays(draw: Any) -> np.ndarray:
    """Draw an array of any dtype, layout and length."""
    dtype = draw(st.sampled_from(sorted(dtypes.NATIVE)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    value = np.arange(int(np.prod([2 * n for n in shape])), dtype="int64") % 7
    whole = value.astype(dtype).reshape([2 * n for n in shape])
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in shape]
    part = whole[(*(slice(None, None, s) for s in steps), ...)]
    part = part[(*(slice(n) for n in shape), ...)]
    return part.T if draw(st.booleans()) else part


@settings(max_examples=60, deadline=None)
@given(arrays(), st.booleans())
def test_numpy_and_back(value: np.ndarray, versioned: bool) -> None:
    taken = from_dlpack(value)
    assert (taken.dtype, taken.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(taken.get(), value)
    if value.size:
        assert taken.address == value.ctypes.data
    options = {"max_version": (1, 0)} if versioned else {}
    found = np.from_dlpack(Capsule(taken, **options))
    np.testing.assert_array_equal(found, value)
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    assert not found.flags.writeable  # NumPy takes it for granted without a version
    if value.size:
        assert (found.ctypes.data == taken.address) == versioned


class Capsule:
    """Asks for a capsule in the words of an old or a new library."""

    def __init__(self, array: Any, **options: Any) -> None:
        self.array, self.options = array, options

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**self.options)


def test_memory_is_shared_after_one_wait(emu: Emulator) -> None:
    x = T.fmatrix("x")
    f = symcomp.function([x], to_gpu(T.exp(x).T, "emu"))
    there = f(np.eye(2, 3, dtype="float32"))
    emu.counters.clear()
    found = np.from_dlpack(there)
    assert emu.counters.waits == 1 and emu.counters.to_host == 0
    assert found.ctypes.data == there.address and not found.flags.writeable
    np.testing.assert_allclose(found, np.exp(np.eye(3, 2)), rtol=1e-6)
    parts = there.part((slice(None, None, -1), slice(1, None)))
    np.testing.assert_array_equal(np.from_dlpack(parts), found[::-1, 1:])


def test_functions_take_what_others_made(emu: Emulator) -> None:
    value = np.arange(12, dtype="float32").reshape(3, 4)[:, ::-2]
    taken = from_dlpack(Producer(value))
    there = to_gpu(T.fmatrix("x"), "emu")
    f = symcomp.function([there], there * 2)
    np.testing.assert_array_equal(np.asarray(f(taken)), 2 * value)
    w = symcomp.shared(np.zeros((3, 2), "float32"), device="emu")
    w.set_value(taken)
    np.testing.assert_array_equal(w.get_value(), value)


@pytest.mark.parametrize("versioned", [True, False])
def test_capsules_keep_memory_alive(emu: Emulator, versioned: bool) -> None:
    there = to_device(np.arange(1000.0), "emu")
    emu.wait()
    options = {"max_version": (1, 0)} if versioned else {"copy": True}
    used = emu.pool.used
    capsules = [there.__dlpack__(**options) for _ in range(3)]
    found = np.from_dlpack(Capsule(there, **options))
    del there
    emu.allocate(8)
    np.testing.assert_array_equal(found, np.arange(1000.0))
    del capsules, found
    gc.collect()
    emu.allocate(8)
    assert emu.pool.used < used


@pytest.mark.parametrize("versioned", [True, False])
def test_owners_get_their_memory_back(emu: Emulator, versioned: bool) -> None:
    producer = Producer(np.arange(5.0), versioned=versioned)
    capsule = producer.__dlpack__()
    assert Owner.alive() == 1
    del capsule  # without a consumer
    assert Owner.alive() == 0
    taken = from_dlpack(producer)
    part = taken.part((slice(1, 3),))
    del taken
    assert Owner.alive() == 1 and part.get().tolist() == [1, 2]
    del part
    emu.wait()
    assert Owner.alive() == 0
    capsule = producer.__dlpack__()
    foreign = ForeignArray(capsule)
    with pytest.raises(ValueError, match="used already"):
        ForeignArray(capsule)
    with pytest.raises(ValueError, match="taken from a capsule already"):
        foreign.__init__(producer.__dlpack__())  # type: ignore[misc]
    del capsule
    assert Owner.alive() == 1 and foreign.read_only is False
    del foreign
    assert Owner.alive() == 0


def test_references_do_not_leak(emu: Emulator) -> None:
    owner = object()
    before = sys.getrefcount(owner)
    for versioned in (True, False) * 50:
        capsule = to_dlpack(owner, 64, (1, 0), (2, 32), (2, 3), (3, 1), versioned, True, False)
        if versioned:
            assert ForeignArray(capsule).read_only
    del capsule
    assert sys.getrefcount(owner) == before
    for wrong in (("x",), (2**70,)):
        with pytest.raises((TypeError, OverflowError)):
            to_dlpack(owner, 64, (1, 0), (2, 32), wrong, (1,), True, True, False)
    assert sys.getrefcount(owner) == before


def test_other_threads_drop_capsules(emu: Emulator) -> None:
    there = to_device(np.arange(10.0), "emu")

    def use(_: int) -> float:
        return float(np.from_dlpack(there).sum())

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(use, range(200))) == {45.0}


def test_copies(emu: Emulator) -> None:
    value = np.arange(6.0)
    there = to_device(value, "emu")
    found = np.from_dlpack(there, copy=True)
    assert found.flags.writeable and found.ctypes.data != there.address
    assert from_dlpack(value, copy=True).address != value.ctypes.data
    assert from_dlpack(value, copy=False).address == value.ctypes.data
    assert there.part((slice(4, None, -2),)).copy().get().tolist() == [4, 2, 0]
    assert to_device(np.zeros((0, 3)), "emu").copy().shape == (0, 3)


def test_cards(card: Card, emu: Emulator) -> None:
    there = to_device(np.arange(6.0).reshape(2, 3), "cuda")
    assert there.__dlpack_device__() == (2, 0)
    card.counters.clear()
    foreign = ForeignArray(there.__dlpack__(max_version=(1, 1), stream=2))
    assert (foreign.device, foreign.dtype, foreign.shape) == ((2, 0), (2, 64, 1), (2, 3))
    assert card.counters.waits == 1
    capsule = there.__dlpack__(max_version=(1, 0), stream=-1)
    assert card.counters.waits == 1
    waits = card.waits_for_others
    del capsule, foreign  # others may still read it on the device
    assert card.waits_for_others == waits + 2
    found = np.from_dlpack(there, device="cpu")
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
    producer = Producer(np.arange(4.0), (2, 0))
    taken = from_dlpack(producer)
    assert taken.device == "cuda0" and producer.streams == [77]
    assert taken.get().tolist() == [0, 1, 2, 3]
    assert from_dlpack(producer, device="emu").device == "emu"
    assert from_dlpack(np.arange(3.0), device="cuda").device == "cuda0"
    with pytest.raises(BufferError, match="must be copied"):
        from_dlpack(producer, device="emu", copy=False)
    waits = card.waits_for_others
    del taken
    assert card.waits_for_others > waits


def test_refused(card: Card, emu: Emulator) -> None:
    there = to_device(np.arange(3.0), "emu")
    with pytest.raises(BufferError, match="read-only"):
        there.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="the memory is the host's"):
        there.__dlpack__(stream=3)
    with pytest.raises(BufferError, match="cannot be on"):
        there.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="cannot be on"):
        to_device(np.ones(2), "cuda").__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TypeError, match="has no __dlpack__"):
        from_dlpack([1.0])  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="DLPack's type 7"):
        from_dlpack(Producer(np.ones(2), (7, 0)))
    lying = Producer(np.ones(2), (2, 0))
    lying.__class__ = type("Lying", (Producer,), {"__dlpack_device__": lambda self: (1, 0)})
    with pytest.raises(BufferError, match="not on emu"):
        from_dlpack(lying)
    for code in ((4, 32), (4, 8), (2, 4), (0, 128), (3, 8)):
        producer = Producer(np.ones(2))
        producer.code = code
        with pytest.raises(DTypeError, match="cast it"):
            from_dlpack(producer)
    odd = np.zeros(17, "uint8")[1:].view("float64")
    with pytest.raises(BufferError, match="begin at"):
        from_dlpack(Producer(odd))
    for wrong in (3, None):
        with pytest.raises(ValueError, match="no capsule"):
            ForeignArray(wrong)


class OnCard:
    """An array of another library on a card, as Numba and CuPy tell of it."""

    def __init__(self, value: np.ndarray, **more: Any) -> None:
        self.value = value
        strides = None if value.flags.c_contiguous else value.strides
        self.__cuda_array_interface__ = {
            "shape": value.shape, "typestr": value.dtype.str, "strides": strides, "version": 3,
            "data": (value.ctypes.data, False), "stream": 1, **more,
        }  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(arrays())
def test_arrays_of_others_on_cards(value: np.ndarray) -> None:
    before = set_driver("cuda0", Card())
    taken = to_device(OnCard(value), "cuda")
    kept = value.copy()
    value[...] = 0
    np.testing.assert_array_equal(taken.get(), kept)  # of the copy
    assert to_device(OnCard(kept), "emu").device == "emu"
    set_driver("cuda0", before)


def test_variables_on_cards_take_arrays_of_others(card: Card) -> None:
    value = np.arange(3, dtype="float32")
    w = symcomp.shared(np.zeros(3, "float32"), device="cuda")
    w.container.set(OnCard(value))
    assert w.get_value().tolist() == [0, 1, 2] and card.waits_for_others
    with pytest.raises(TypeError):
        w.container.set(OnCard(value.astype("float64")))


def test_what_cards_have_that_no_tensor_is(card: Card) -> None:
    with pytest.raises(DTypeError, match="mask"):
        to_device(OnCard(np.ones(2), mask=OnCard(np.ones(2))), "cuda")
    for dtype in (">f4", "V4", "M8[s]"):
        with pytest.raises(DTypeError, match="which no tensor has"):
            to_device(OnCard(np.zeros(2, dtype)), "cuda")
