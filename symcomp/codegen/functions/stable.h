/* Included twice, for REAL double and float: F(name) is name or namef, C(x) a constant of that
   type. */

INLINE REAL F(clip_f)(REAL x, REAL low, REAL high)
{
    REAL raised = (x > low) | (x != x) ? x : low;
    REAL between = (raised < high) | (raised != raised) ? raised : high;
    return (low > high) & (x < low) ? low : between;
}

INLINE REAL F(mod_f)(REAL x, REAL y)
{
    REAL rest = F(fmod)(x, y);
    if (y == 0)
        return rest;
    if (rest == 0)
        return F(copysign)(C(0), y);
    return (y < 0) != (rest < 0) ? rest + y : rest;
}

INLINE REAL F(floor_div_f)(REAL x, REAL y)
{
    if (y == 0)
        return x / y;
    REAL rest = F(fmod)(x, y), quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return F(copysign)(C(0), x / y);
    REAL whole = F(floor)(quotient);
    return quotient - whole > C(0.5) ? whole + 1 : whole;
}

/* Adds the number below 1/2: adding 1/2 itself would round that number up. */
INLINE REAL F(round_away)(REAL x)
{
    return F(trunc)(x + F(copysign)(C(0.5) - EPSILON / 4, x));
}

/* exp(c x^2) as if the exponent were not rounded; c is a power of two, or minus one. */
INLINE REAL F(exp_square)(REAL x, REAL c)
{
    REAL square = x * x;
    return F(m_exp)(c * square) * (1 + c * F(product_error)(x, x, square));
}

/* exp(x) - 1 - x; for |x| < 1.75 by its series, whose tail is below an eighth of an EPSILON. */
INLINE REAL F(r_expm1_minus)(REAL x)
{
    REAL series = 0, far = F(m_exp)(x) - 1 - x;
#define NEXT(factorial) series = x * series + C(1) / C(factorial);
    if (sizeof(REAL) == 8) {
        NEXT(25852016738884976640000.0) NEXT(1124000727777607680000.0) NEXT(51090942171709440000.0)
        NEXT(2432902008176640000.0) NEXT(121645100408832000.0) NEXT(6402373705728000.0) NEXT(355687428096000.0)
        NEXT(20922789888000.0) NEXT(1307674368000.0) NEXT(87178291200.0)
    }
    NEXT(6227020800.0) NEXT(479001600.0) NEXT(39916800.0) NEXT(3628800.0) NEXT(362880.0)
    NEXT(40320.0) NEXT(5040.0) NEXT(720.0) NEXT(120.0) NEXT(24.0) NEXT(6.0)
#undef NEXT
    return F(fabs)(x) < C(1.75) ? x * (x * (x * series + C(0.5))) : far;
}

/* Where the exponential is below 1/2, its quotient has a smaller rounding error than the sum. */
INLINE REAL F(r_sigmoid)(REAL x)
{
    REAL small = F(m_exp)(-F(fabs)(x)), share = (x >= 0 ? 1 : small) / (1 + small);
    return x < C(-0.7) ? small - small * share : share;
}

INLINE REAL F(r_softplus)(REAL x)
{
    REAL positive = (x >= 0) | (x != x) ? x : 0;
    return positive + F(m_log1p)(F(m_exp)(-F(fabs)(x)));
}

INLINE REAL F(r_log_sigmoid)(REAL x)
{
    return -F(r_softplus)(-x);
}

INLINE REAL F(r_logit)(REAL x)
{
    REAL near = 2 * F(atanh)(2 * F(clip_f)(x, C(0.25), C(0.75)) - 1);
    REAL far = F(m_log)(x) - F(m_log1p)(-x);
    return F(fabs)(x - C(0.5)) <= C(0.25) ? near : far;
}

/* Maechler (2012), "Accurately computing log(1 - exp(-|a|))": the switch is at log 2. */
INLINE REAL F(r_log1mexp)(REAL x)
{
    REAL near = F(m_log)(-F(m_expm1)(x)), far = F(m_log1p)(-F(m_exp)(x));
    return x > C(-0.6931471805599453) ? near : far;
}

