"""Views of sums and products, independent of how they are written: a sum as a number and terms with
coefficients, a product as a coefficient and factors with exponents.

Rules that look for ``1 - exp(x)`` see it also in ``-exp(x) + 1``, ``1 + -1 * exp(x)`` or ``-(exp(x)
- 1)``. Views are read from graphs and are never part of them. They are exact: an operation that
would round differently (a division by 3 in a sum) stays one term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, wraps
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Variable
from symcomp.core.record import record
from symcomp.core.tensor import TensorConstant, TensorVariable
from symcomp.ops.elementwise.elemwise import ROWS, Elemwise
from symcomp.ops.elementwise.scalar_math import cast, mul, neg, pow, reciprocal, sqr, sqrt, true_div
from symcomp.ops.indexing.index import Subtensor
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.rewrite.rule import Rule, RuleSet, elementwise

NOTHING: frozenset[Any] = frozenset()
# The functions that end sums, and products.
SUMS, PRODUCTS = ("add", "sub", "neg"), ("mul", "true_div", "reciprocal", "sqr")
# Longer sums and products are not flattened, nor deeper ones.
LONGEST = 8
DEEPEST = 32


def number(x: Any) -> float | None:
    """Return the value of a real constant all of whose axes have length 1, whatever gives it its
    shape.
    """
    while not isinstance(x, TensorConstant):
        node = x.owner
        if node is None:
            return None
        if isinstance(node.op, DimShuffle) or elementwise(x, "cast", "identity"):
            x = node.inputs[0]
        else:
            return None
    if x.data.size != 1 or dtypes.is_complex(x.dtype):
        return None
    return float(x.data.reshape(()))


def is_point(x: Any) -> bool:
    """Tell whether all axes of ``x`` are known to have length 1."""
    return all(n == 1 for n in x.type.shape)


def call(name: str, *args: Any) -> Any:
    """Apply the scalar function ``name`` to ``args``."""
    return Elemwise(ROWS[name]())(*args)


def argument(x: Any, *names: str) -> Any:
    """Return the argument of the scalar function of one of these names that computes ``x``, or
    None.
    """
    node = elementwise(x, *names)
    return node.inputs[0] if node is not None else None


def is_power_of_two(c: float) -> bool:
    """Tell whether multiplying by ``c`` rounds nothing (except at the ends of the range)."""
    return math.isfinite(c) and c != 0 and abs(math.frexp(c)[0]) == 0.5


# Weak values: two readings of one variable are the same object while either is in use.
_converted: WeakValueDictionary[tuple[Any, str], Any] = WeakValueDictionary()


def converted(x: Any, dtype: str) -> Any:
    """Return ``x``, a part of a sum or product of floats of this dtype, such that functions of it
    have this dtype: a function of one argument is that of the converted argument.
    """
    if dtypes.to_float(x.dtype) == dtype or not dtypes.is_float(dtype):
        return x
    found = _converted.get((x, dtype))
    if found is None:
        node = x.owner
        found = cast(x, dtype)
        if node is not None and type(node.op) is Elemwise and len(node.inputs) == 1:
            argument: Any = node.inputs[0]
            if not node.op.inplace and not dtypes.is_complex(argument.dtype):
                inside = node.op(cast(argument, dtype))
                found = inside if inside.dtype == dtype else found
        _converted[x, dtype] = found
    return found


# -- cache of views

View = TypeVar("View")
_memories: list[dict[Any, Any]] = []


def _remembered(read: Callable[[Any], View]) -> Callable[[Any], View]:
    """Cache ``read`` by variable until ``forget`` is called: many rules read the same."""
    memory: dict[Any, View] = {}
    _memories.append(memory)

    @wraps(read)
    def recall(x: Any) -> View:
        found = memory.get(x)
        if found is None:
            found = memory[x] = read(x)
        return found

    return recall


def forget() -> None:
    """Clear the cache; to be called after each change of a graph, before the next rule."""
    for memory in _memories:
        memory.clear()


def functions_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the names of the scalar functions that compute values."""
    nodes = [x.owner for x in values if x.owner is not None]
    return frozenset(node.op.scalar.name for node in nodes if type(node.op) is Elemwise)


# -- sums


