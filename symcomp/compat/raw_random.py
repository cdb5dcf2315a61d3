"""``theano.tensor.raw_random``: draws as functions of a random state, which also return the next
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from symcomp.autodiff.lop import grad_undefined
from symcomp.compat.op import Op
from symcomp.compile.random_streams import RandomStreams
from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.core.tensor import TensorType
from symcomp.errors import DTypeError, ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.random.state import RandomType
from symcomp.ops.shapes.shape import shape_tuple

DISTRIBUTIONS = (
    "binomial", "choice", "multinomial", "normal", "permutation", "poisson", "random_integers",
    "uniform",
)  # fmt: skip


class _OneDraw(RandomStreams):
    """The methods of ``RandomStreams`` on a given state: each also returns the state after it."""

    def __init__(self, state: Variable) -> None:
        super().__init__(seed=0)
        self._state = state

    def gen(self, distribution: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the state after the draw, and the draw."""
        return distribution(self._state, *args, **kwargs)


def _of_state(name: str) -> Callable[..., Any]:
    method = getattr(RandomStreams, name)

    def draw(random_state: Variable, *args: Any, **kwargs: Any) -> Any:
        after, z = getattr(_OneDraw(random_state), name)(*args, **kwargs)
        return after, z

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"{method.__doc__} Returns the state after the draw, and the draw."
    return draw


class RandomFunction(Op):
    """The state after a draw, and the draw, for any function of NumPy's ``RandomState``.

    Parameters
    ----------
    fn : str or callable
        A method of ``RandomState``, or a function that takes one first; called with the further
        arguments of the op, and the size last.
    outtype : TensorType
        The type of the draw.
    inplace : bool
        Accepted as Theano has it: states are never written over.
    ndim_added : int
        How many axes the draw has more than the size says.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.compat.raw_random import RandomFunction
    >>> state = T.random.state()
    >>> after, z = RandomFunction("standard_gamma", T.dvector)(state, (3,), 2.0)
    >>> symcomp.function([state], z)(np.random.default_rng(0)).shape
    (3,)
    """

    __props__ = ("fn", "outtype", "inplace", "ndim_added")
    default_output: ClassVar[int | None] = None

    def __init__(
        self, fn: Any, outtype: TensorType, inplace: bool = False, ndim_added: int = 0
    ) -> None:
        self.fn, self.outtype, self.inplace, self.ndim_added = fn, outtype, inplace, ndim_added
        self.exec_fn = getattr(np.random.RandomState, fn) if isinstance(fn, str) else fn

    def make_node(self, r: Any, shape: Any = (), *args: Any) -> Apply:
        """Return the node; ``shape`` is the size, a sequence or an integer vector."""
        if not isinstance(r, Variable) or not isinstance(r.type, RandomType):
            raise DTypeError(f"{self}: the first argument must be a random state, got {r!r}")
        # NumPy makes an empty list a vector of floats.
        given = np.zeros(0, np.int64) if shape is None or shape == () or shape == [] else shape
        size = as_tensor_variable(given)
        if size.ndim != 1 or not dtypes.is_discrete(size.dtype):
            raise DTypeError(f"{self}: the size must be a vector of integers, got {size.type}")
        inputs = [r, size, *map(as_tensor_variable, args)]
        return Apply(self, inputs, [r.type, self.outtype])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Draw."""
        state, size, *args = inputs
        if len(size) + self.ndim_added != self.outtype.ndim:
            raise ShapeError(
                f"{self}: the size {tuple(map(int, size))} has {len(size)} axes, and "
                f"{self.ndim_added} are added to them; the draw is {self.outtype}"
            )
        draw = self.exec_fn(state, *args, tuple(map(int, size)))
        output_storage[0][0] = state
        output_storage[1][0] = np.asarray(draw, self.outtype.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the size, followed by the lengths of added axes, read from the draw."""
        state, draw = node.outputs
        n = self.outtype.ndim - self.ndim_added
        size = [node.inputs[1][i] for i in range(n)]
        return [shape_tuple(state), (*size, *shape_tuple(draw)[n:])]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return that the new state only depends on the old one."""
        return [[True, True], [False, True], *([[False, True]] * (len(node.inputs) - 2))]

    def grad(self, inputs: Sequence[Any], output_gradients: Sequence[Any]) -> list[Any]:
        """Return that a draw has no derivatives."""
        why = "a draw is no differentiable function of its parameters"
        return [grad_undefined(self, i, x, why) for i, x in enumerate(inputs)]


def _random_make_inplace(node: Apply) -> bool:
    """Do nothing: states are never overwritten. Stands for ``random_make_inplace``."""
    return False


RAW_RANDOM = {
    "random_make_inplace": _random_make_inplace,
    "RandomFunction": RandomFunction,
    "RandomStreamsBase": RandomStreams,
    **{name: _of_state(name) for name in DISTRIBUTIONS},
    "RandomStateType": RandomType,
    "random_state_type": RandomType(),
}
