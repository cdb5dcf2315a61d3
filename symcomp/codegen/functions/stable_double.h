/* Functions with constants of two parts, which are computed in double for every type. */

/* Around its root, log 2, as log(2 exp(x - log 2) - 1). */
INLINE double r_logexpm1(double x)
{
    double gap = (clip_f(x, 0.25, 1.5) - 0.6931471805599453) - 2.319046813846299e-17;
    double near = m_log1p(2 * m_expm1(gap));
    double large = x + m_log1p(-m_exp(-fabs(x))), small = m_log(m_expm1(x >= 1.5 ? 1.5 : x));
    return (x > 0.25) & (x < 1.5) ? near : x >= 1.5 ? large : small;
}

/* Around its root, 1 / e, as log1p of the distance. */
INLINE double r_one_plus_log(double x)
{
    double near = clip_f(x, 0.2, 0.7);
    double inner = m_log1p(((near - 0.36787944117144233) + 1.2428753672788363e-17) *
                           2.718281828459045);
    return near == x ? inner : 1 + m_log(x);
}

/* 1 + x is exact below -0.5, where the root is. */
INLINE double r_one_plus_log1p(double x)
{
    double far = 1 + m_log1p(x), near = r_one_plus_log(1 + x);
    return x < -0.5 ? near : far;
}