@record(frozen=False)
class Sum:
    """``constant + sum of coefficient * term``; equal terms are one."""

    constant: float
    terms: dict[Any, float]

    @cached_property
    def functions(self) -> frozenset[str]:
        """The scalar functions that compute terms."""
        return functions_of(self.terms)

    @property
    def single(self) -> tuple[Any, float] | None:
        """The only term and its coefficient, if there is just one."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 else None

    def pairs(self) -> list[tuple[Any, float]]:
        """Return terms and coefficients."""
        return list(self.terms.items())

    def times(self, c: float) -> Sum:
        """Return the sum multiplied by c."""
        return Sum(c * self.constant, {t: c * k for t, k in self.terms.items()})

    def plus(self, other: Sum) -> Sum:
        """Add two sums; terms that cancel are dropped."""
        terms = dict(self.terms)
        for term, c in other.terms.items():
            terms[term] = terms.get(term, 0.0) + c
        return Sum(self.constant + other.constant, {t: c for t, c in terms.items() if c != 0})


@_remembered
def as_sum(x: Any) -> Sum:
    """Read ``x`` as a sum. The result is shared: do not modify it."""
    result = Sum(0.0, {})
    dtype = x.dtype
    pending = [(x, 1.0)]
    steps = 0
    while pending:
        steps += 1
        v, c = pending.pop()
        value = number(v)
        if value is not None:
            result.constant += c * value
            continue
        read = steps <= DEEPEST and v.dtype == dtype and dtypes.is_float(dtype)
        parts = _addends(v) if read else None
        if parts is None or len(result.terms) + len(pending) + len(parts) > LONGEST:
            v = converted(v, dtype)
            result.terms[v] = result.terms.get(v, 0.0) + c
        else:
            pending += [(part, c * k) for part, k in reversed(parts)]
    result.terms = {t: c for t, c in result.terms.items() if c != 0}
    return result


def _addends(x: Any) -> list[tuple[Any, float]] | None:
    """Return the terms of ``x`` with signs or exact coefficients; None if it is no sum."""
    node = elementwise(x, "add", "sub", "neg", "mul", "true_div", "identity")
    if node is None:
        return None
    name, inputs = node.op.scalar.name, node.inputs
    if name in ("add", "identity"):
        return [(v, 1.0) for v in inputs]
    if name == "sub":
        return [(inputs[0], 1.0), (inputs[1], -1.0)]
    if name == "neg":
        return [(inputs[0], -1.0)]
    return _multiple(name, inputs)


def _multiple(name: str, inputs: Sequence[Any]) -> list[tuple[Any, float]] | None:
    values = [number(v) for v in inputs]
    if name == "mul" and values[0] is not None and math.isfinite(values[0]):
        return [(inputs[1], values[0])]
    if values[1] is None or not math.isfinite(values[1]):
        return None
    if name == "mul":
        return [(inputs[0], values[1])]
    return [(inputs[0], 1 / values[1])] if is_power_of_two(values[1]) else None


def sum_of(constant: float, terms: Sequence[tuple[Any, float]], like: Any) -> Any:
    """Build the expression of a sum: no needless term, subtraction for negative coefficients.

    ``like`` gives the dtype of a sum without terms.
    """
    ordered = sorted(terms, key=lambda pair: pair[1] < 0)
    total: Any = None
    for term, c in ordered:
        if total is None:
            total = scaled(c, term)
        elif c < 0:
            total = total - scaled(-c, term)
        else:
            total = total + scaled(c, term)
    if total is None:
        return np.asarray(constant, like.dtype)
    return total if constant == 0 else total + constant


def scaled(c: float, x: Any) -> Any:
    """Return ``c * x``, if it is known to be simpler without a product."""
    if c == 1:
        return x
    value = number(x)
    if value is not None:
        return np.asarray(c * value, x.dtype)
    inner = elementwise(x, "neg", "mul", "true_div")
    if inner is not None:
        if inner.op.scalar.name == "neg":
            return scaled(-c, inner.inputs[0])
        part = _multiple(inner.op.scalar.name, inner.inputs)
        if part is not None and is_power_of_two(part[0][1]):
            return scaled(c * part[0][1], part[0][0])
    return neg(x) if c == -1 else c * x


# -- products


@record(frozen=False)
class Product:
    """``coefficient * product of factor ** exponent``; equal factors are one."""

    coefficient: float
    factors: dict[Any, float]
    # The factors that it both multiplies and divides by, by whole powers.
    cancelled: tuple[Any, ...] = ()

    @cached_property
    def functions(self) -> frozenset[str]:
        """The scalar functions that compute factors."""
        return functions_of(self.factors)

    @property
    def single(self) -> Any:
        """The only factor, if there is just one and its exponent is 1."""
        (factor, exponent), *more = self.factors.items() if self.factors else [(None, 0)]
        return factor if exponent == 1 and not more else None

    def without(self, *factors: Any) -> Product:
        """Return the product without some factors."""
        rest = {f: e for f, e in self.factors.items() if not any(f is g for g in factors)}
        return Product(self.coefficient, rest)

    def found(self, exponent: float, *names: str) -> list[tuple[Any, Any]]:
        """Return (factor, argument) of the factors with this exponent that apply one of these
        functions.

        An empty ``names`` finds all factors.
        """
        return [
            (f, argument(f, *names) if names else f)
            for f, e in self.factors.items()
            if e == exponent and (not names or elementwise(f, *names))
        ]

    def times(self, *more: Any) -> Any:
        """Build the expression of this product times ``more`` factors."""
        return product_of(self, more)


@_remembered
def as_product(x: Any) -> Product:
    """Read ``x`` as a product. Only powers of one function have non-integer exponents. The result
    is shared: do not modify it.
    """
    result = Product(1.0, {})
    cancelled: dict[Any, None] = {}
    dtype = x.dtype
    pending: list[tuple[Any, float]] = [(x, 1.0)]
    steps = 0
    while pending:
        steps += 1
        v, e = pending.pop()
        value = number(v)
        if value is not None and (value != 0 or e > 0) and float(e).is_integer():
            result.coefficient *= value**e
            continue
        read = steps <= DEEPEST and v.dtype == dtype and dtypes.is_float(dtype)
        parts = _multiplicands(v) if read else None
        whole = float(e).is_integer() and parts is not None
        if not whole or len(result.factors) + len(pending) + len(parts or ()) > LONGEST:
            v = converted(v, dtype)
            before = result.factors.get(v, 0.0)
            result.factors[v] = before + e
            if before * e < 0 and float(before).is_integer() and float(e).is_integer():
                cancelled[v] = None
        else:
            pending += [(part, e * k) for part, k in reversed(parts or ())]
    result.cancelled = (*cancelled,)
    result.factors = {f: e for f, e in result.factors.items() if e != 0}
    return result


def _multiplicands(x: Any) -> list[tuple[Any, float]] | None:
    """Return the factors of ``x`` with exponents; None if it is no product."""
    names = ("mul", "true_div", "neg", "reciprocal", "sqr", "sqrt", "pow", "identity")
    node = elementwise(x, *names, "defined_difference")
    if node is None:
        return None
    name, inputs = node.op.scalar.name, node.inputs
    if name == "defined_difference":
        return [(inputs[2], 1.0)]
    if name == "mul":
        return [(v, 1.0) for v in inputs]
    if name == "true_div":
        return [(inputs[0], 1.0), (inputs[1], -1.0)]
    if name == "neg":
        return [(inputs[0], 1.0), (_MINUS_ONE[x.dtype], 1.0)]
    exponent = {"reciprocal": -1.0, "sqr": 2.0, "sqrt": 0.5, "identity": 1.0}.get(name)
    if name == "pow":
        exponent = number(inputs[1])
    if exponent is None or not math.isfinite(exponent) or exponent == 0:
        return None
    return [(inputs[0], exponent)]


class _Constants(dict[str, Any]):
    """Constants -1 by dtype."""

    def __missing__(self, dtype: str) -> Any:
        array = np.asarray(-1, dtype)
        self[dtype] = neg(array).type.make_constant(array)
        return self[dtype]


_MINUS_ONE = _Constants()


def product_of(product: Product, more: Sequence[Any] = ()) -> Any:
    """Build the expression of a product: at most one division, no needless factor."""
    above: list[Any] = list(more)
    below: list[Any] = []
    for factor, e in product.factors.items():
        (above if e > 0 else below).append(powered(factor, abs(e)))
    c = product.coefficient
    numerator = _multiply(above)
    denominator = _multiply(below)
    if numerator is None and denominator is None:
        return c
    if denominator is None:
        return scaled(c, numerator)
    if numerator is None:
        return reciprocal(denominator) if c == 1 else true_div(c, denominator)
    return scaled(c, true_div(numerator, denominator))


def _multiply(factors: Sequence[Any]) -> Any:
    result = None
    for factor in factors:
        result = factor if result is None else mul(result, factor)
    return result


def powered(x: Any, e: float) -> Any:
    """Return ``x ** e`` for e > 0, by the cheapest function."""
    if e == 1:
        return x
    if e == 2:
        return sqr(x)
    return sqrt(x) if e == 0.5 else pow(x, e)


# -- exponentials and squares, however they are written


def exponent(x: Any) -> Any:
    """Return y if ``x`` is exp(y), also written as 1 / exp(-y) or as a power; else None."""
    y = argument(x, "exp")
    if (power := elementwise(x, "power_of_log")) is not None:
        return power.inputs[1] * call("log", power.inputs[0])
    if y is None:
        p = as_product(x)
        inverses = p.found(-1, "exp")
        if p.coefficient == 1 and len(p.factors) == 1 and inverses:
            y = scaled(-1, inverses[0][1])
    return y


def square_root(x: Any) -> Any:
    """Return y if ``x`` is y^2, also written as y * y or y ** 2; else None."""
    node = elementwise(x, "sqr", "pow", "mul", "identity") if x is not None else None
    if node is None:
        return None
    y, *more = node.inputs
    match node.op.scalar.name:
        case "sqr":
            return y
        case "identity":
            return square_root(y)
        case "pow" if number(more[0]) == 2 and y.dtype == x.dtype:
            return y
        case "mul" if same(y, more[0]):
            return y
    p = as_product(x)
    roots = list(p.factors)
    if p.coefficient == 1 and len(roots) == 1 and p.factors[roots[0]] == 2:
        return roots[0]
    return None


# -- facts by which most rules are sorted out


def applicable(rules: RuleSet, node: Apply) -> Sequence[Rule]:
    """Return the rules that may apply to a node, by the functions and numbers near it."""
    candidates = rules.candidates(node)
    near = present(node) if candidates.needed else NOTHING
    in_view = present_in_view(node) if candidates.needed_in_view else NOTHING
    return candidates.suited(near, in_view)


def present(node: Apply) -> frozenset[Any]:
    """Return the scalar functions that compute inputs of the node, and the numbers among these."""
    return functions_of(node.inputs).union(map(number, node.inputs))


def present_in_view(node: Apply) -> frozenset[str]:
    """Return the scalar functions that compute terms of the sum, or factors of the product, that
    the node ends.
    """
    if type(node.op) is Elemwise:
        if node.op.scalar.name in SUMS:
            return as_sum(node.outputs[0]).functions
        if node.op.scalar.name in PRODUCTS:
            return as_product(node.outputs[0]).functions
    return NOTHING


# -- through structure


def through_views(x: Any, reading: bool = False) -> tuple[Any, list[Apply]]:
    """Return the variable that ``x`` is a rearrangement of (axes of length 1 inserted or dropped,
    transposed), and the rearranging nodes, the outermost first. With ``reading``, look through
    indexing, too.
    """
    kinds = (DimShuffle, Subtensor) if reading else DimShuffle
    nodes: list[Apply] = []
    while x.owner is not None and isinstance(x.owner.op, kinds):
        nodes.append(x.owner)
        x = x.owner.inputs[0]
    return x, nodes


def puts_back(views: Sequence[Apply], axes: Sequence[int], ndim: int) -> bool:
    """Tell whether ``views`` insert the reduced axes again, with length 1, at their places among
    ``ndim``.
    """
    order: tuple[int | str, ...] = tuple(range(ndim - len(axes)))
    for view in reversed(views):
        assert isinstance(view.op, DimShuffle)
        order = tuple("x" if a == "x" else order[int(a)] for a in view.op.order)
    kept = iter(range(ndim))
    return order == tuple("x" if a in axes else next(kept) for a in range(ndim))


def rearranged(x: Any, nodes: Sequence[Apply]) -> Any:
    """Apply the ops of ``nodes`` to ``x``, the last first."""
    for node in reversed(nodes):
        x = node.op(x, *node.inputs[1:])
    return x


def same(x: Variable, y: Variable) -> bool:
    """Tell whether both are one variable (after merging), or equal constants."""
    if x is y:
        return True
    return (
        isinstance(x, TensorVariable)
        and isinstance(y, TensorVariable)
        and number(x) is not None
        and number(x) == number(y)
        and x.type == y.type
    )
