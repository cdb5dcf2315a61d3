/* Derivatives of f(x) / x, for both types as in `stable.h`: around 0 by series whose terms have one
   sign, so that compilers vectorize them. */

/* The derivative of (exp(x) - 1) / x: the sum of (k + 1) x^k / (k + 2)!. */
INLINE REAL F(r_expm1_over_slope)(REAL x)
{
    int large = x > (sizeof(REAL) == 8 ? C(700) : C(80));
    REAL root = F(m_exp)(large ? x / 2 : x), series = 0;
    REAL far = large ? root * ((x - 1) / x) / x * root : (root * (x - 1) + 1) / x / x;
#define NEXT(k, factorial) series = x * series + C(k) / C(factorial);
    if (sizeof(REAL) == 8) {
        NEXT(22, 25852016738884976640000.0) NEXT(21, 1124000727777607680000.0) NEXT(20, 51090942171709440000.0)
        NEXT(19, 2432902008176640000.0) NEXT(18, 121645100408832000.0) NEXT(17, 6402373705728000.0)
        NEXT(16, 355687428096000.0) NEXT(15, 20922789888000.0) NEXT(14, 1307674368000.0)
    }
    NEXT(13, 87178291200.0) NEXT(12, 6227020800.0) NEXT(11, 479001600.0) NEXT(10, 39916800.0) NEXT(9, 3628800.0) NEXT(8, 362880.0)
    NEXT(7, 40320.0) NEXT(6, 5040.0) NEXT(5, 720.0) NEXT(4, 120.0) NEXT(3, 24.0) NEXT(2, 6.0) NEXT(1, 2.0)
#undef NEXT
    return F(fabs)(x) < C(1.5) ? series : x == -INFINITY ? 0 : far;
}

/* The derivative of tanh(x) / x: -(sinh(2 x) - 2 x) / (2 x^2 cosh(x)^2). */
INLINE REAL F(r_tanh_over_slope)(REAL x)
{
    REAL a = F(fabs)(x), e = F(m_exp)(-2 * a), total = 1 + e, square = 4 * x * x, series = 0;
    REAL far = (4 * (a < 99 ? a : 99) * (e / total / total) - (1 - e) / total) / a / a;
#define NEXT(factorial) series = square * series + C(1) / C(factorial);
    if (sizeof(REAL) == 8) {
        NEXT(8841761993739701954543616000000.0) NEXT(10888869450418352160768000000.0)
        NEXT(15511210043330985984000000.0) NEXT(25852016738884976640000.0) NEXT(51090942171709440000.0)
    }
    NEXT(121645100408832000.0) NEXT(355687428096000.0) NEXT(1307674368000.0) NEXT(6227020800.0) NEXT(39916800.0) NEXT(362880.0) NEXT(5040.0) NEXT(120.0) NEXT(6.0)
#undef NEXT
    return a < C(1.5) ? -16 * x * series * (e / total / total) : F(copysign)(far, -x);
}

/* The derivative of erf(x) / x: -2 / sqrt(pi) exp(-x^2) times the sum of 2^k x^(2k-1) / (2k + 1)!!. */
INLINE REAL F(r_erf_over_slope)(REAL x)
{
    REAL square = x * x, bell = C(1.1283791670955126) * F(r_bell)(x), series = 0;
    REAL far = (bell - F(r_erf)(x) / x) / x;
#define NEXT(k, odd_factorial) series = square * series + C(k) / C(odd_factorial);
    if (sizeof(REAL) == 8) {
        NEXT(131072.0, 221643095476699771875.0) NEXT(65536.0, 6332659870762850625.0)
        NEXT(32768.0, 191898783962510625.0) NEXT(16384.0, 6190283353629375.0) NEXT(8192.0, 213458046676875.0)
        NEXT(4096.0, 7905853580625.0) NEXT(2048.0, 316234143225.0)
    }
    NEXT(1024.0, 13749310575.0) NEXT(512.0, 654729075.0) NEXT(256.0, 34459425.0) NEXT(128.0, 2027025.0)
    NEXT(64.0, 135135.0) NEXT(32.0, 10395.0) NEXT(16.0, 945.0) NEXT(8.0, 105.0) NEXT(4.0, 15.0) NEXT(2.0, 3.0)
#undef NEXT
    return F(fabs)(x) < 1 ? -x * series * bell : far;
}

/* The derivative of log(1 + x) / x: (2 v sum(v^(2k-2) / (4 k^2 - 1)) - 1) / (2 (1 + x)), for
   v = x / (2 + x), of which log(1 + x) is 2 atanh(v). */
INLINE REAL F(r_log1p_over_slope)(REAL x)
{
    REAL v = x / (2 + x), square = v * v, series = 0;
    REAL far = (1 / (1 + x) - F(m_log1p)(x) / x) / x;
#define NEXT(k) series = square * series + 1 / C(4 * k * k - 1);
    if (sizeof(REAL) == 8) {
        NEXT(34) NEXT(33) NEXT(32) NEXT(31) NEXT(30) NEXT(29) NEXT(28) NEXT(27) NEXT(26) NEXT(25)
        NEXT(24) NEXT(23) NEXT(22) NEXT(21) NEXT(20) NEXT(19) NEXT(18) NEXT(17) NEXT(16) NEXT(15)
    }
    NEXT(14) NEXT(13) NEXT(12) NEXT(11) NEXT(10) NEXT(9) NEXT(8)
    NEXT(7) NEXT(6) NEXT(5) NEXT(4) NEXT(3) NEXT(2) NEXT(1)
#undef NEXT
    return (x > C(-0.6)) & (x < 3) ? (2 * v * series - 1) / (2 * (1 + x)) : far;
}

/* log(1 + x) / x - 1 / (1 + x), which is -x times the slope above. */
INLINE REAL F(r_log1p_drop)(REAL x)
{
    REAL far = F(m_log1p)(x) / x - 1 / (1 + x);
    return F(fabs)(x) < C(1e15) ? -x * F(r_log1p_over_slope)(x) : far;
}
