"""Ratios of circular, hyperbolic and exponential functions of x and 2 x: each is one function.

As quotients they are 0 / 0 or inf / inf somewhere, and the parts of their derivatives cancel.
"""

from __future__ import annotations

from symcomp.rewrite.pattern import f, variables, view_rule
from symcomp.rewrite.rule import RuleSet

(x,) = variables("x")
WHY = "the derivative of the quotient is a difference of large parts, that of one function is not"


ratio_of_angles = view_rule(
    "ratio_of_angles",
    [
        (f.sin(2 * x) / f.sin(x), 2 * f.cos(x)),
        (f.tan(x) / f.sin(x), 1 / f.cos(x)),
        (f.sin(x) / f.tan(x), f.cos(x)),
        (f.one_minus_cos(x) / f.sqr(f.sin(x)), 0.5 / f.sqr(f.cos(0.5 * x))),
        (f.one_minus_cos(x) / f.sin(x), f.tan(0.5 * x)),
    ],
    why=WHY,
)


ratio_of_hyperbolic = view_rule(
    "ratio_of_hyperbolic",
    [
        (f.expm1(x) / f.expm1(2 * x), f.sigmoid(-x)),
        (f.expm1(2 * x) / f.expm1(x), 1 + f.exp(x)),
        (f.sinh(2 * x) / f.sinh(x), 2 * f.cosh(x)),
        (f.sinh(x) / f.tanh(x), f.cosh(x)),
        (f.tanh(x) / f.sinh(x), 1 / f.cosh(x)),
        (f.sqr(f.sinh(0.5 * x)) / f.sinh(x), 0.5 * f.tanh(0.5 * x)),
    ],
    why=WHY,
)


DOUBLE_ANGLE_RULES = RuleSet([ratio_of_angles, ratio_of_hyperbolic])