INLINE REAL F(r_xlogy)(REAL x, REAL y)
{
    REAL z = x * F(m_log)(y);
    return (x == 0) & (y == y) ? 0 : z;
}

INLINE REAL F(r_xlog1py)(REAL x, REAL y)
{
    REAL z = x * F(m_log1p)(y);
    return (x == 0) & (y == y) ? 0 : z;
}

INLINE REAL F(r_xlogx)(REAL x)
{
    return F(r_xlogy)(x, x);
}

INLINE REAL F(r_xlogx1p)(REAL x)
{
    return F(r_xlog1py)(1 + x, x);
}

INLINE REAL F(r_entropy_of_two)(REAL x)
{
    return F(r_xlogx)(x) + F(r_xlogx1p)(-x);
}

INLINE REAL F(r_sech_squared)(REAL x)
{
    REAL e = F(m_exp)(-F(fabs)(x)), z = 2 * e / (1 + e * e);
    return z * z;
}

INLINE REAL F(r_logcosh)(REAL x)
{
    REAL a = F(fabs)(x), half = F(sinh)((a < 1 ? a : 1) / 2);
    REAL far = a - (C(0.6931471805599453) - F(m_log1p)(F(m_exp)(-2 * a)));
    REAL near = F(m_log1p)(2 * half * half);
    return a < 1 ? near : far;
}

INLINE REAL F(r_one_minus_cos)(REAL x)
{
    REAL s = F(m_sin)(x / 2);
    return 2 * s * s;
}

INLINE REAL F(r_one_minus_cos_over_square)(REAL x)
{
    REAL half = x / 2, ratio = F(m_sin)(half) / half;
    return half == 0 ? C(0.5) : ratio * ratio / 2;
}

/* From 40 on the 1 is negligible; the square root is squared, as exp(x) may overflow. */
INLINE REAL F(r_x_over_expm1)(REAL x)
{
    REAL near = x / F(m_expm1)(x), half = F(m_exp)(-x / 2), far = x * half * half;
    far = x == INFINITY ? 0 : far;
    return x == 0 ? 1 : x > 40 ? far : near;
}

INLINE REAL F(r_own_ratio)(REAL x)
{
    return x / x;
}

INLINE REAL F(r_over_size)(REAL x)
{
    return x / F(fabs)(x);
}

INLINE REAL F(r_sqrt1p_minus_sqrt)(REAL x)
{
    return 1 / (F(sqrt)(1 + x) + F(sqrt)(x));
}

INLINE REAL F(r_sqrt1pm1)(REAL x)
{
    return x == INFINITY ? x : x / (1 + F(sqrt)(1 + x));
}

INLINE REAL F(r_hypot_minus)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    return (x > 0) & (z < INFINITY) ? y * (y / (z + x)) : z - x;
}

INLINE REAL F(r_hypotm1)(REAL x)
{
    return F(r_hypot_minus)(1, x);
}

/* x / (1 + sqrt(1 + x^2)). */
INLINE REAL F(r_half_tangent)(REAL x)
{
    return x / (1 + F(m_hypot)(x, 1));
}

/* x / (1 + x), 1 at both infinities. */
INLINE REAL F(r_odds_share)(REAL x)
{
    return F(fabs)(x) == INFINITY ? 1 : x / (1 + x);
}

INLINE REAL F(r_power_of_log)(REAL x, REAL y)
{
    int undefined = (x < 0) | ((y == 0) & ((x == 0) | (x == INFINITY))) | ((x == 1) & (F(fabs)(y) == INFINITY));
    return undefined ? NAN : F(m_pow)(x, y);
}

/* From 1/2 on y - 1 is exact; below, x^y leaves the range only where x^(y-1) does. */
INLINE REAL F(r_lowered_power)(REAL x, REAL y)
{
    int whole = (y >= C(0.5)) | (x == 0) | (F(floor)(y) == y);
    return F(m_pow)(x, whole ? y - 1 : y) / (whole ? 1 : x);
}

