"""The state of a stream of random numbers: the four 64-bit words of NumPy's PCG64, or three of
Philox: the key, and the upper and the lower word of the counter.

NumPy draws 32 bits for some integers and keeps the other half of their word for the next such
draw. Streams drop it; a state of six words has it, too, after the four: whether there is one, and
its value.

A state is an array like any other, and a draw a function of it: so loops carry it, a draw that a
gradient computes again gives the same numbers, and a failed call leaves the state unchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core.node import Type
from symcomp.core.tensor import TensorType, TensorVariable, describe_value
from symcomp.errors import DTypeError

# The high and low words of the generator's state, and of its increment.
WORDS = 4
HALVED_WORDS = WORDS + 2
COUNTER_WORDS = 3
_LOW = (1 << 64) - 1


class RandomType(TensorType):
    """The type of states: uint64 vectors of four words.

    Takes NumPy's generators as values, too: one whose bit generator is PCG64 (as that of
    ``numpy.random.default_rng``) continues its stream; a legacy ``RandomState`` of another bit
    generator seeds a new one.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> state = T.random.state("state")
    >>> _, z = T.random.normal(state, size=2)
    >>> f = symcomp.function([state], z)
    >>> bool(np.all(f(np.random.default_rng(1)) == np.random.default_rng(1).normal(size=2)))
    True
    """

    def __init__(self, dtype: str = "uint64", shape: Sequence[Any] = (WORDS,)) -> None:
        if dtype != "uint64" or tuple(shape) != (WORDS,):
            raise DTypeError(f"a state has {WORDS} words of uint64, not {dtype} of {tuple(shape)}")
        super().__init__(dtype, shape)

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value`` as four words.

        Raises
        ------
        DTypeError
            If it is neither a state nor a generator that has one.
        """
        if type(value) is not np.ndarray:
            value = words_of(value)
        words = super().filter(value, strict, allow_downcast)
        if not int(words[WORDS - 1]) & 1:
            raise DTypeError(
                f"{describe_value(value)} is no state of PCG64: the last word must be odd. Make "
                "states of numpy.random.default_rng(seed)"
            )
        return words

    def __repr__(self) -> str:
        return "RandomType()"

    def __str__(self) -> str:
        return "random state"

    def __reduce__(self) -> Any:
        return (RandomType, ())


def is_counter_state(kind: Type) -> bool:
    """Tell whether variables of a type are states of Philox: uint64 vectors of three words."""
    return (
        isinstance(kind, TensorType)
        and kind.dtype == "uint64"
        and kind.shape == (COUNTER_WORDS,)
    )


#: The type of states of PCG64 with half a word.
HALVED = TensorType("uint64", (HALVED_WORDS,))


def is_pcg64_state(kind: Type) -> bool:
    """Tell whether variables of a type are states of PCG64, of four or six words."""
    return RandomType().is_super(kind) or HALVED.is_super(kind)


def is_state(kind: Type) -> bool:
    """Tell whether variables of a type are states of streams."""
    return isinstance(kind, RandomType) or is_counter_state(kind) or HALVED.is_super(kind)


def halved_words_of(generator: np.random.Generator) -> np.ndarray:
    """Return the state of a NumPy generator that is PCG64, as six words."""
    state: Any = generator.bit_generator.state
    half = np.array((state["has_uint32"], state["uinteger"]), np.uint64)
    return np.concatenate([words_of(generator), half])


def words_of(generator: Any) -> np.ndarray:
    """Return the state of a NumPy generator, as four words."""
    if isinstance(generator, np.random.RandomState):
        found: Any = generator.get_state(legacy=False)
        if found["bit_generator"] == "PCG64":
            return _words(found["state"]["state"], found["state"]["inc"])
        if found["bit_generator"] == "MT19937":
            key, place = found["state"]["key"], found["state"]["pos"]
            return words_of(np.random.PCG64([int(place), *map(int, key)]))
    bits = getattr(generator, "bit_generator", generator)
    if not isinstance(bits, np.random.PCG64):
        raise DTypeError(
            f"{describe_value(generator)} has no state of PCG64: pass "
            "numpy.random.default_rng(seed), or an array of four uint64 that is one"
        )
    state = bits.state["state"]
    return _words(state["state"], state["inc"])


def _words(state: int, increment: int) -> np.ndarray:
    parts = (state >> 64, state & _LOW, increment >> 64, increment & _LOW)
    return np.array(parts, np.uint64)


def seeded(seed: Any, key: Sequence[int] = ()) -> np.ndarray:
    """Return the state that NumPy's ``SeedSequence(seed, spawn_key=key)`` gives.

    Parameters
    ----------
    seed : int or sequence of int, or None
        Not negative; None takes it from the operating system.
    key : sequence of int
        States of one seed and different keys are independent.
    """
    return words_of(np.random.PCG64(seed_sequence(seed, key)))


def seeded_counter(seed: Any, key: Sequence[int] = ()) -> np.ndarray:
    """Return the state of Philox for a seed and a key; see ``seeded``.

    Examples
    --------
    >>> from symcomp.ops.random.state import seeded_counter
    >>> words = seeded_counter(1)
    >>> words.shape, words.dtype, int(words[2])
    ((3,), dtype('uint64'), 0)
    """
    return np.array([*seed_sequence(seed, key).generate_state(2, np.uint64), 0], np.uint64)


def seed_sequence(seed: Any, key: Sequence[int]) -> np.random.SeedSequence:
    """Return NumPy's sequence for a seed and a key; see ``seeded``."""
    try:
        return np.random.SeedSequence(seed, spawn_key=tuple(key))
    except (TypeError, ValueError) as problem:
        raise type(problem)(
            f"seed: {seed!r}: {problem}; a seed is an integer that is not negative, or a sequence "
            "of them"
        ) from None


# A generator for each thread, set to a state before every draw, as making one is slower. It is made
# at the first draw, because importing numpy.random takes time.
_of_thread = threading.local()


def _own_generator() -> np.random.Generator:
    if not hasattr(_of_thread, "generator"):
        _of_thread.generator = np.random.Generator(np.random.PCG64(0))
    found: np.random.Generator = _of_thread.generator
    return found


def generator_at(words: Any, generator: Any = None) -> np.random.Generator:
    """Set a generator (``generator``, or that of this thread) to a state, and return it."""
    found: np.random.Generator = _own_generator() if generator is None else generator
    high, low, increment_high, increment_low, *half = words.tolist()
    state = {"state": high << 64 | low, "inc": increment_high << 64 | increment_low}
    has_half, rest = half or (0, 0)
    found.bit_generator.state = {
        "bit_generator": "PCG64", "state": state, "has_uint32": has_half, "uinteger": rest,
    }  # fmt: skip
    return found


GENERATORS = ("pcg64", "philox")


def state(name: str | None = None, generator: str = "pcg64") -> TensorVariable:
    """Make a symbolic state: an input that takes a NumPy generator, or, for Philox, three words.

    Parameters
    ----------
    name : str, optional
    generator : {"pcg64", "philox"}

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.random.state("s").type
    RandomType()
    >>> T.random.state("s", "philox").type
    TensorType(uint64, (3,))
    """
    require_generator(generator)
    if generator == "philox":
        return TensorType("uint64", (COUNTER_WORDS,))(name)
    return RandomType()(name)


def require_generator(generator: Any) -> None:
    """Raise a ValueError if there is no generator of that name."""
    if generator not in GENERATORS:
        raise ValueError(f"generator={generator!r}: must be one of {', '.join(GENERATORS)}")
