"""PyTensor's types as symcomp's; the state of a random generator as two arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pytensor.graph.null_type import NullType
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType as GeneratorType
from pytensor.tensor.type import DenseTensorType

from symcomp.core.node import Type, Variable
from symcomp.core.special_types import GenericType
from symcomp.core.tensor import TensorType
from symcomp.ops.random.state import RandomType, words_of

GENERIC = GenericType()


class Stream(NamedTuple):
    """A random generator in a graph: PCG64's state, and the rest of its last 64-bit word.

    NumPy draws 32 bits for some integers, and keeps the other half of the word for the next such
    draw: ``half`` is (whether there is one, its value).
    """

    words: Any
    half: Any


WORDS, HALF = RandomType(), TensorType("uint64", (2,))


def is_tensor(kind: Any) -> bool:
    """Tell whether values of a PyTensor type are arrays, or numbers, in symcomp."""
    return isinstance(kind, DenseTensorType | ScalarType) or is_labelled(kind)


def is_labelled(kind: Any) -> bool:
    """Tell whether a type is that of arrays with named axes, whose values are arrays, too."""
    return hasattr(kind, "dims") and hasattr(kind, "dtype") and hasattr(kind, "shape")


def is_generator(kind: Any) -> bool:
    """Tell whether values of a PyTensor type are NumPy's random generators."""
    return isinstance(kind, GeneratorType)


def tensor_type(kind: Any) -> TensorType:
    """Return the type of the arrays that values of a PyTensor type are."""
    shape = () if isinstance(kind, ScalarType) else kind.shape
    return TensorType(kind.dtype, shape)


def types_of(kind: Any, streams: bool) -> list[Type]:
    """Return the types of the variables that stand for one of a PyTensor type.

    Parameters
    ----------
    kind : pytensor.graph.type.Type
    streams : bool
        Whether generators are Streams; else they are Python objects.
    """
    if is_tensor(kind):
        return [tensor_type(kind)]
    if streams and is_generator(kind):
        return [WORDS, HALF]
    if isinstance(kind, NullType):
        raise TypeError(f"PyTensor's {kind} has no values: {kind.why_null}")
    return [GENERIC]


def joined(kind: Any, parts: list[Any], streams: bool) -> Any:
    """Join variables of the types of ``types_of`` to what stands for one of PyTensor's."""
    return Stream(*parts) if streams and is_generator(kind) else parts[0]


def parts_of(value: Any) -> list[Variable]:
    """List the variables that stand for one of PyTensor's."""
    return list(value) if isinstance(value, Stream) else [value]


# -- generators at the ends of a function


def is_pcg64(generator: Any) -> bool:
    """Tell whether a generator is NumPy's default one, whose draws symcomp knows."""
    return (
        isinstance(generator, np.random.Generator)
        and type(generator.bit_generator) is np.random.PCG64
    )


def arrays_of(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a Stream's two variables."""
    state = generator.bit_generator.state
    half = np.array((state["has_uint32"], state["uinteger"]), np.uint64)
    return words_of(generator), half


def generator_of(words: np.ndarray, half: np.ndarray, seeds: Any = None) -> np.random.Generator:
    """Return a new generator that goes on from there.

    Parameters
    ----------
    words, half : ndarray
    seeds : numpy.random.SeedSequence, optional
        What its ``spawn`` takes seeds of; by default the operating system's entropy.
    """
    bits = np.random.PCG64(seeds)
    high, low, increment_high, increment_low = words.tolist()
    has_half, rest = half.tolist()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": increment_high << 64 | increment_low},
        "has_uint32": has_half,
        "uinteger": rest,
    }
    return np.random.Generator(bits)
