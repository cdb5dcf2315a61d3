"""``theano.tensor.raw_random``: draws as functions of a random state, which give the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symcomp.compile.random_streams import RandomStreams
from symcomp.core.node import Variable
from symcomp.ops.random.state import RandomType

DISTRIBUTIONS = (
    "binomial", "choice", "multinomial", "normal", "permutation", "poisson", "random_integers",
    "uniform",
)  # fmt: skip


class _OneDraw(RandomStreams):
    """The methods of ``RandomStreams`` on a given state: each returns the state after it, too."""

    def __init__(self, state: Variable) -> None:
        super().__init__(seed=0)
        self._state = state

    def gen(self, distribution: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The state after the draw, and the draw."""
        return distribution(self._state, *args, **kwargs)


def _of_state(name: str) -> Callable[..., Any]:
    method = getattr(RandomStreams, name)

    def draw(random_state: Variable, *args: Any, **kwargs: Any) -> Any:
        after, z = getattr(_OneDraw(random_state), name)(*args, **kwargs)
        return after, z

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"{method.__doc__} Returns the state after the draw, and the draw."
    return draw


RAW_RANDOM = {
    **{name: _of_state(name) for name in DISTRIBUTIONS},
    "RandomStateType": RandomType,
    "random_state_type": RandomType(),
}
