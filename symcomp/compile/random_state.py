"""The states of streams of random numbers, kept in shared variables."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from symcomp.compile.shared import NotMine, TensorSharedVariable, add_constructor
from symcomp.ops.random.state import RandomType, generator_at, seeded, words_of


class RandomSharedVariable(TensorSharedVariable):
    """The state of a stream, as a symbolic variable with a value.

    It is stored as an array; ``get_value`` returns a NumPy generator, ``set_value`` takes one.
    """

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """Return the state as a new NumPy ``Generator``: drawing from it does not change this
        variable.

        Parameters
        ----------
        borrow : bool
            Without effect.
        return_internal_type : bool
            Return the array of four words instead.

        Returns
        -------
        numpy.random.Generator
            A generator with Theano's methods beside NumPy's: ``seed(n)``, ``get_state()``,
            ``set_state(s)``.
        """
        words = self.container.read()
        if return_internal_type:
            return words if borrow else words.copy()
        return generator_at(words, generator_class()(np.random.PCG64(0)))


@cache
def generator_class() -> Any:
    """Return the class of ``get_value``'s results; defined on first use, as it imports
    numpy.random.
    """

    class StateGenerator(np.random.Generator):
        """A NumPy generator that can be seeded again and copied by its state."""

        def seed(self, seed: Any = None) -> None:
            """Start again from a seed, or from entropy of the operating system."""
            generator_at(seeded(seed), self)

        def get_state(self) -> np.ndarray:
            """Return the state as four words."""
            return words_of(self)

        def set_state(self, state: Any) -> None:
            """Continue from a state, given as four words or as a generator."""
            generator_at(RandomType().filter(state), self)

    return StateGenerator


def _kinds() -> tuple[type, ...]:
    return (np.random.Generator, np.random.RandomState, np.random.BitGenerator)


@add_constructor
def random_shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    borrow: bool = False,
    **options: Any,
) -> RandomSharedVariable:
    """Make a shared variable that holds the state of a NumPy generator."""
    # Generators exist only once numpy.random is loaded, which takes some time: do not load it here.
    if options or "numpy.random" not in sys.modules or not isinstance(value, _kinds()):
        raise NotMine("not a generator of random numbers")
    return RandomSharedVariable(RandomType(), value, name)
