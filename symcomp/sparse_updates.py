"""Updates of parameters of which a step reads some rows: embeddings and the like.

The gradient of ``W[ids]`` is kept as rows; what a step computes is as large as these rows wherever
the method allows it. Momentum and Adam decay their states in each step, in all rows: the exact
methods do this in place; the methods called lazy leave the rows alone that a step does not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from symcomp.autodiff.lop import grad
from symcomp.compile.shared import SharedVariable, shared
from symcomp.core.node import Variable
from symcomp.core.walk import toposort
from symcomp.errors import DTypeError, GraphError
from symcomp.ops.convert import as_tensor_variable, cast_to
from symcomp.ops.elementwise.scalar_math import sqr, sqrt
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, NOTHING, Slice
from symcomp.ops.indexing.subtensors import getitem, inc_subtensor, set_subtensor
from symcomp.ops.shapes.joining import join
from symcomp.ops.shapes.shape import ShapeI, reshape, shape_tuple
from symcomp.ops.sorting.functions import unique
from symcomp.sparse.reductions import segment_sum
from symcomp.sparse.rows import AdamRows, MomentumRows
from symcomp.sparse.structure import wrapped_positions

Updates = list[tuple[Any, Any]]


class RowGradient(NamedTuple):
    """A gradient that is 0 but in some rows.

    Attributes
    ----------
    ids : integer vector
        The rows, from 0 on; each once if it was asked for so.
    rows : tensor
        The rows of the gradient, added up if a row occurs twice.
    """

    ids: Any
    rows: Any


def row_gradient(cost: Any, wrt: Any, distinct: bool = True) -> RowGradient:
    """Differentiate a scalar with respect to a tensor that it reads by rows, ``wrt[ids]``, alone.

    Parameters
    ----------
    cost : scalar
    wrt : TensorVariable
        A tensor that may be read several times, by integer arrays of any shape.
    distinct : bool
        Name each row once, its gradients added up, as methods need that are not linear in the
        gradient.

    Returns
    -------
    RowGradient
        A named tuple ``(ids, rows)``; nothing of the shape of ``wrt`` is computed.

    Raises
    ------
    GraphError
        If ``cost`` reads ``wrt`` in another way, so that its gradient is dense.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> W, ids = T.dmatrix("W"), T.lvector("ids")
    >>> g = sparse.row_gradient((W[ids] ** 2).sum(), W)
    >>> f = symcomp.function([W, ids], list(g))
    >>> f(np.ones((5, 1)), [3, 1, 3])
    [array([1, 3]), array([[2.],
           [4.]])]
    """
    reads = _reads(cost, wrt)
    if isinstance(reads, str):
        raise GraphError(f"row_gradient: {wrt} ({wrt.type}) is not read by rows alone: {reads}")
    outputs = [node.outputs[0] for node in reads]
    grads = grad(cost, outputs, disconnected_inputs="ignore")
    shape = shape_tuple(wrt)
    ids, rows = [], []
    for node, g in zip(reads, grads, strict=True):
        places = node.inputs[1].flatten()
        ids.append(wrapped_positions(cast_to(places, "int64"), as_length(shape[0])))
        rows.append(reshape(g, (-1, *shape[1:]), ndim=wrt.ndim))
    all_ids = ids[0] if len(ids) == 1 else join(0, *ids)
    all_rows = rows[0] if len(rows) == 1 else join(0, *rows)
    if not distinct:
        return RowGradient(all_ids, all_rows)
    found, inverse = unique(all_ids, return_inverse=True)
    return RowGradient(found, segment_sum(all_rows, inverse, ShapeI(0)(found)))


def as_length(n: Any) -> Any:
    """Return a length as an int64 scalar variable."""
    return as_tensor_variable(n, dtype="int64") if isinstance(n, int) else n


def _reads(cost: Any, wrt: Variable) -> Any:
    """Return the nodes that read rows of ``wrt``; a text if something else reads it."""
    found = []
    for node in toposort([cost]):
        for position, x in enumerate(node.inputs):
            if x is not wrt or not any(node.op.connection_pattern(node)[position]):
                continue
            if position or not isinstance(node.op, Subtensor) or not _by_rows(node.op.pattern):
                made = f", made at {node.source}," if node.source is not None else ""
                return f"{node.op}{made} reads it"
            found.append(node)
    return found or "nothing reads it"


def _by_rows(pattern: Any) -> bool:
    entries = [entry for entry in pattern if entry != NOTHING]
    return entries[0] == ARRAY and all(entry == Slice() for entry in entries[1:])


# -- methods


def _each(
    name: str,
    cost: Any,
    params: Any,
    by_rows: Callable[[Any, RowGradient], Updates],
    dense: Callable[[Any, Any], Updates],
) -> Updates:
    """Return the updates of all parameters: of those read by rows by ``by_rows``."""
    targets = list(params) if isinstance(params, list | tuple) else [params]
    updates: Updates = []
    plain = []
    for w in targets:
        if not isinstance(w, SharedVariable):
            raise TypeError(f"{name}: {w!r} is no shared variable, so there is nothing to update")
        if getattr(w, "dtype", "")[:1] not in ("f", "c"):
            raise DTypeError(f"{name}: {w} ({w.type}) is not floating")
        if isinstance(_reads(cost, w), str):
            plain.append(w)
        else:
            updates += by_rows(w, row_gradient(cost, w))
    for w, g in zip(plain, grad(cost, plain) if plain else [], strict=True):
        updates += dense(w, g)
    return updates


def _state(w: Any, name: str) -> Any:
    value = w.get_value(borrow=True)
    return shared(np.zeros_like(value), name=f"{name} of {w}" if w.name else name)


def _at(w: Any, number: Any) -> Any:
    return as_tensor_variable(number, dtype=w.dtype) if isinstance(number, float | int) else number


def sgd(cost: Any, params: Any, learning_rate: Any = 0.01) -> Updates:
    """Return the updates of gradient descent; those of embeddings change only the rows read.

    Parameters
    ----------
    cost : scalar
    params : shared tensor, or list of them
    learning_rate : number or scalar

    Returns
    -------
    list of (shared variable, expression)
        The ``updates`` of ``symcomp.function``.

    Examples
    --------
    >>> import numpy as np
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> W, ids = symcomp.shared(np.ones((4, 2)), name="W"), T.lvector("ids")
    >>> cost = (W[ids] ** 2).sum()
    >>> step = symcomp.function([ids], cost, updates=sparse.sgd(cost, W, 0.25))
    >>> float(step([1, 1]))
    4.0
    >>> W.get_value()[:, 0]
    array([1., 0., 1., 1.])
    """

    def by_rows(w: Any, g: RowGradient) -> Updates:
        return [(w, inc_subtensor(getitem(w, g.ids), -_at(w, learning_rate) * g.rows))]

    return _each("sgd", cost, params, by_rows,
                 lambda w, g: [(w, w - _at(w, learning_rate) * g)])  # fmt: skip


def momentum(cost: Any, params: Any, learning_rate: Any = 0.01, momentum: float = 0.9) -> Updates:
    """Return the updates of gradient descent with momentum.

    ``v = momentum v + g`` and ``w = w - rate v``. The velocities of all rows decay, and all rows
    move, in place. See ``lazy_momentum``.

    Parameters
    ----------
    cost, params, learning_rate
        As for ``sgd``.
    momentum : float

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> from symcomp import sparse
    >>> w = symcomp.shared(np.ones(2), name="w")
    >>> step = symcomp.function([], updates=sparse.momentum((w ** 2).sum(), [w], 0.1, 0.9))
    >>> step()
    >>> w.get_value().round(4)
    array([0.8, 0.8])
    """

    def by_rows(w: Any, g: RowGradient) -> Updates:
        v = _state(w, "velocity")
        numbers = _at(w, momentum), _at(w, learning_rate)
        new_v, new_w = MomentumRows()(*numbers, v, w, g.rows, g.ids)
        return [(v, new_v), (w, new_w)]

    def dense(w: Any, g: Any) -> Updates:
        v = _state(w, "velocity")
        new = _at(w, momentum) * v + g
        return [(v, new), (w, w - _at(w, learning_rate) * new)]

    return _each("momentum", cost, params, by_rows, dense)


def lazy_momentum(
    cost: Any, params: Any, learning_rate: Any = 0.01, momentum: float = 0.9
) -> Updates:
    """Return updates as of ``momentum`` in which rows that a step does not read stay as they are.

    Their velocities do not decay either: this is another method, with the same fixed points.

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> w = symcomp.shared(np.ones((3, 1)), name="w")
    >>> cost = (w[T.constant([0, 2])] ** 2).sum()
    >>> step = symcomp.function([], updates=sparse.lazy_momentum(cost, [w], 0.1))
    >>> step()
    >>> w.get_value().round(4).ravel()
    array([0.8, 1. , 0.8])
    """

    def by_rows(w: Any, g: RowGradient) -> Updates:
        v = _state(w, "velocity")
        rows = _at(w, momentum) * getitem(v, g.ids) + g.rows
        return [
            (v, set_subtensor(getitem(v, g.ids), rows)),
            (w, inc_subtensor(getitem(w, g.ids), -_at(w, learning_rate) * rows)),
        ]

    def dense(w: Any, g: Any) -> Updates:
        v = _state(w, "velocity")
        after = _at(w, momentum) * v + g
        return [(v, after), (w, w - _at(w, learning_rate) * after)]

    return _each("lazy_momentum", cost, params, by_rows, dense)


class _Adam:
    """The formulas of Adam (Kingma and Ba, 2015), for all rows or some.

    Parameters
    ----------
    rate : number or scalar
    beta1, beta2, eps : float
    """

    def __init__(self, rate: Any, beta1: float, beta2: float, eps: float) -> None:
        self._rate, self._beta1, self._beta2, self._eps = rate, beta1, beta2, eps
        self._count = shared(np.zeros((), np.float64), name="steps")
        self._after = self._count + 1.0
        self.updates: Updates = [(self._count, self._after)]

    def states(self, w: Any) -> tuple[Any, Any]:
        """Return the first and second moments of a parameter."""
        return _state(w, "first moment"), _state(w, "second moment")

    def _rate_now(self, w: Any) -> Any:
        """Return the rate with the corrections of the first steps."""
        t = self._after
        rate = self._rate * sqrt(1 - self._beta2**t) / (1 - self._beta1**t)
        return cast_to(as_tensor_variable(rate), w.dtype)

    def _step(self, w: Any, m: Any, v: Any) -> Any:
        return self._rate_now(w) * m / (sqrt(v) + _at(w, self._eps))

    def exact(self, w: Any, g: RowGradient) -> Updates:
        """Return the updates of all rows, for the rows of a gradient."""
        m, v = self.states(w)
        numbers = _at(w, self._beta1), _at(w, self._beta2), self._rate_now(w), _at(w, self._eps)
        new = AdamRows()(*numbers, m, v, w, g.rows, g.ids)
        return list(zip((m, v, w), new, strict=True))

    def dense(self, w: Any, g: Any) -> Updates:
        """Return the updates for a dense gradient."""
        m, v = self.states(w)
        b1, b2 = _at(w, self._beta1), _at(w, self._beta2)
        m2, v2 = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * sqr(g)
        return [(m, m2), (v, v2), (w, w - self._step(w, m2, v2))]

    def lazy(self, w: Any, g: RowGradient) -> Updates:
        """Return the updates of the rows of a gradient alone."""
        m, v = self.states(w)
        b1, b2 = _at(w, self._beta1), _at(w, self._beta2)
        m2 = b1 * getitem(m, g.ids) + (1 - b1) * g.rows
        v2 = b2 * getitem(v, g.ids) + (1 - b2) * sqr(g.rows)
        return [
            (m, set_subtensor(getitem(m, g.ids), m2)),
            (v, set_subtensor(getitem(v, g.ids), v2)),
            (w, inc_subtensor(getitem(w, g.ids), -self._step(w, m2, v2))),
        ]


def adam(
    cost: Any,
    params: Any,
    learning_rate: Any = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> Updates:
    """Return the updates of Adam (Kingma and Ba, 2015).

    The moments of all rows decay, and all rows move, in place. See ``lazy_adam``.

    Parameters
    ----------
    cost, params, learning_rate
        As for ``sgd``.
    beta1, beta2 : float
        The decay of the first and second moments.
    eps : float

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> from symcomp import sparse
    >>> w = symcomp.shared(np.ones(2), name="w")
    >>> step = symcomp.function([], updates=sparse.adam((w ** 2).sum(), [w], 0.1))
    >>> step()
    >>> w.get_value().round(4)
    array([0.9, 0.9])
    """
    formulas = _Adam(learning_rate, beta1, beta2, eps)
    return formulas.updates + _each("adam", cost, params, formulas.exact, formulas.dense)


def lazy_adam(
    cost: Any,
    params: Any,
    learning_rate: Any = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> Updates:
    """Return updates as of ``adam`` in which rows that a step does not read stay as they are.

    Their moments do not decay either: this is another method, as the lazy Adam of other libraries.

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> import symcomp.tensor as T
    >>> from symcomp import sparse
    >>> w = symcomp.shared(np.ones((3, 1)), name="w")
    >>> cost = (w[T.constant([0, 2])] ** 2).sum()
    >>> step = symcomp.function([], updates=sparse.lazy_adam(cost, [w], 0.1))
    >>> step()
    >>> w.get_value().round(4).ravel()
    array([0.9, 1. , 0.9])
    """
    formulas = _Adam(learning_rate, beta1, beta2, eps)
    return formulas.updates + _each("lazy_adam", cost, params, formulas.lazy, formulas.dense)


def adagrad(cost: Any, params: Any, learning_rate: Any = 0.01, eps: float = 1e-8) -> Updates:
    """Return the updates of Adagrad (Duchi and others, 2011), which never touches other rows.

    Parameters
    ----------
    cost, params, learning_rate
        As for ``sgd``.
    eps : float

    Examples
    --------
    >>> import symcomp
    >>> import numpy as np
    >>> from symcomp import sparse
    >>> w = symcomp.shared(np.ones(2), name="w")
    >>> step = symcomp.function([], updates=sparse.adagrad((w ** 2).sum(), [w], 0.1))
    >>> step()
    >>> w.get_value().round(4)
    array([0.9, 0.9])
    """

    def by_rows(w: Any, g: RowGradient) -> Updates:
        h = _state(w, "squares")
        rows = getitem(h, g.ids) + sqr(g.rows)
        step = _at(w, learning_rate) * g.rows / (sqrt(rows) + _at(w, eps))
        return [
            (h, set_subtensor(getitem(h, g.ids), rows)),
            (w, inc_subtensor(getitem(w, g.ids), -step)),
        ]

    def dense(w: Any, g: Any) -> Updates:
        h = _state(w, "squares")
        after = h + sqr(g)
        return [(h, after), (w, w - _at(w, learning_rate) * g / (sqrt(after) + _at(w, eps)))]

    return _each("adagrad", cost, params, by_rows, dense)


__all__ = [
    "adagrad", "adam", "lazy_adam", "lazy_momentum", "momentum", "row_gradient", "sgd",
]  # fmt: skip
