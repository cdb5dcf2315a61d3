/* Included twice, as stable.h: the rounding errors of sums and products. */

/* The rounding error of a + b = s; NaN where s is not finite. */
INLINE REAL F(sum_rest)(REAL a, REAL b, REAL s)
{
    REAL t = s - a;
    return (a - (s - t)) + (b - t);
}

INLINE REAL F(finite_or_0)(REAL x)
{
    return F(fabs)(x) < INFINITY ? x : 0;
}

INLINE REAL F(sum_error)(REAL a, REAL b, REAL s)
{
    return F(finite_or_0)(F(sum_rest)(a, b, s));
}

INLINE REAL F(high_half)(REAL x)
{
    REAL big = SPLITTER * x;
    return big - (big - x);
}

/* The rounding error of a b = p, by one instruction or by halves (Dekker, 1971); 0 where that is not
   finite. */
INLINE REAL F(product_error)(REAL a, REAL b, REAL p)
{
#if defined(__FMA__) || defined(__CUDACC__)
    REAL e = F(__builtin_fma)(a, b, -p);
#else
    REAL a1 = F(high_half)(a), b1 = F(high_half)(b), a2 = a - a1, b2 = b - b1;
    REAL e = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
    return F(finite_or_0)(e);
}
