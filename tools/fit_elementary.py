"""Fit the polynomials of `symcomp/codegen/functions/elementary.h` and print them as C.

Each is interpolated at Chebyshev's points with 60 digits, which comes within a small factor of the
best polynomial of its degree.
"""

import mpmath

mpmath.mp.dps = 60

HALF_LOG2 = mpmath.log(2) / 2 * mpmath.mpf("1.001")
# tanh of floats is a polynomial below this.
SMALL = mpmath.mpf("0.5625")
LARGEST_SQUARE = ((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) ** 2 * mpmath.mpf("1.001")


def exponential(r):
    """(exp(r) - 1 - r) / r^2."""
    if abs(r) < mpmath.mpf("1e-20"):
        return mpmath.mpf(1) / 2 + r / 6
    return (mpmath.expm1(r) - r) / r**2


def logarithm(square):
    """(2 atanh(s) / s - 2) / s^2, a function of s^2."""
    s = mpmath.sqrt(square)
    return (2 * mpmath.atanh(s) / s - 2) / square


def hyperbolic_tangent(square):
    """(tanh(y) / y - 1) / y^2, a function of y^2."""
    y = mpmath.sqrt(square)
    return (mpmath.tanh(y) / y - 1) / square


def fit(function, low, high, degree):
    """Return the coefficients of a polynomial, the constant first."""
    count = degree + 1
    nodes = [mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    points = [(low + high) / 2 + (high - low) / 2 * node for node in nodes]
    matrix = mpmath.matrix(count, count)
    for i, x in enumerate(points):
        for j in range(count):
            matrix[i, j] = x**j
    return list(mpmath.lu_solve(matrix, mpmath.matrix([function(x) for x in points])))


def main():
    """Print every polynomial."""
    for name, degree in (("double", 9), ("float", 4)):
        coefficients = fit(exponential, -HALF_LOG2, HALF_LOG2, degree)
        print(f"exp, {name}:", ", ".join(float(c).hex() for c in coefficients))
    for name, degree in (("double", 6), ("float", 3)):
        coefficients = fit(logarithm, mpmath.mpf("1e-30"), LARGEST_SQUARE, degree)
        print(f"log, {name}:", ", ".join(float(c).hex() for c in coefficients))
    coefficients = fit(hyperbolic_tangent, mpmath.mpf("1e-30"), SMALL**2, 4)
    print("tanh, float:", ", ".join(float(c).hex() for c in coefficients))


if __name__ == "__main__":
    main()
