/* Complex numbers, included twice as stable.h is: arithmetic by parts, as in NumPy, without
   special handling of infinities; functions of the C library. */
#ifndef APART
/* GCC 12 fuses alternating additions and subtractions of products into instructions that round
   once, even with contraction off; it does not with this barrier. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define APART(x) __builtin_assoc_barrier(x)
#else
#define APART(x) (x)
#endif
#endif

#define COMPLEX REAL _Complex

/* Functions of the C library. */
extern REAL F(creal)(COMPLEX);
extern REAL F(cimag)(COMPLEX);
extern COMPLEX F(cacos)(COMPLEX);
extern COMPLEX F(cacosh)(COMPLEX);
extern COMPLEX F(casin)(COMPLEX);
extern COMPLEX F(casinh)(COMPLEX);
extern COMPLEX F(catan)(COMPLEX);
extern COMPLEX F(catanh)(COMPLEX);
extern COMPLEX F(ccos)(COMPLEX);
extern COMPLEX F(ccosh)(COMPLEX);
extern COMPLEX F(cexp)(COMPLEX);
extern COMPLEX F(clog)(COMPLEX);
extern COMPLEX F(conj)(COMPLEX);
extern COMPLEX F(csin)(COMPLEX);
extern COMPLEX F(csinh)(COMPLEX);
extern COMPLEX F(csqrt)(COMPLEX);
extern COMPLEX F(ctan)(COMPLEX);
extern COMPLEX F(ctanh)(COMPLEX);
extern COMPLEX F(cpow)(COMPLEX, COMPLEX);

INLINE COMPLEX F(complex_of)(REAL x, REAL y)
{
    COMPLEX z;
    ((REAL *)&z)[0] = x;
    ((REAL *)&z)[1] = y;
    return z;
}

INLINE COMPLEX F(c_mul)(COMPLEX x, COMPLEX y)
{
    REAL a = F(creal)(x), b = F(cimag)(x), c = F(creal)(y), d = F(cimag)(y);
    return F(complex_of)(APART(a * c) - APART(b * d), APART(a * d) + APART(b * c));
}

/* For partial products: an accumulator without factors yet is 1, and changes nothing. */
INLINE COMPLEX F(c_times)(COMPLEX x, COMPLEX y)
{
    return x == 1 ? y : y == 1 ? x : F(c_mul)(x, y);
}

/* Divide by the larger part of y first, which keeps everything in range (R. L. Smith, 1962). */
INLINE COMPLEX F(c_div)(COMPLEX x, COMPLEX y)
{
    REAL a = F(creal)(x), b = F(cimag)(x), c = F(creal)(y), d = F(cimag)(y);
    if (F(fabs)(c) >= F(fabs)(d)) {
        if (c == 0 && d == 0)
            return F(complex_of)(a / F(fabs)(c), b / F(fabs)(c));
        REAL ratio = d / c, scale = 1 / (c + d * ratio);
        return F(complex_of)((a + APART(b * ratio)) * scale, (b - APART(a * ratio)) * scale);
    }
    REAL ratio = c / d, scale = 1 / (d + c * ratio);
    return F(complex_of)((APART(a * ratio) + b) * scale, (APART(b * ratio) - a) * scale);
}

INLINE COMPLEX F(c_reciprocal)(COMPLEX x)
{
    return F(c_div)(F(complex_of)(1, 0), x);
}

/* Small integer powers by products, which lose less than logarithms; 0 has powers only for
   positive real parts, as in NumPy. */
INLINE COMPLEX F(c_pow)(COMPLEX x, COMPLEX y)
{
    REAL real = F(creal)(y), far = F(fabs)(real);
    COMPLEX power = F(complex_of)(1, 0);
    if (y == 0)
        return power;
    if (x == 0)
        return real > 0 ? F(complex_of)(0, 0) : F(complex_of)(NAN, NAN);
    if (F(cimag)(y) != 0 || far >= 100 || far != F(trunc)(far))
        return F(cpow)(x, y);
    for (int n = (int)far; n; n >>= 1) {
        if (n & 1)
            power = F(c_mul)(power, x);
        x = F(c_mul)(x, x);
    }
    return real < 0 ? F(c_reciprocal)(power) : power;
}

