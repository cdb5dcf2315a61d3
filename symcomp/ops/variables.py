"""Constructors of symbolic inputs: T.matrix, T.dvector, T.tensor ... The many names come from one
table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import StaticShape, TensorType, TensorVariable
from symcomp.ops.convert import resolve_dtype

SHAPES: dict[str, StaticShape] = {
    "scalar": (),
    "vector": (None,),
    "matrix": (None, None),
    "row": (1, None),
    "col": (None, 1),
    "tensor3": (None,) * 3,
    "tensor4": (None,) * 4,
    "tensor5": (None,) * 5,
    "tensor6": (None,) * 6,
    "tensor7": (None,) * 7,
}
PREFIXES = {
    "b": "int8",
    "w": "int16",
    "i": "int32",
    "l": "int64",
    "f": "float32",
    "d": "float64",
    "c": "complex64",
    "z": "complex128",
}
PLURALS = {
    "scalar": "scalars",
    "vector": "vectors",
    "matrix": "matrices",
    "row": "rows",
    "col": "cols",
    **{f"tensor{n}": f"tensor{n}s" for n in range(3, 8)},
}


def tensor(
    *args: Any,
    dtype: Any = None,
    shape: Any = None,
    broadcastable: Any = None,
    name: str | None = None,
) -> TensorVariable:
    """Make a symbolic tensor.

    Parameters
    ----------
    *args
        Either Theano's ``(dtype, broadcastable, name)`` or ``(name, shape)``: the first is a dtype
        if it can be.
    dtype : optional
        By default floatX.
    shape : sequence of int or None, optional
        Lengths, None where unknown; () by default.
    broadcastable : sequence of bool, optional
        Theano's way: True where the length is 1.
    name : str, optional

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> T.tensor("x", shape=(None, 3)).type
    TensorType(float64, (None, 3))
    >>> T.tensor("float32", (False, True)).type
    TensorType(float32, (None, 1))
    """
    rest = list(args)
    if rest and dtype is None and _is_dtype(rest[0]):
        dtype = rest.pop(0)
    elif rest and name is None and (rest[0] is None or isinstance(rest[0], str)):
        name = rest.pop(0)
    if rest and shape is None and broadcastable is None:
        shape = rest.pop(0)
    if rest and name is None:
        name = rest.pop(0)
    if rest:
        raise TypeError(f"tensor: too many arguments: {rest}")
    if shape is None and broadcastable is None:
        shape = ()
    return TensorType(resolve_dtype(dtype), shape, broadcastable)(name)


def _is_dtype(x: Any) -> bool:
    if isinstance(x, str):
        return x in dtypes.ALL or x == "floatX"
    return isinstance(x, np.dtype | type)


def _maker(word: str, shape: StaticShape) -> Callable[..., TensorVariable]:
    def make(name: str | None = None, dtype: Any = None) -> TensorVariable:
        return TensorType(resolve_dtype(dtype), shape)(name)

    make.__name__ = make.__qualname__ = word
    make.__doc__ = (
        f"Make a symbolic {word} of lengths {shape}.\n\nParameters\n----------\n"
        "name : str, optional\ndtype : optional\n    By default floatX.\n\n"
        "Examples\n--------\n>>> import symcomp.tensor as T\n"
        f">>> T.{word}('x').type.shape\n{shape}\n"
    )
    return make


def _several(word: str, make: Callable[..., TensorVariable]) -> Callable[..., Any]:
    def make_several(*names: Any, dtype: Any = None) -> Any:
        wanted: Sequence[Any] = names
        if len(names) == 1 and isinstance(names[0], int):
            wanted = [None] * names[0]
        elif len(names) == 1 and names[0] is not None:
            wanted = names[0]
        options = {} if dtype is None else {"dtype": dtype}
        made = [make(n, **options) for n in wanted]
        return made[0] if len(made) == 1 else made

    make_several.__name__ = make_several.__qualname__ = word
    make_several.__doc__ = (
        f"Several of them: ``{word}(3)``, ``{word}('x', 'y')`` or ``{word}('xy')``; a list."
    )
    return make_several


def _build() -> dict[str, Any]:
    """Return all constructors by name: words, prefixed words (which are types), and their plurals.
    """
    made: dict[str, Any] = {}
    for word, shape in SHAPES.items():
        made[word] = _maker(word, shape)
        made[PLURALS[word]] = _several(PLURALS[word], made[word])
        for prefix, dtype in PREFIXES.items():
            made[prefix + word] = TensorType(dtype, shape)
            made[prefix + PLURALS[word]] = _several(prefix + PLURALS[word], made[prefix + word])
    return made


NAMES = _build()
__all__ = ["tensor", *NAMES]
globals().update(NAMES)
