/* Partial derivatives of f(u) / (x^b y^c ...) for products u = x^a y^d ... of up to three numbers, where f is a
   function without the first terms of its series: `series_remainders.h` has its coefficients. Each number has
   three exponents, packed into one integer: a + 8 b + 64 n, where n counts the derivatives by it. Products and
   quotients are of the wider type, whose range they do not leave. With D = d/du each derivative by x is
   a u D - b - (those before) over x. */
#define MOST_PRODUCT_FACTORS 3

struct product_factor {
    WIDER x;
    int exponent, divisor, order;
};

INLINE struct product_factor product_factor(int packed, WIDER x)
{
    struct product_factor f = {x, packed & 7, packed >> 3 & 7, packed >> 6};
    return f;
}

/* x^n for whole n, 1 for n = 0. */
INLINE WIDER whole_power(WIDER x, int n)
{
    WIDER power = 1;
    for (int k = n < 0 ? -n : n; k > 0; k--)
        power *= x;
    return n < 0 ? 1 / power : power;
}

/* The number by which the derivatives multiply u^k. */
INLINE WIDER monomial_slope(const struct product_factor *f, int k)
{
    WIDER slope = 1;
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        for (int j = 0; j < f[i].order; j++)
            slope *= f[i].exponent * k - f[i].divisor - j;
    return slope;
}

/* The numbers s_j for which the derivatives of f are the sum of s_j u^j D^j f. */
INLINE void derivative_weights(const struct product_factor *f, WIDER *s)
{
    int n = 0;
    s[0] = 1;
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        for (int j = 0; j < f[i].order; j++, n++) {
            s[n + 1] = 0;
            for (int k = n + 1; k >= 0; k--)
                s[k] = (f[i].exponent * k - f[i].divisor - j) * s[k] + (k ? f[i].exponent * s[k - 1] : 0);
        }
}

/* The rounding error of x y = p (Dekker, 1971). */
INLINE WIDER wide_product_error(WIDER x, WIDER y, WIDER p)
{
    WIDER a = WIDE_SPLITTER * x, b = WIDE_SPLITTER * y;
    WIDER x1 = a - (a - x), y1 = b - (b - y), x2 = x - x1, y2 = y - y1;
    return ((x1 * y1 - p) + x1 * y2 + x2 * y1) + x2 * y2;
}

/* The product, and its rounding error where the function needs it. */
INLINE WIDER product_of_factors(int kind, const struct product_factor *f, WIDER *rest)
{
    int periodic = kind == SERIES_SIN || kind == SERIES_COS || kind == SERIES_TAN;
    WIDER u = 1;
    *rest = 0;
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        for (int k = 0; k < f[i].exponent; k++) {
            WIDER next = u * f[i].x;
            if (periodic)
                *rest = wide_product_error(u, f[i].x, next) + *rest * f[i].x;
            u = next;
        }
    return u;
}

/* The derivatives where |u| is small, from the terms that they leave of the series. */
HELPER WIDER product_series(int kind, int terms, int order, const struct product_factor *f, WIDER u)
{
    WIDER series = 0, power = 1;
    int step = series_step(kind), first = terms + (terms - series_offset(kind)) % step;
    /* Two derivatives by each of the factors may cancel terms. */
    while (monomial_slope(f, first) * series_coefficient(kind, first) == 0 && first < terms + 2 * order + 2)
        first += step;
    for (int k = last_exponent(kind, first, terms, order, u); k >= first; k -= step)
        series = series * (step == 2 ? u * u : u) + series_coefficient(kind, k) * monomial_slope(f, k);
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        power *= whole_power(f[i].x, f[i].exponent * first - f[i].divisor - f[i].order);
    return series * power;
}

HELPER WIDER product_remainder(int kind, int terms, const struct product_factor *f)
{
    WIDER a[HIGHEST_SERIES_ORDER + 1], s[HIGHEST_SERIES_ORDER + 2], rest, sum = 0, power = 1;
    WIDER u = product_of_factors(kind, f, &rest);
    int order = 0;
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        order += f[i].order;
    if (W(fabs)(u) < series_bound(kind, terms, order))
        return product_series(kind, terms, order, f, u);
    derivative_weights(f, s);
    taylor_coefficients(kind, u, rest, order + 1, a);
    for (int k = 0; k <= order; k++) {
        sum += s[k] ? s[k] * a[k] * power : 0;
        power *= (k + 1) * u;
    }
    for (int k = 0; k < terms; k++) {
        WIDER slope = series_coefficient(kind, k) * monomial_slope(f, k);
        sum -= slope ? slope * whole_power(u, k) : 0;
    }
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++)
        sum *= whole_power(f[i].x, -f[i].divisor - f[i].order);
    return sum;
}

/* f(u + rest) - f(0), where the rest is the rounding error of u; 0 for large angles. Functions with no slope
   here depend little on it. */
INLINE double function_of_product(int kind, double u, double rest)
{
    int turns = kind == SERIES_SIN || kind == SERIES_COS || kind == SERIES_TAN;
    double one = 1 + u, z;
    if (turns && fabs(u) > 1e6)
        return 0;
    switch (kind) {
    case SERIES_EXP: z = m_expm1(u); return z + rest * (1 + z);
    case SERIES_SIN: return m_sin(u) + rest * m_cos(u);
    case SERIES_COS: return -(r_one_minus_cos(u) + rest * m_sin(u));
    case SERIES_COSH: z = sinh(u / 2); return 2 * z * (z + rest * sqrt(1 + z * z));
    case SERIES_SINH: z = sinh(u); return z + rest * sqrt(1 + z * z);
    case SERIES_TAN: z = m_tan(u); return z + rest * (1 + z * z);
    case SERIES_TANH: return m_tanh(u);
    case SERIES_LOG1P: return m_log1p(u) + rest / one;
    case SERIES_ARCTAN: return atan(u);
    case SERIES_ARCTANH: return atanh(u) + rest / (one * (1 - u));
    case SERIES_ARCSINH: return asinh(u);
    case SERIES_ARCSIN: return asin(u) + rest / sqrt(one * (1 - u));
    default: return r_erf(u);
    }
}

/* Whether no factor of an ordinary number is lost to the ends of the range; not so for NaN. */
INLINE int is_moderate(double x)
{
    return fabs(x) > 1e-290 && fabs(x) < 1e290;
}

/* Ordinary values need no wider type: the quotient of doubles, 0 if it is not moderate. */
INLINE double moderate_quotient(int kind, const struct product_factor *f)
{
    double u = 1, rest = 0, v = 1;
    for (int i = 0; i < MOST_PRODUCT_FACTORS; i++) {
        double x = (double)f[i].x;
        for (int k = 0; k < f[i].exponent; k++) {
            double next = u * x;
            rest = product_error(u, x, next) + rest * x;
            u = next;
        }
        for (int k = 0; k < f[i].divisor; k++)
            v *= x;
    }
    double value = function_of_product(kind, u, rest) / v;
    return is_moderate(u) & is_moderate(v) & is_moderate(value) ? value : 0;
}

INLINE double e_product_remainder(int kind, int terms, int p, int q, int r, double x, double y, double z)
{
    struct product_factor f[] = {product_factor(p, x), product_factor(q, y), product_factor(r, z)};
    int even = kind == SERIES_COS || kind == SERIES_COSH;
    if (terms == 1 + even && p < 64 && q < 64 && r < 64) {
        double value = moderate_quotient(kind, f);
        if (value != 0)
            return value;
    }
    return (double)product_remainder(kind, terms, f);
}