INLINE REAL F(c_abs)(COMPLEX x)
{
    return F(hypot)(F(creal)(x), F(cimag)(x));
}

INLINE REAL F(c_angle)(COMPLEX x)
{
    return F(atan2)(F(cimag)(x), F(creal)(x));
}

INLINE int F(c_isnan)(COMPLEX x)
{
    REAL a = F(creal)(x), b = F(cimag)(x);
    return (a != a) | (b != b);
}

INLINE int F(c_isinf)(COMPLEX x)
{
    return (F(fabs)(F(creal)(x)) == INFINITY) | (F(fabs)(F(cimag)(x)) == INFINITY);
}

INLINE int F(c_isfinite)(COMPLEX x)
{
    return (F(fabs)(F(creal)(x)) < INFINITY) & (F(fabs)(F(cimag)(x)) < INFINITY);
}

/* Compare the real parts, then the imaginary ones; NaN is not ordered. */
INLINE int F(c_gt)(COMPLEX x, COMPLEX y)
{
    REAL a = F(creal)(x), b = F(cimag)(x), c = F(creal)(y), d = F(cimag)(y);
    return ((a > c) & (b == b) & (d == d)) | ((a == c) & (b > d));
}

INLINE int F(c_ge)(COMPLEX x, COMPLEX y)
{
    REAL a = F(creal)(x), b = F(cimag)(x), c = F(creal)(y), d = F(cimag)(y);
    return ((a > c) & (b == b) & (d == d)) | ((a == c) & (b >= d));
}

INLINE COMPLEX F(c_maximum)(COMPLEX x, COMPLEX y)
{
    return F(c_ge)(x, y) | F(c_isnan)(x) ? x : y;
}

INLINE COMPLEX F(c_minimum)(COMPLEX x, COMPLEX y)
{
    return F(c_ge)(y, x) | F(c_isnan)(x) ? x : y;
}

INLINE COMPLEX F(c_sign)(COMPLEX x)
{
    REAL a = F(creal)(x), b = F(cimag)(x), size = F(hypot)(a, b);
    int far_a = F(fabs)(a) == INFINITY, far_b = F(fabs)(b) == INFINITY;
    if (size != size || (far_a && far_b))
        return F(complex_of)(NAN, NAN);
    if (far_a || far_b)
        return F(complex_of)(far_a ? F(copysign)(1, a) : 0, far_b ? F(copysign)(1, b) : 0);
    return size == 0 ? F(complex_of)(0, 0) : F(complex_of)(a / size, b / size);
}

INLINE COMPLEX F(c_rint)(COMPLEX x)
{
    return F(complex_of)(F(rint)(F(creal)(x)), F(rint)(F(cimag)(x)));
}

INLINE COMPLEX F(c_scaled)(COMPLEX x, REAL factor)
{
    return F(complex_of)(F(creal)(x) * factor, F(cimag)(x) * factor);
}

INLINE COMPLEX F(c_log1p)(COMPLEX x)
{
    REAL a = F(creal)(x) + 1, b = F(cimag)(x);
    return F(complex_of)(F(log)(F(hypot)(a, b)), F(atan2)(b, a));
}

INLINE COMPLEX F(c_expm1)(COMPLEX x)
{
    REAL a = F(creal)(x), b = F(cimag)(x), s = F(m_sin)(b / 2);
    return F(complex_of)(F(expm1)(a) * F(m_cos)(b) - 2 * s * s, F(exp)(a) * F(m_sin)(b));
}

INLINE COMPLEX F(sum_error_c)(COMPLEX a, COMPLEX b, COMPLEX s)
{
    return F(complex_of)(F(sum_error)(F(creal)(a), F(creal)(b), F(creal)(s)),
                         F(sum_error)(F(cimag)(a), F(cimag)(b), F(cimag)(s)));
}

#undef COMPLEX