/* y x^(y - 1); from y = 1/2 on x^(y - 1) leaves the range only where the product does. */
INLINE REAL F(r_power_slope)(REAL x, REAL y)
{
    int whole = (y >= C(0.5)) | (x == 0) | (F(floor)(y) == y);
    REAL z = F(m_pow)(x, whole ? y - 1 : y);
    return whole ? y * z : F(fabs)(x) < 1 ? y * z / x : z / x * y;
}

INLINE REAL F(r_leg)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    return z == 0 ? 0 : x / z;
}

/* x / (x^2 + y^2). */
INLINE REAL F(r_over_squares)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    return x / z / z;
}

/* (x^2 - y^2) / (x^2 + y^2). */
INLINE REAL F(r_square_contrast)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    return ((x - y) / z) * ((x + y) / z);
}

/* x y^2 / (x^2 + y^2)^2, by the ratio of the smaller to the larger. */
INLINE REAL F(r_legs_over_square)(REAL x, REAL y)
{
    int steep = F(fabs)(x) < F(fabs)(y);
    REAL ratio = steep ? x / y : y / x, total = 1 + ratio * ratio;
    REAL z = ratio / (total * total) / (steep ? y : x);
    return steep ? z : z * ratio;
}

/* x y / (x^2 + y^2). */
INLINE REAL F(r_product_of_legs)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    return (x / z) * (y / z);
}

/* sqrt(x^2 + y^2) / x; for infinite x its limit, 1 or -1. */
INLINE REAL F(r_hypot_over)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y) / x, limit = F(copysign)(1, x) + y * 0;
    return F(fabs)(x) < INFINITY || x != x ? z : limit;
}

/* x y / sqrt(x^2 + y^2). */
INLINE REAL F(r_height)(REAL x, REAL y)
{
    REAL z = F(m_hypot)(x, y);
    int steep = F(fabs)(x) < F(fabs)(y);
    return z == 0 ? x * y : (steep ? y : x) / z * (steep ? x : y);
}

/* 1 / (1 / x + 1 / y): by the sum, unless it is 0 or leaves the range. */
INLINE REAL F(r_parallel)(REAL x, REAL y)
{
    REAL sum = x + y;
    int steep = F(fabs)(x) < F(fabs)(y), plain = (F(fabs)(sum) < INFINITY) & (sum != 0);
    REAL total = plain ? sum : 1 / x + 1 / y;
    return plain ? (steep ? y : x) / total * (steep ? x : y) : 1 / total;
}

/* Beyond the bound the square may overflow, and 1 + x^2 is x^2. */
INLINE REAL F(r_log1p_square)(REAL x)
{
    REAL bound = sizeof(REAL) == 8 ? (REAL)0x1p510 : (REAL)0x1p62, a = F(fabs)(x);
    int large = a > bound;
    REAL part = large ? a / bound : a, square = part * part;
    REAL shift = (sizeof(REAL) == 8 ? 1020 : 124) * C(0.6931471805599453);
    return large ? F(m_log)(square) + shift : F(m_log1p)(square);
}

/* log(1 + x^2 / y^2). */
INLINE REAL F(r_log1p_square_ratio)(REAL x, REAL y)
{
    REAL ratio = x / y, a = F(fabs)(x), b = F(fabs)(y);
    int apart = (F(fabs)(ratio) == INFINITY) & (a < INFINITY) & (b > 0);
    return apart ? 2 * (F(m_log)(a) - F(m_log)(b)) : F(r_log1p_square)(ratio);
}

INLINE REAL F(r_over_one_plus_square)(REAL x)
{
    REAL bound = sizeof(REAL) == 8 ? (REAL)0x1p510 : (REAL)0x1p62;
    return F(fabs)(x) > bound ? 1 / x : x / (1 + x * x);
}

/* The result underflows beyond 28 (double: 39). */
INLINE REAL F(r_bell)(REAL x)
{
    return F(exp_square)(F(clip_f)(x, -28, 28), -1);
}

INLINE REAL F(r_normal_pdf)(REAL x)
{
    return F(exp_square)(F(clip_f)(x, -39, 39), C(-0.5)) / C(2.5066282746310002);
}

