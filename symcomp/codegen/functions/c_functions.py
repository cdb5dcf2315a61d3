"""Transcendental functions in C: for each row, the type of its arguments and its C expression.

Functions with the prefix m_ are those of `elementary.h`, with g_ of `gamma.h`,
`gamma_ratios.h` and `incomplete_gamma.h`, with e_ of `special.h`, `extended.h`,
`series_remainders.h` and `product_remainders.h`, with d_ of `differences.h`, with p_ of
`log_sums.h`; the others are C's own, or of `stable.h`.
"""

from __future__ import annotations

_LIBRARY = {
    "exp2": "exp2{s}", "log2": "log2{s}", "log10": "log10{s}",
    "arcsin": "asin{s}", "arccos": "acos{s}", "arctan": "atan{s}", "sinh": "sinh{s}",
    "cosh": "cosh{s}", "arcsinh": "asinh{s}", "arccosh": "acosh{s}", "arctanh": "atanh{s}",
    "exp": "m_exp{s}", "expm1": "m_expm1{s}", "log": "m_log{s}", "log1p": "m_log1p{s}",
    "tanh": "m_tanh{s}",
}  # fmt: skip
_TRIGONOMETRIC = ("sin", "cos", "tan")
_STABLE = (
    "sigmoid", "softplus", "logit", "log1mexp", "log_sigmoid", "xlogx", "xlogx1p",
    "entropy_of_two", "sech_squared",
    "logcosh", "one_minus_cos", "one_minus_cos_over_square", "x_over_expm1",
    "sqrt1p_minus_sqrt", "sqrt1pm1", "hypotm1", "log1p_square",
    "over_one_plus_square", "bell", "normal_pdf", "erf", "erfc", "own_ratio", "over_size",
    "half_tangent", "odds_share", "log1p_drop",
)  # fmt: skip
_STABLE_OF_TWO = (
    "share", "exp_gap", "xlogy", "xlog1py", "log_mul", "log_div", "exp_of_sum",
    "square_difference", "sqrt_difference", "hypot_minus", "power_of_log", "lowered_power",
    "leg", "over_squares", "product_of_legs", "square_contrast", "legs_over_square", "times_exp",
    "height", "hypot_over", "parallel", "log1p_square_ratio", "power_slope",
)  # fmt: skip
_PRODUCTS = ("times_over", "over_both", "times_three", "times_two_exp")
_DIFFERENCES = (
    "sigmoid_slope", "sech", "log_cos", "log1m_square", "one_minus_erf_squared", "arcsin_of_root",
    "x_over_sinh", "log_mantissa", "log_exponent",
)  # fmt: skip
_DIFFERENCES_OF_TWO = (
    "share_slope", "sigmoid_difference", "softplus_difference", "log1p_ratio", "log_gap",
    "log_difference", "cube_difference",
    "exp_of_product", "exp_times_sigmoid", "share_difference", "one_plus_exp_ratio",
    "expm1_ratio", "exp_over_expm1", "exp_of_sum_rest", "product_rest",
    "log_rest", "exponential_rest", "exp_with_rest", "xlogx_over_sum",
    "squares_over_sum", "slope_of_squares",
)  # fmt: skip
_SPECIAL = (
    "erfcx", "ierfcx", "xerfcx", "xerfcx_slope",
    "log_erfc", "ndtr", "log_ndtr", "exp_moment_ratio", "exp_minus_cos",
    "log_half_erfc", "coth_minus_inverse", "log1p_integral",
)  # fmt: skip
_SPECIAL_OF_TWO = ("logaddexp", "logdiffexp", "log_of_pow", "powm1", "kl_div")
_GAMMA = ("gamma", "gammaln", "log_of_gamma", "psi", "tri_gamma")
_GAMMA_OF_TWO = (
    "beta", "betaln", "digamma_increment", "gamma_ratio", "gammainc_der", "inverse_poch",
    "log_gamma_ratio", "log_poch", "poch", "polygamma", "tri_gamma_increment",
)  # fmt: skip

# Functions that are called where ``guarded`` needs them, and not for vectors.
RARE = ("cut_exp", "cut_exp_rest", "plus_log")

FUNCTIONS: dict[str, tuple[str, str]] = {
    **{name: ("loop", f"{function}(x)") for name, function in _LIBRARY.items()},
    **{name: ("result", f"m_{name}{{s}}(x)") for name in _TRIGONOMETRIC},
    "arctan2": ("loop", "atan2{s}(x, y)"),
    "hypot": ("loop", "m_hypot{s}(x, y)"),
    **{name: ("result", f"r_{name}{{s}}(x)") for name in _STABLE},
    **{name: ("result", f"r_{name}{{s}}(x, y)") for name in _STABLE_OF_TWO},
    **{name: ("result", f"r_{name}{{s}}(x, y, w)") for name in _PRODUCTS},
    **{name: ("double", f"d_{name}(x)") for name in _DIFFERENCES},
    **{name: ("double", f"d_{name}(x, y)") for name in _DIFFERENCES_OF_TWO},
    "by_squares": ("double", "d_by_squares(x, y, w)"),
    "known_difference": ("double", "w"),
    "defined_difference": ("double", "w - w == 0 || x - y != x - y ? w : x - y"),
    "times_exp_with_rest": ("double", "d_times_exp_with_rest(x, y, w, v, u)"),
    "difference_rest": ("double", "d_difference_rest(x, y, w)"),
    **{name: ("double", f"p_{name}(x, y, w, v)") for name in RARE},
    "shared_mean": ("double", "d_shared_mean(x, y, w, v)"),
    "product_of_powers": ("double", "d_product_of_powers(x, y, w, v, u)"),
    "power_of_parts": ("double", "d_power_of_parts(x, y, w, v)"),
    "sinc": ("result", "r_sinc{s}(x)"),
    "one_plus_log": ("double", "r_one_plus_log(x)"),
    "one_plus_log1p": ("double", "r_one_plus_log1p(x)"),
    "logexpm1": ("double", "r_logexpm1(x)"),
    **{name: ("double", f"g_{name}(x)") for name in _GAMMA},
    **{name: ("double", f"g_{name}(x, y)") for name in _GAMMA_OF_TWO},
    **{name: ("double", f"e_{name}(x)") for name in _SPECIAL},
    **{name: ("double", f"e_{name}(x, y)") for name in _SPECIAL_OF_TWO},
    "digamma_of_sum": ("double", "g_psi_of_sum(x, y)"),
}

_OF_C = {
    "exp": "cexp", "log": "clog", "sin": "csin", "cos": "ccos", "tan": "ctan", "sinh": "csinh",
    "cosh": "ccosh", "tanh": "ctanh", "arcsin": "casin", "arccos": "cacos", "arctan": "catan",
    "arcsinh": "casinh", "arccosh": "cacosh", "arctanh": "catanh", "log1p": "c_log1p",
    "expm1": "c_expm1",
}  # fmt: skip

# Functions of complex numbers.
OF_COMPLEX: dict[str, str] = {
    **{name: f"{function}{{s}}(x)" for name, function in _OF_C.items()},
    "log10": "c_scaled{s}(clog{s}(x), 0.43429448190325182765)",
    "log2": "c_scaled{s}(clog{s}(x), 1.44269504088896340736)",
    "exp2": "cexp{s}(c_scaled{s}(x, 0.69314718055994530942))",
}
