"""Members that higher layers add to classes of lower ones: the operators of tensors, formulas in
notebooks, the names of Theano.

A class knows nothing of them; the higher layer declares them, and replaces a member of the class
only where it says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from symcomp.errors import GraphError


def add_members(cls: type, members: Mapping[str, Any], replace: Collection[str] = ()) -> None:
    """Add members to a class; adding the same ones again has no effect.

    Parameters
    ----------
    cls : type
    members : mapping of str to object
    replace : collection of str
        Names of members that may replace others, which the class defines itself.

    Raises
    ------
    GraphError
        If the class defines another member of a name that is not in ``replace``.

    Examples
    --------
    >>> from symcomp.core.members import add_members
    >>> class Shape:
    ...     sides = 3
    >>> add_members(Shape, {"corners": property(lambda shape: shape.sides)})
    >>> Shape().corners
    3
    >>> add_members(Shape, {"sides": 4})
    Traceback (most recent call last):
    symcomp.errors.GraphError: Shape defines sides itself: name it in replace to replace it
    """
    own = vars(cls)
    for name, member in members.items():
        if name in own and own[name] is not member and name not in replace:
            raise GraphError(
                f"{cls.__name__} defines {name} itself: name it in replace to replace it"
            )
    for name, member in members.items():
        setattr(cls, name, member)