INLINE REAL F(r_erf)(REAL x)
{
    return F(erf)(x);
}

INLINE REAL F(r_erfc)(REAL x)
{
    return F(erfc)(x);
}

INLINE REAL F(r_share)(REAL x, REAL y)
{
    REAL gap = x - y, e = F(sum_error)(x, -y, gap), small = F(m_exp)(-F(fabs)(gap));
    /* exp of the gap as if it were not rounded. */
    small = small * (1 - (REAL)((gap > 0) - (gap < 0)) * e);
    REAL ratio = (gap >= 0 ? 1 : small) / (1 + small);
    return x == -INFINITY ? (y != y ? y : 0) : ratio;
}

INLINE REAL F(r_exp_gap)(REAL x, REAL y)
{
    REAL gap = x - y, z = F(m_expm1)(gap);
    return F(fabs)(z) == INFINITY ? z : z + F(sum_error)(x, -y, gap) * (z + 1);
}

INLINE REAL F(r_exp_of_sum)(REAL x, REAL y)
{
    REAL s = x + y;
    /* The error of a large exponent, or NaN, must not change 0 or infinity. */
    REAL growth = 1 + F(sum_rest)(x, y, s);
    return F(m_exp)(s) * (growth > C(0.5) ? growth : C(0.5));
}

/* The logarithm of a product or quotient p with rounding error e, from logarithms `apart` where
   p leaves the range. */
INLINE REAL F(log_near_one)(REAL p, REAL e, REAL apart, REAL x, REAL y)
{
    REAL near = F(m_log1p)((p - 1) + e), far = F(m_log)(p);
    REAL size = F(fabs)(p), inside = F(fabs)(p - 1) < C(0.5) ? near : far;
    REAL outside = ((x > 0) & (y < 0)) | ((x < 0) & (y > 0)) ? NAN : apart;
    return (size == 0) | (size == INFINITY) | (size < SMALL) ? outside : inside;
}

INLINE REAL F(r_log_mul)(REAL x, REAL y)
{
    REAL p = x * y, apart = F(m_log)(F(fabs)(x)) + F(m_log)(F(fabs)(y));
    return F(log_near_one)(p, F(product_error)(x, y, p), apart, x, y);
}

INLINE REAL F(r_log_div)(REAL x, REAL y)
{
    REAL q = x / y, p = q * y, apart = F(m_log)(F(fabs)(x)) - F(m_log)(F(fabs)(y));
    /* x - q y exactly, over y. */
    REAL rest = ((x - p) - F(product_error)(q, y, p)) / y;
    return F(log_near_one)(q, rest, apart, x, y);
}

/* The sum of halves does not overflow where the difference is 0; that 0 is positive, as x*x - x*x is. */
INLINE REAL F(r_square_difference)(REAL x, REAL y)
{
    return (x - y) * (x / 2 + y / 2) * 2 + 0;
}

INLINE REAL F(r_sqrt_difference)(REAL x, REAL y)
{
    REAL total = F(sqrt)(x) + F(sqrt)(y), quotient = (x - y) / total;
    return (total == 0) | (total == INFINITY) ? F(sqrt)(x) - F(sqrt)(y) : quotient;
}

/* f(x) / x from f = f(x), where f is nearly c x for small x, so that both may be subnormal. */
INLINE REAL F(r_over_argument)(REAL f, REAL x, REAL c)
{
    return F(fabs)(x) < (sizeof(REAL) == 8 ? C(1e-150) : C(1e-19)) ? c : f / x;
}

/* (exp(x) - 1) / x, also where exp(x) overflows. */
INLINE REAL F(r_expm1_over)(REAL x)
{
    int large = x > (sizeof(REAL) == 8 ? C(700) : C(80));
    REAL f = F(m_expm1)(large ? x / 2 : x);
    REAL quotient = F(r_over_argument)(f, x, 1);
    return large ? quotient * f : quotient;
}

INLINE REAL F(r_sinc)(REAL x)
{
    REAL angle = C(3.141592653589793) * (x == 0 ? C(1e-20) : x);
    return F(m_sin)(angle) / angle;
}
