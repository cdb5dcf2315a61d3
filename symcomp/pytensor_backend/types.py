"""PyTensor's types as symcomp's; the state of a random generator as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.graph.null_type import NullType
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType as GeneratorType
from pytensor.tensor.type import DenseTensorType

from symcomp.core.node import Type
from symcomp.core.special_types import GenericType
from symcomp.core.tensor import TensorType
from symcomp.ops.random.state import HALVED, generator_at

GENERIC = GenericType()


def is_tensor(kind: Any) -> bool:
    """Tell whether values of a PyTensor type are arrays, or numbers, in symcomp."""
    return isinstance(kind, DenseTensorType | ScalarType) or is_labelled(kind)


def is_labelled(kind: Any) -> bool:
    """Tell whether a type is that of arrays with named axes, whose values are arrays, too."""
    return hasattr(kind, "dims") and hasattr(kind, "dtype") and hasattr(kind, "shape")


def is_generator(kind: Any) -> bool:
    """Tell whether values of a PyTensor type are NumPy's random generators."""
    return isinstance(kind, GeneratorType)


def is_stream(x: Any) -> bool:
    """Tell whether a variable of symcomp stands for a generator that is PCG64."""
    return HALVED.is_super(x.type)


def tensor_type(kind: Any) -> TensorType:
    """Return the type of the arrays that values of a PyTensor type are."""
    shape = () if isinstance(kind, ScalarType) else kind.shape
    return TensorType(kind.dtype, shape)


def type_of(kind: Any, streams: bool) -> Type:
    """Return the type of the variable that stands for one of a PyTensor type.

    Parameters
    ----------
    kind : pytensor.graph.type.Type
    streams : bool
        Whether generators are arrays, states of PCG64; else they are Python objects.
    """
    if is_tensor(kind):
        return tensor_type(kind)
    if streams and is_generator(kind):
        return HALVED
    if isinstance(kind, NullType):
        raise TypeError(f"PyTensor's {kind} has no values: {kind.why_null}")
    return GENERIC


# -- generators at the ends of a function


def is_pcg64(generator: Any) -> bool:
    """Tell whether a generator is NumPy's default one, whose draws symcomp knows."""
    return (
        isinstance(generator, np.random.Generator)
        and type(generator.bit_generator) is np.random.PCG64
    )


def generator_of(words: np.ndarray, seeds: Any = None) -> np.random.Generator:
    """Return a new generator that goes on from a state.

    Parameters
    ----------
    words : ndarray
        As ``symcomp.ops.random.state.halved_words_of`` gives them.
    seeds : numpy.random.SeedSequence, optional
        What its ``spawn`` takes seeds of; by default the operating system's entropy.
    """
    return generator_at(words, np.random.Generator(np.random.PCG64(seeds)))
