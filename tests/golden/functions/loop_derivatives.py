"""Derivatives of loops, and derivatives that are loops."""

from __future__ import annotations

import symcomp
import symcomp.tensor as T
from symcomp.tests.golden.functions.values import numbers
from symcomp.tests.golden.registry import Golden, golden


def powers(x, start, **options):
    """Build the states of a loop of products."""
    return symcomp.scan(lambda v, h: T.tanh(h * v) + h, x, start, return_updates=False, **options)


@golden
def checkpointed_gradient() -> Golden:
    x, start = T.dmatrix("x"), T.dvector("start")
    loss = powers(x, start, checkpoint="auto")[-1].sum()
    slopes = symcomp.grad(loss, [x, start])
    return Golden([x, start], slopes, [numbers(9, 3), numbers(3)])


@golden
def loop_second_derivative() -> Golden:
    """Differentiate the norm of a gradient."""
    x, start = T.dmatrix("x"), T.dvector("start")
    slope = symcomp.grad(powers(x, start)[-1].sum(), start)
    second = symcomp.grad((slope**2).sum(), start)
    return Golden([x, start], second, [numbers(4, 3), numbers(3)])


@golden
def loop_forward_mode() -> Golden:
    """Multiply a Hessian by a vector: forward mode over reverse mode."""
    x, start, v = T.dmatrix("x"), T.dvector("start"), T.dvector("v")
    slope = symcomp.grad(powers(x, start)[-1].sum(), start)
    return Golden([x, start, v], symcomp.Rop(slope, start, v), [numbers(4, 3), *[numbers(3)] * 2])


@golden
def nested_loop_gradient() -> Golden:
    x, a = T.dmatrix("x"), T.dscalar("a")

    def outer(row, total):
        inner = symcomp.scan(
            lambda v, s: T.sin(s * a) + v, row, T.constant(0.0), return_updates=False
        )
        return total * 0.5 + inner[-1]

    totals = symcomp.scan(outer, x, T.constant(0.0), return_updates=False)
    return Golden([x, a], symcomp.grad(totals[-1], [x, a]), [numbers(3, 4), numbers()])


@golden
def until_gradient() -> Golden:
    """Differentiate a loop whose number of steps depends on values."""
    a = T.dscalar("a")
    x, _ = symcomp.scan(
        lambda x: (T.cos(x * a), symcomp.until(abs(T.cos(x * a) - x) < 1e-3)),
        outputs_info=T.constant(0.5), n_steps=50,
    )  # fmt: skip
    return Golden([a], symcomp.grad(x[-1], a), [1 + 0 * numbers()])


@golden
def jacobian_and_hessian() -> Golden:
    x, w = T.dvector("x"), T.dmatrix("w")
    y = T.tanh(T.dot(w, x))
    jacobian = symcomp.gradient.jacobian(y, x)
    hessian = symcomp.gradient.hessian((y**2).sum(), x)
    return Golden([x, w], [jacobian, hessian], [numbers(3), numbers(4, 3)])


@golden
def jacobian_row_by_row() -> Golden:
    """Differentiate `cumprod` of sorted numbers, for which rows are computed one by one."""
    x = T.dvector("x")
    y = T.cumprod(T.sort(x) + 2)
    return Golden([x], symcomp.gradient.jacobian(y, x), [numbers(4)])
