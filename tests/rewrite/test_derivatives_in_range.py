"""First and second derivatives of quotients by exponentials, at both ends of the range."""

import mpmath as mp
import numpy as np
import pytest

import symcomp
import symcomp.tensor as T

# Expressions with exponentials whose powers, in which derivatives were divided, leave the range.
OVER_EXPONENTIALS = [
    "x / exp(x)", "x**2 / exp(x)", "1 / exp(x)", "exp(x / 2)**-2.0", "3 / 2**x", "exp(x)**0.3",
    "1 / sinh(x)", "1 / sinh(x)**2", "1 / cosh(x)**2", "1 / (1 + cosh(x))", "1 / expm1(x)",
    "1 / expm1(x)**2", "1 / (2 + exp(x))", "1 / (2 + exp(x))**2", "x / cosh(x)",
    "log(1 + cosh(x))",
]  # fmt: skip


@pytest.mark.parametrize("text", OVER_EXPONENTIALS)
def test_derivatives_over_exponentials(text):
    """The value, its derivatives by both modes, and the second one, beside 500 digits."""
    x = T.dvector("x")
    z = eval(text, vars(T), {"x": x})
    slope = symcomp.grad(z.sum(), x)
    forward = symcomp.gradient.Rop(z, x, T.ones_like(x))
    found = [z, slope, symcomp.grad(slope.sum(), x), forward]
    values = np.array([-800.0, -400.0, 0.3, 20.0, 400.0, 800.0])
    with np.errstate(all="ignore"):
        got = symcomp.function([x], found, mode=symcomp.Mode(linker="py"))(values)
    with mp.workdps(500):
        for i, value in enumerate(values):
            right = mp.taylor(lambda x: eval(text, vars(mp), {"x": x}), mp.mpf(value), 2)
            for order, k in enumerate((0, 1, 2, 1)):
                wanted = float(mp.factorial(k) * right[k])
                np.testing.assert_allclose(
                    got[order][i], wanted, rtol=1e-14, atol=1e-300, err_msg=f"{order} at {value}"
                )
