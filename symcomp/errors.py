"""The exception tree. Each error of the library is one of these, and the built-in kind users
expect.
"""

from __future__ import annotations

__all__ = [
    "AxisError", "CyclicGivensError", "DisconnectedInputError", "DTypeError", "GradientError",
    "GraphError", "IndexOutOfRangeError", "MissingInputError", "NotScalarConstantError",
    "NullTypeGradError", "RewriteError", "RewriteWarning", "ShapeError", "SparsePatternError",
    "StepError",
    "SymcompError", "UnusedInputError",
]  # fmt: skip


class SymcompError(Exception):
    """Base of all errors raised by symcomp.

    Each subclass also derives from the built-in error that NumPy or Theano would raise in its place
    (``ValueError``, ``TypeError``), so that existing ``except`` clauses keep working.
    """


class ShapeError(SymcompError, ValueError):
    """Shapes, ranks or axes do not fit together; the message shows them all.

    >>> import symcomp.tensor as T
    >>> T.dot(T.tensor("float64", shape=(2, 3)), T.tensor("float64", shape=(4, 5)))
    Traceback (most recent call last):
        ...
    symcomp.errors.ShapeError: dot: axis 1 of x has length 3, axis 0 of y has length 4: ...
    """


class ScalarCostError(ShapeError, TypeError):
    """The cost of a gradient has axes."""


class AxisError(ShapeError, IndexError):
    """An axis does not exist in the tensor, or an index has more entries than it has axes."""


class DTypeError(SymcompError, TypeError):
    """A dtype is not accepted, or a conversion would lose precision."""


class GraphError(SymcompError, TypeError):
    """A graph breaks an invariant: wrong type in a replacement, a cycle, a foreign variable."""


class IndexOutOfRangeError(SymcompError, IndexError):
    """An index does not exist in the tensor that it is used on."""


class ParameterError(SymcompError, ValueError, TypeError):
    """A parameter of an op is of a wrong type, or out of its range."""


class LabelError(SymcompError, ValueError, IndexError):
    """A label names no class: it is negative, or not below the number of classes."""


class SparsePatternError(SymcompError, ValueError, IndexError):
    """The indices of a sparse matrix do not fit its shape, its index dtype or one another."""


class MissingInputError(SymcompError, ValueError):
    """The outputs depend on a variable that is neither an input, nor shared, nor constant."""


class UnusedInputError(SymcompError, ValueError):
    """An input does not take part in computing the outputs, or is given twice."""


class CyclicGivensError(SymcompError, ValueError):
    """The replacements in ``givens`` depend on one another in a cycle."""


class StepError(SymcompError, TypeError, ValueError):
    """The step of a loop returns nothing, or something that a loop cannot use."""


class DisconnectedInputError(SymcompError, ValueError):
    """A gradient was asked with respect to a variable that the cost does not depend on."""


class NullTypeGradError(SymcompError, TypeError, ValueError):
    """A gradient passes through a place where the derivative is undefined or not implemented.

    In such places Theano's ``grad`` raises a TypeError and its ``Rop`` a ValueError.
    """


class GradientError(SymcompError, AssertionError):
    """A symbolic derivative disagrees with finite differences."""


class NotScalarConstantError(SymcompError, ValueError):
    """A variable is not a scalar whose value is known when the graph is built."""


class SaveError(SymcompError, ValueError):
    """Something that is to be saved has no place in the file: a user's op, a Python object."""


class LoadError(SymcompError, ValueError):
    """A file that is to be loaded is not one that ``symcomp.save`` wrote, or of a newer version."""


class RewriteError(SymcompError, RuntimeError):
    """A rewrite failed, or would have changed a dtype or a shape; the message names it."""


class RewriteWarning(UserWarning):
    """A rewrite failed and was skipped, or rewriting was stopped; the message names which."""
