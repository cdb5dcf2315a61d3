"""Every rule of stabilize/: what it leaves, that values stay where the plain form has them, and are
right to 4 units in the last place where it has not.
"""

import numpy as np
import pytest

import symcomp.tensor as T
from symcomp.compile.mode import Mode
from symcomp.core.graph import FunctionGraph
from symcomp.ops.elementwise.series_remainder import series_remainder
from symcomp.ops.nnet.entropy import NegativeEntropy
from symcomp.ops.nnet.softmax import LogSumExp
from symcomp.ops.nnet.weighted_mean import WeightedMean
from symcomp.ops.reductions.stable_reduce import Centered, Norm
from symcomp.rewrite.engine import Engine
from symcomp.rewrite.linalg import LINALG_RULES
from symcomp.rewrite.phases import CANONICALIZE, STABILIZE, rewrite
from symcomp.rewrite.rule import RuleSet
from symcomp.rewrite.views import call
from symcomp.tests.exact import evaluate_exactly, units_off
from symcomp.tests.harness import variables_for
from symcomp.tests.rewrite.rules import Case, check_rule, rewritten, run, values_of

X = np.array([0.4, 1.3, 2.2])
Y = np.array([0.7, 0.2, 1.9])
LESS = X - 0.3
SIGNED = np.array([-1.2, 0.6, 2.1])
UNIT = np.array([0.2, -0.5, 0.7])
M = np.array([[0.3, -1.2, 2.2], [0.7, 1.1, -0.4]])
MEANS = np.array([[1.5, 2.5, 4.0], [0.25, 0.75, -3.0]])

# The operations that are left by power_of_product.
POWER = "abs gt log_exponent log_mantissa power_of_log power_of_parts prod prod sgn sum sum switch"


def case(rule, build, values, left, note="", rtol=1e-9, **more):
    return Case(rule, build, values, left, rtol=rtol, atol=1e-12, extremes=False, note=note, **more)


CASES = [
    case("expm1", lambda x: T.exp(x) - 1, (X,), "expm1"),
    case("expm1", lambda x: 3.0 - 3.0 * T.exp(x), (X,), "expm1 mul", note="c"),
    case("expm1", lambda x: -1.0 + 1 / T.exp(-x), (X,), "expm1", note="inverse"),
    case("erfc", lambda x: 1 - T.erf(x), (SIGNED,), "erfc"),
    case("erfc", lambda x: 0.5 + 0.5 * T.erf(x), (SIGNED,), "erfc mul neg", note="plus"),
    case("erf", lambda x: 1 - T.erfc(x), (SIGNED,), "erf"),
    case("one_minus_sigmoid", lambda x: 1 - T.sigmoid(x), (SIGNED,), "neg sigmoid"),
    case("one_plus_tanh", lambda x: 1 + T.tanh(x), (SIGNED,), "mul mul sigmoid"),
    case("one_plus_tanh", lambda x: 1 - T.tanh(x), (SIGNED,), "mul mul sigmoid", note="minus"),
    case("one_minus_tanh_squared", lambda x: 1 - T.tanh(x) ** 2, (SIGNED,), "sech_squared"),
    case("one_minus_erf_squared", lambda x: 2 - 2 * T.erf(x) ** 2, (SIGNED,),
         "mul one_minus_erf_squared"),
    case("arcsin_of_root", lambda x: T.arcsin(T.sqrt(x)), (np.abs(UNIT),), "arcsin_of_root"),
    case("one_minus_cos", lambda x: 2.0 - 2.0 * T.cos(x), (SIGNED,), "mul one_minus_cos"),
    case("compoundm1", lambda x, y: (1 + x) ** y - 1, (X, Y), "compoundm1"),
    case("compoundm1", lambda x: T.sqr(x + 1) - 1, (X,), "add mul", note="square"),
    case("hyperbolic", lambda x: T.exp(x) + T.exp(-x), (SIGNED,), "cosh mul"),
    case("hyperbolic", lambda x: (T.exp(x) - T.exp(-x)) / 2, (SIGNED,), "mul sinh true_div",
         note="sinh"),
    case("sqrt_difference", lambda x: T.sqrt(x + 1) - T.sqrt(x), (X,), "sqrt1p_minus_sqrt"),
    case("sqrt_difference", lambda x: T.sqrt(x) - T.sqrt(x + 4), (X,),
         "mul sqrt1p_minus_sqrt true_div", note="minus"),
    case("sqrt_difference", lambda x, y: T.sqrt(x) - T.sqrt(y), (X, Y), "sqrt_difference",
         note="two"),
    case("square_difference", lambda x, y: x**2 - y**2, (SIGNED, Y), "square_difference"),
    case("square_difference", lambda x: 3 * (x + 1) ** 2 - 3 * x**2, (SIGNED,), "add mul mul",
         note="shifted"),
    case("square_difference", lambda x: T.sqr(x) - 4.0, (SIGNED,), "square_difference",
         note="number"),
    case("series_remainder_of_sum", lambda x: T.log1p(x) - x, (X,), "series_remainder", rtol=1e-8),
    case("series_remainder_of_sum", lambda x: 3 * x - 3 * T.sin(x), (SIGNED,),
         "mul series_remainder", rtol=1e-8, note="sin"),
    case("series_remainder_of_sum", lambda x: T.exp(2 * x) - 2 * x - 1, (SIGNED,),
         "mul series_remainder", rtol=1e-8, note="constant"),
    case("series_remainder_of_sum", lambda x: 2 * T.sqr(T.sinh(x / 2)) - x**2 / 2, (SIGNED,),
         "series_remainder", rtol=1e-8, note="cosh"),
    case("series_remainder_of_sum", lambda x, y: T.tanh(x * y) - y * x + x**3, (X, SIGNED),
         "add mul pow series_remainder", rtol=1e-8, note="more terms"),
    case("series_remainder_of_sum", lambda x, y: call("one_minus_cos", y) - T.expm1(x) + x,
         (SIGNED, Y), "one_minus_cos series_remainder sub", rtol=1e-8, note="one of two"),
    case("exp_minus_cos", lambda x: 2 * T.exp(x) - 2 * T.cos(x), (SIGNED,), "exp_minus_cos mul"),
    case("kl_div", lambda x, y: 3 * x * call("log_div", x, y) - 3 * x + 3 * y, (X, Y),
         "kl_div mul", rtol=1e-8),
    case("kl_div", lambda x, y: y - x - y * call("log_div", y, x), (X, Y), "kl_div neg",
         rtol=1e-8, note="mirrored"),
    case("over_argument", lambda x: (2 * T.sin(x) - 2 * x * T.cos(x)) / x**3, (SIGNED,),
         "mul spherical_jn", rtol=1e-8, note="Bessel"),
    case("over_argument", lambda x: (2 * x * T.cos(2 * x) - T.sin(2 * x)) / x**2, (SIGNED,),
         "mul mul spherical_jn", rtol=1e-8, note="Bessel of a multiple"),
    case("over_argument", lambda x: call("compoundm1", 2 * x, 3.0) / x, (SIGNED,),
         "add add add mul mul mul", note="geometric sum"),
    case("over_argument", lambda x: call("compoundm1", x, 0.5) / x, (X,),
         "add add reciprocal sqrt", note="root"),
    case("over_argument", lambda x: call("by_squares", T.sqrt(1 - x), 1.0, -x) / x, (UNIT,),
         "add sqrt sub true_div", note="difference of a root"),
    case("squares_near_0", lambda x: call("square_difference", T.arctan(x), x), (SIGNED,),
         "add arctan mul series_remainder", rtol=1e-8),
    case("over_argument", lambda x: series_remainder("exp", 2, 0, x) / x**3, (SIGNED,),
         "series_remainder true_div", rtol=1e-8, note="remainder"),
    case("variance_of_moments", lambda x: T.mean(x**2, axis=1) - T.mean(x, axis=1) ** 2, (MEANS,),
         "Variance", static="full"),
    case("variance_of_moments", lambda x: T.mean(x**2) - T.mean(x) ** 2, (MEANS,), "Variance",
         note="all"),
    case("centered_twice", lambda x, y: Centered((1,))(y * Centered((1,))(x)), (M, M[:, :1]),
         "Centered mul"),
    case("sum_of_deviations",
         lambda x, y, c: (y * x + c * (x - T.mean(x, axis=1, keepdims=True))).sum(axis=1),
         (M, M, M[:, :1]), "DimShuffle DimShuffle DimShuffle add mul mul sub sum sum true_div",
         static="full"),
    case("log1p", lambda x: T.log(1 + x), (X,), "log1p"),
    case("log1p", lambda x: T.log(1 - 2 * x), (-X,), "log1p mul", note="minus"),
    case("log1p_of", lambda x: T.log1p(T.exp(x)), (SIGNED,), "softplus"),
    case("log1p_of", lambda x: T.log1p(-T.exp(x)), (-X,), "log1mexp", note="minus exp"),
    case("log1p_of", lambda x: T.log1p(-T.erf(x)), (SIGNED,), "log_erfc", note="erf",
         rtol=1e-4),
    case("log1p_of", lambda x: T.log1p(-T.sigmoid(x)), (SIGNED,), "log_sigmoid neg",
         note="sigmoid"),
    case("log1p_of", lambda x: T.log1p(T.expm1(x)), (SIGNED,), "", note="expm1"),
    case("log_of_sum", lambda x, y: T.log(T.exp(x) + T.exp(y)), (X, SIGNED), "logaddexp"),
    case("log_of_sum", lambda x, y: T.log(T.exp(x) - T.exp(y)), (X, LESS), "logdiffexp",
         note="minus"),
    case("log_of_sum", lambda x, y: T.log(2.0 * T.exp(x) + T.exp(y) + 3.0), (X, SIGNED),
         "add logaddexp logaddexp", note="three"),
    case("log_of_function", lambda x: T.log(-T.expm1(x)), (-X,), "log1mexp"),
    case("log_of_function", lambda x: T.log(T.expm1(x)), (X,), "logexpm1", note="expm1"),
    case("log_of_function", lambda x: T.log(T.gamma(x)), (X,), "log_of_gamma", note="gamma"),
    case("log_of_function", lambda x: T.log(abs(T.gamma(x))), (SIGNED,), "gammaln", note="|gamma|"),
    case("log_of_function", lambda x: T.log(T.prod(x, axis=0)), (np.abs(M),), "LogProd",
         note="prod"),
    case("log_of_product", lambda x, y: T.log(x * y), (X, Y), "log_mul"),
    case("log_of_product", lambda x, y: T.log(x / y), (X, Y), "log_div", note="quotient"),
    case("log_of_product", lambda x: T.log(x**7.0), (X,), "log mul", note="power"),
    case("log_of_product", lambda x, y: T.log(x**2 / y**2), (SIGNED, Y), "abs abs log_div mul",
         note="quotient of squares"),
    case("log_of_product", lambda x, y: T.log(x**3 * y**3), (X, Y), "log_mul mul",
         note="product of cubes"),
    case("log_of_product", lambda x: T.log(T.sqr(x)), (SIGNED,), "abs log mul", note="square"),
    case("log_of_product", lambda x, y: T.log(-(x**2) * y), (SIGNED, -Y), "log_scaled_product neg",
         note="product of three"),
    case("log_of_product", lambda x: T.log(T.sigmoid(x)), (SIGNED,), "log_sigmoid",
         note="sigmoid"),
    case("log_of_product", lambda x: T.log(T.erfc(x)), (SIGNED,), "log_erfc", note="erfc"),
    case("log_of_product", lambda x: T.log(T.erfc(x) / 2), (SIGNED,), "log_half_erfc",
         note="half of erfc"),
    case("area_sine", lambda x: T.log(call("hypot_minus", x, 1.0)), (SIGNED,), "arcsinh neg"),
    case("area_sine", lambda x: T.log(call("by_squares", T.hypot(x, 1.0), -x, 1.0)), (SIGNED,),
         "arcsinh", note="sum"),
    case("log_of_product", lambda x: T.log(T.ndtr(x)), (SIGNED,), "log_ndtr", note="ndtr"),
    case("log_of_product", lambda x: T.log(T.cosh(x)), (SIGNED,), "logcosh", note="cosh"),
    case("log_of_product", lambda x: T.log(T.softmax(x)), (M,), "LogSoftmax", note="softmax"),
    case("log_of_product", lambda x: T.log(T.sum(T.exp(x), axis=1)), (M,), "LogSumExp",
         note="sum of exp"),
    case("log_of_product", lambda x, y: T.log(T.sum(T.sqr(y) * T.exp(x))), (SIGNED, Y),
         "WeightedLogSumExp sqr", note="weighted sum of exp"),
    case("log_of_product", lambda x: T.log(T.mean(T.exp(x), axis=0)), (M,), "LogMeanExp",
         note="mean of exp", static="full"),
    case("log_of_product", lambda x: T.log((1 + x) / (1 - x)), (UNIT,), "arctanh mul",
         note="area tangent"),
    case("log_of_power", lambda x, y: T.log(x**y), (X, SIGNED), "log_of_pow"),
    case("log1p_of_ndtr", lambda x: T.log1p(-T.ndtr(x)), (SIGNED,), "log_ndtr neg"),
    case("log_softmax", lambda x: x - LogSumExp((1,))(x).dimshuffle(0, "x"), (M,), "LogSoftmax"),
    case("log_softmax", lambda x: LogSumExp((0,))(x) - x[1], (X,), "LogSoftmax Subtensor neg",
         note="element"),
    case("tanh", lambda x: T.sinh(x) / T.cosh(x), (SIGNED,), "tanh"),
    case("tanh", lambda x: T.cosh(x) ** 2.0 / T.sinh(x) ** 3.0, (SIGNED,),
         "mul sinh tanh true_div true_div", note="powers"),
    case("exp_over_expm1", lambda x: T.exp(x) / T.expm1(x) ** 2.0, (SIGNED,),
         "mul sinh sqr true_div"),
    case("tanh", lambda x: T.expm1(2 * x) / (1 + T.exp(2 * x)), (SIGNED,), "tanh", note="exp"),
    case("sigmoid", lambda x: 1 / (1 + T.exp(-x)), (SIGNED,), "sigmoid"),
    case("sigmoid", lambda x: T.exp(x) / (1 + T.exp(x)), (SIGNED,), "sigmoid", note="exp above"),
    case("sigmoid", lambda x: 1 / T.sqr(2 + 2 * T.exp(x)), (SIGNED,),
         "mul mul mul neg sigmoid", note="square"),
    case("softmax", lambda x: T.exp(x) / T.sum(T.exp(x), axis=1, keepdims=True), (M,), "Softmax"),
    case("softmax", lambda x: T.exp(x) / T.sum(T.exp(x)), (M,), "WeightedSoftmax second",
         note="both axes"),
    case("reference_weight", lambda x: 1 / (2 + T.sum(T.exp(x), axis=1)), (M,),
         "LogSumExp add mul neg sigmoid"),
    case("softmax_beside_reference",
         lambda x: 3 * T.exp(x) * T.sigmoid(-LogSumExp((1,))(x)).dimshuffle(0, "x"), (M,),
         "DimShuffle Join LogSumExp Softmax Subtensor mul second"),
    case("softmax_beside_reference",
         lambda x: T.sum(T.exp(x), axis=0) * T.sigmoid(2 - LogSumExp((0,))(x)), (M,),
         "LogSumExp mul sigmoid sub", note="sum"),
    case("softmax_of_shifted", lambda x: T.softmax(x - T.max(x, axis=1, keepdims=True), axis=1),
         (M,), "Softmax", checks_shapes=False),
    case("softmax_of_shifted",
         lambda x: T.log_softmax(3 * x - 3 * T.max(x, axis=0, keepdims=True), axis=0),
         (M,), "LogSoftmax mul", checks_shapes=False, note="multiple"),
    case("xlogx", lambda x: 3.0 * x * T.log(x), (X,), "mul xlogx"),
    case("over_argument", lambda x: T.sin(x) / x, (SIGNED,), "spherical_jn"),
    case("over_argument", lambda x: T.expm1(2 * x) / x, (SIGNED,), "mul mul series_remainder",
         note="expm1"),
    case("over_argument", lambda x: call("one_minus_cos", x) / x**2, (SIGNED,),
         "one_minus_cos_over_square", note="cos"),
    case("over_argument", lambda x: x / T.expm1(x), (SIGNED,), "x_over_expm1", note="inverse"),
    case("over_argument", lambda x: x / T.sinh(2 * x), (SIGNED,), "mul mul x_over_sinh",
         note="inverse sinh"),
    case("gamma_ratio", lambda x, y: T.gamma(x) * T.gamma(y) / T.gamma(x + y), (X, Y), "beta"),
    case("gamma_ratio", lambda x, y: T.gamma(x) / T.gamma(y), (X, Y), "gamma_ratio", note="two"),
    case("gamma_ratio", lambda x, y: T.gamma(x + y) / T.gamma(x), (X, Y), "poch", note="step"),
    case("gamma_ratio", lambda x, y: T.gamma(x) / T.gamma(x + y), (X, Y), "inverse_poch",
         note="step down"),
    case("log_of_function", lambda x, y: T.log(abs(T.beta(x, y))), (X, Y), "betaln", note="beta"),
    case("gammaln", lambda x, y: T.gammaln(x) + T.gammaln(y) - T.gammaln(x + y), (X, Y), "betaln"),
    case("gammaln", lambda x: 2 * T.gammaln(x) - T.gammaln(2 * x), (X,), "betaln", note="square"),
    case("gammaln", lambda x, y: T.gammaln(x + y) - T.gammaln(x), (X, Y), "log_poch", note="step"),
    case("psi", lambda x, y: T.psi(x + y) - T.psi(x), (X, Y), "digamma_increment"),
    case("inverse_exponential", lambda x: 1 / T.exp(x), (X,), "exp neg"),
    case("inverse_exponential", lambda x: 3 / 10**x, (X,), "mul neg pow", note="power"),
    case("inverse_exponential", lambda x, y: y / T.exp(x) ** 2.0, (X, Y), "exp mul mul",
         note="quotient"),
    case("inverse_exponential", lambda x, y: y / T.exp(x) ** 3.0, (X, Y), "exp mul neg pow",
         note="third power"),
    case("product_of_exponentials", lambda x, y: T.exp(x) * T.exp(y), (SIGNED, Y), "exp_of_sum"),
    case("product_of_exponentials", lambda x, y: 2.0 * T.exp(x) / T.exp(y), (SIGNED, Y),
         "exp_of_sum mul neg", note="quotient"),
    case("guarded", lambda x: call("guarded", x > 0, T.exp(x)) * x, (SIGNED,),
         "exp gt guarded mul"),
    case("guarded", lambda x: call("guarded", x > 0, x) / T.cosh(x), (SIGNED,),
         "cosh gt guarded true_div", note="quotient"),
    case("guarded", lambda x: call("guarded", x > 0, T.exp(x)) - call("guarded", x > 0, x),
         (SIGNED,), "exp gt guarded sub", note="difference"),
    case("times_sign", lambda x: 3 * x * T.sgn(x), (SIGNED,), "abs mul"),
    case("guarded", lambda x: -call("guarded", x > 0, x), (SIGNED,), "gt guarded neg",
         note="sign"),
    case("erfcx", lambda x: T.exp(x**2) * T.erfc(x), (SIGNED,), "erfcx"),
    case("normal_distribution", lambda x: 0.5 * T.erfc(-x / np.sqrt(2.0)), (SIGNED,), "ndtr"),
    case("normal_distribution", lambda x: T.exp(x) / T.erfc(x / np.sqrt(2.0)), (SIGNED,),
         "exp mul ndtr neg true_div", note="inverse"),
    case("hazard", lambda x: 3 * T.exp(-(x**2) / 2) / T.ndtr(x), (SIGNED,),
         "erfcx gt mul mul mul ndtr neg normal_pdf switch true_div true_div"),
    case("hazard", lambda x: T.exp(-(x**2)) / T.erfc(-x), (SIGNED,),
         "bell erfc erfcx gt neg switch true_div true_div", note="erfc"),
    case("root_of_squares", lambda x, y: T.sqrt(x**2 + y**2), (SIGNED, Y), "hypot"),
    case("root_of_squares", lambda x: T.sqrt(4.0 * T.sqr(x) + 9.0), (SIGNED,), "hypot mul",
         note="numbers"),
    case("root_of_squares", lambda x: T.sqrt(T.sum(x**2, axis=1)), (M,), "Norm", note="norm"),
    case("root_of_squares", lambda x: T.sqrt(T.mean(x**2, axis=1)), (M,), "Norm mul",
         note="mean", static="full"),
    case("root_of_squares", lambda x: T.std(x, axis=1, ddof=1), (M,),
         "DimShuffle Norm mul sub sum true_div", note="ddof",
         static="full"),
    case("root_of_squares", lambda x: T.sqrt(x**2), (SIGNED,), "abs", note="one"),
    case("root_of_squares", lambda x: T.sqrt(1 + x**4.0), (SIGNED,), "hypot sqr", note="fourth"),
    case("root_of_squares", lambda x, y: (x**2 + y**2) ** 1.5, (SIGNED, Y), "hypot pow",
         note="power"),
    case("root_of_squares", lambda x, y: T.sqrt(T.sum(x**2) / (4 * T.sum(y**2))), (M, X),
         "Norm Norm mul true_div", note="quotient"),
    case("norm_of_powers", lambda x: T.sum(x**4.0, axis=1) ** 0.25, (M,),
         "DimShuffle Norm clip exp2 floor log2 mul neg pow pow sum true_div"),
    case("norm_of_powers", lambda x: T.mean(abs(x) ** 4.0) ** -0.25, (M,),
         "DimShuffle Norm abs clip exp2 floor log2 mul mul mul neg pow pow sum",
         note="inverse", static="full"),
    case("log_of_squares", lambda x, y: T.log(x**2 + y**2), (SIGNED, Y), "hypot log mul"),
    case("log_of_squares", lambda x: T.log(T.sum(x**2, axis=1)), (M,), "Norm log mul",
         note="norm"),
    case("log1p_of_square", lambda x: T.log1p(x**2), (SIGNED,), "log1p_square"),
    case("over_squares", lambda x, y: x / (x**2 + y**2), (SIGNED, Y), "over_squares"),
    case("over_squares", lambda x, y: 3 * x * y / (x**2 + y**2), (SIGNED, Y), "mul product_of_legs",
         note="product"),
    case("over_squares", lambda x, y: call("square_difference", y, x) / (x**2 + y**2),
         (SIGNED, Y), "square_contrast", note="difference"),
    case("over_squares", lambda x: call("square_difference", 1.0, x) / (1 + x**2), (SIGNED,),
         "square_contrast", note="difference to 1"),
    case("over_squares", lambda x, y: x / T.hypot(T.hypot(x, y), y + 1), (SIGNED, Y),
         "add hypot leg", note="three legs"),
    case("over_squares", lambda x, y: x**2 / (x**2 + y**2), (SIGNED, Y), "leg sqr",
         note="square"),
    case("over_squares", lambda x: 3.0 * x / (1 + x**2), (SIGNED,), "mul over_one_plus_square",
         note="one"),
    case("over_squares", lambda x, y: x / T.hypot(x, y), (SIGNED, Y), "leg", note="leg"),
    case("over_squares", lambda x, y: T.sqr(x) * x / T.hypot(T.sqr(x), y), (SIGNED, Y),
         "abs leg mul true_div", note="squared leg"),
    case("over_squares", lambda x: x / (1 + T.sqr(T.sqr(x))), (SIGNED,),
         "hypot sqr sqr true_div", note="fourth power"),
    case("hypot_over", lambda x, y: T.hypot(y, x) / x, (SIGNED, Y), "hypot_over"),
    case("height", lambda x, y: T.sqr(y * call("leg", x, y)), (SIGNED, Y), "height sqr"),
    case("one_minus_leg_squared", lambda x: 1 - T.sqr(call("leg", x, 1.0)), (SIGNED,), "leg sqr"),
    case("log1p_of_squared_ratio", lambda x, y: T.log1p(T.sqr(x / y)), (SIGNED, Y),
         "log1p_square_ratio"),
    case("exp_times_expm1", lambda x, y: T.exp(x + y) * T.expm1(x), (SIGNED, Y),
         "add add exp expm1 gt mul mul neg switch switch switch"),
    case("compound_of_inverse", lambda x: call("compound", x, 1 / x), (X,),
         "exp series_remainder"),
    case("log1p_drop", lambda x: series_remainder("log1p", 1, 1, 1 / x, 1) / x**2, (X,),
         "log1p_drop neg true_div true_div"),
    case("parallel", lambda x, y: 2 / (1 / x + 1 / y), (SIGNED, Y), "mul parallel"),
    case("over_squares", lambda x: x / T.sum(x**2, axis=1, keepdims=True),
         (M,), "DimShuffle Norm true_div true_div", note="norm"),
    case("quotient_of_squares", lambda x, y: T.sum(x**2) / (4 * T.sum(y**2)), (M, X),
         "Norm Norm mul sqr true_div"),
    case("quotient_of_squares", lambda x: T.var(x, axis=1) / T.mean(x, axis=1) ** 2, (M,),
         "DimShuffle Norm mul sqr sub sum true_div true_div", note="variance", static="full"),
    case("cosh_minus_one", lambda x: T.cosh(x) - 1, (SIGNED,), "mul mul sinh sqr"),
    case("one_plus_cosh", lambda x: T.cosh(x) + 1, (SIGNED,), "cosh mul mul sqr"),
    case("cube_difference", lambda x, y: 2 * x**3 - 2 * y**3, (X, Y), "cube_difference mul"),
    case("cube_difference", lambda x: (x + 1) ** 3 - x * x * x, (X,), "add add add mul sqr sqr",
         note="number"),
    case("expm1", lambda x: T.exp(x) - T.exp(2 * x), (SIGNED,), "exp expm1 mul neg", note="twice"),
    case("sqrt1pm1", lambda x: T.sqrt(1 + x) - 1, (X,), "sqrt1pm1"),
    case("hypot_minus", lambda x, y: T.hypot(x, y) - x, (SIGNED, Y), "hypot_minus"),
    case("hypot_minus", lambda x: 2 - 2 * T.hypot(1, x), (SIGNED,), "hypotm1 mul", note="one"),
    case("over_argument", lambda x: T.tanh(2 * x) / x, (SIGNED,), "mul mul series_remainder",
         note="tanh"),
    case("over_argument", lambda x: x / T.log1p(x), (X,), "reciprocal series_remainder",
         note="over log1p"),
    case("over_argument", lambda x: T.sin(x**2) / x**2, (SIGNED,), "product_remainder",
         note="of a square"),
    case("over_argument", lambda x, y: T.expm1(-3 * x * y) / (2 * x), (SIGNED, Y),
         "mul product_remainder", note="product"),
    case("over_argument", lambda x, y: T.sinh(x * y) / (x**2 * T.exp(y)), (SIGNED, Y),
         "exp product_remainder true_div", note="product over more"),
    case("over_argument", lambda x: T.sin(x) / T.tanh(x),
         (SIGNED,), "series_remainder spherical_jn true_div", note="ratio"),
    case("rational_difference", lambda x: 1 / x - 1 / (x + 1), (X,), "add mul reciprocal"),
    case("rational_difference", lambda x: 1 - x / (1 + x),
         (X,), "add reciprocal", note="complement"),
    case("rational_difference", lambda x, y: x / (x + y) - y / (x + y),
         (X, Y), "add sub true_div", note="shares"),
    case("rational_difference", lambda x, y: 1 / x - 1 / y, (X, Y), "mul sub true_div",
         note="inverses"),
    case("cancelling_numerator", lambda x, y: (y * (x + 1) + y * (x - 1)) / ((x + 1) * (x - 1)),
         (X, Y), "add mul mul mul sub true_div"),
    case("rational_difference", lambda x, y: x / y - 1, (X, Y), "sub true_div", note="ratio"),
    case("weighted_mean", lambda x, y: T.sum(y * T.exp(x), axis=1) / T.sum(T.exp(x), axis=1),
         (M, M + 1), "WeightedMean", static="none"),
    case("weighted_mean", lambda x, y: T.sum(y**2 * T.exp(x)) / T.sum(y * T.exp(x)),
         (X, Y), "WeightedSoftmax mul sum", note="weights", static="full"),
    case("weighted_mean", lambda x: T.sum(T.exp(2 * x)) / T.sum(T.exp(x)) ** 2, (X,),
         "Softmax WeightedMean", note="square", static="full"),
    case("weighted_mean", lambda x, y: T.sum(call("exp_of_sum", x, y)) / T.sum(T.exp(x)), (X, Y),
         "WeightedMean exp", note="sum", static="full"),
    case("entropy_of_softmax",
         lambda x: -T.sum(T.softmax(x, axis=1) * T.log_softmax(x, axis=1), axis=1), (M,),
         "NegativeEntropy neg"),
    case("entropy_of_softmax",
         lambda x: T.sum(2 * T.softmax(x, axis=0) * T.log_softmax(x, axis=0)), (M,),
         "NegativeEntropy mul sum", note="more axes"),
    case("entropy_of_softmax", lambda x: T.sum(call("xlogx", T.softmax(x, axis=1)), axis=1), (M,),
         "NegativeEntropy", note="xlogx"),
    case("entropy_of_mean", lambda x: WeightedMean((1,))(x, x) - LogSumExp((1,))(x), (M,),
         "NegativeEntropy", static="full"),
    case("entropy_of_mean",
         lambda x: LogSumExp((1,))(x) - T.sum(x * T.softmax(x, axis=1), axis=1), (M,),
         "DimShuffle NegativeEntropy ShapeI eq neg switch", note="softmax", static="none"),
    case("divergence_of_softmaxes",
         lambda x, y: T.sum(T.softmax(x, axis=1) * (T.log_softmax(y, axis=1)
                                                    - T.log_softmax(x, axis=1)), axis=1),
         (M, M[::-1]), "Divergence neg"),
    case("divergence_of_softmaxes",
         lambda x, y: T.sum(3 * T.softmax(x, axis=0) * (T.log_softmax(x, axis=0)
                                                        - T.log_softmax(y, axis=0))),
         (M, M[::-1]), "Divergence mul sum", note="more axes"),
    case("divergence_of_entropies",
         lambda x, y: NegativeEntropy((1,))(x)
         - T.sum(T.softmax(x, axis=1) * T.log_softmax(y, axis=1), axis=1),
         (M, M[::-1]), "Divergence"),
    case("shares", lambda x, y: T.exp(x) / (T.exp(x) + T.exp(y)), (X, SIGNED), "share"),
    case("shares", lambda x, y: (T.exp(x) - T.exp(y)) / (T.exp(x) + T.exp(y)), (SIGNED, Y),
         "share_difference", note="difference"),
    case("shares", lambda x, y: (x + y * T.exp(x)) / (1 + T.exp(x)), (X, SIGNED), "shared_mean",
         note="mean"),
    case("shares", lambda x, y: T.exp(x) / (2 + T.exp(x) + T.exp(y)), (X, SIGNED),
         "logaddexp share", note="three"),
    case("shares", lambda x, y: (2 * T.exp(x) + 3 * T.exp(y)) / (T.exp(x) + T.exp(y)), (X, SIGNED),
         "add mul mul share share", note="numbers"),
    case("ratio_of_exponentials", lambda x, y: (1 + T.exp(x)) * T.sigmoid(y), (X, SIGNED),
         "neg one_plus_exp_ratio"),
    case("ratio_of_exponentials", lambda x, y: T.sigmoid(x) / T.sigmoid(y), (X, SIGNED),
         "neg neg one_plus_exp_ratio", note="sigmoids"),
    case("ratio_of_exponentials", lambda x, y: T.expm1(x) / T.expm1(y), (X, SIGNED), "expm1_ratio",
         note="expm1"),
    case("ratio_of_exponentials", lambda x, y: T.exp(x) / T.expm1(y), (X, SIGNED),
         "exp_over_expm1", note="exp"),
    case("log_of_ratio", lambda x, y: T.log(call("one_plus_exp_ratio", x, y)), (X, SIGNED),
         "softplus_difference"),
    case("exp_of_logarithms", lambda x, y: T.exp(y * T.log(x)), (X, SIGNED), "power_of_log"),
    case("exp_of_logarithms", lambda x: T.exp(-T.log(x)),
         (X,), "lt reciprocal switch", note="inverse"),
    case("exp_of_logarithms", lambda x, y: T.exp(y * T.log1p(x)),
         (X, SIGNED), "compound lt switch", note="log1p"),
    case("exp_of_logarithms", lambda x, y: T.exp(T.log(x) - 0.3 * T.log(y)),
         (X, Y), "lt mul power_of_log switch",
         note="two"),
    case("exp_of_logarithms", lambda x: T.exp(call("xlogx", x)),
         (X,), "lt pow switch", note="xlogx"),
    case("exp_of_function", lambda x: T.exp(-T.softplus(x)), (SIGNED,), "neg sigmoid"),
    case("power_of_sum", lambda x, y: (1 + x) ** y, (X, SIGNED), "compound"),
    case("root_of_exp", lambda x: T.sqrt(T.exp(x)), (SIGNED,), "exp mul"),
    case("power_of_exp", lambda x: T.exp(x) ** 0.3, (SIGNED,), "exp_of_product"),
    case("log1p_of", lambda x: T.log1p(T.sum(T.exp(x), axis=1)), (M,), "LogSumExp softplus",
         note="sum of exp"),
    case("sigmoid_difference", lambda x: 2 * T.sigmoid(2 * x) - 1, (SIGNED,), "tanh"),
    case("sigmoid_difference", lambda x, y: T.sigmoid(x) - T.sigmoid(y), (SIGNED, Y),
         "sigmoid_difference",
         note="two"),
    case("sigmoid_difference", lambda x, y: T.softplus(x) - T.softplus(y), (SIGNED, Y),
         "softplus_difference",
         note="softplus"),
    case("sigmoid_difference", lambda x: x - T.softplus(x), (SIGNED,), "neg neg softplus",
         note="mirrored"),
    case("one_minus_sech", lambda x: 1 - call("sech", x), (SIGNED,), "mul mul tanh tanh"),
    case("secant_minus_one", lambda x: 3 / T.cos(x) - 3, (SIGNED,),
         "cos mul one_minus_cos true_div"),
    case("logs_of_one_plus", lambda x: T.log1p(x) + T.log1p(-x), (UNIT,), "log1m_square"),
    case("log_difference", lambda x: T.log1p(x) - T.log(x), (X,), "log_gap"),
    case("log_difference", lambda x, y: T.log(x) - T.log(x + y), (X, Y), "log_gap neg",
         note="term"),
    case("log_difference", lambda x, y: 2 * T.log(y) - 2 * T.log(x), (X, Y), "log_difference mul",
         note="two"),
    case("root_difference", lambda x, y: 3 / T.sqrt(x) - 3 / T.sqrt(y), (X, Y),
         "known_difference mul mul sqrt sqrt sqrt_difference true_div true_div true_div",
         note="two roots"),
    case("root_difference", lambda x: T.sqrt(x**2 + x) - x, (X,), "add by_squares pow sqrt"),
    case("root_difference", lambda x, y: y / T.sqrt(x) - y / T.sqrt(x + 2), (X, Y),
         "add add mul mul mul sqrt sqrt true_div",
         note="inverse"),
    case("root_difference", lambda x: x + 1 - T.hypot(x, 1), (X,), "add by_squares hypot mul neg",
         note="sum"),
    case("root_difference", lambda x: 1 - x / T.hypot(x, 1), (SIGNED,),
         "hypot hypot_minus neg neg true_div", note="leg"),
    case("root_difference", lambda x: 2 / T.sqrt(1 + x) - 2, (X,),
         "add by_squares mul neg sqrt true_div", note="number"),
    case("sqrt_difference", lambda x, y: T.sqrt(x + y) - T.sqrt(x), (X, Y),
         "add by_squares sqrt sqrt", note="term"),
    case("sigmoid_slope", lambda x: T.sigmoid(x) * T.sigmoid(-x), (SIGNED,), "sigmoid_slope"),
    case("sigmoid_slope", lambda x, y: call("share", x, y) * call("share", y, x), (SIGNED, Y),
         "share_slope",
         note="share"),
    case("sigmoid_slope", lambda x: call("sigmoid_slope", x) / T.sigmoid(-x), (SIGNED,), "sigmoid",
         note="over sigmoid"),
    case("sech", lambda x: 2 / T.cosh(x), (SIGNED,), "mul sech"),
    case("exp_times_sigmoid", lambda x, y: T.exp(x) * T.sigmoid(y), (SIGNED, Y),
         "exp_times_sigmoid"),
    case("exp_times_sigmoid", lambda x: T.exp(x) * T.sigmoid(-x), (SIGNED,), "sigmoid",
         note="mirrored"),
    case("square_difference_over",
         lambda x, y: call("square_difference", x, y) / (x - y), (SIGNED, Y), "add"),
    case("log_of_hyperbolic", lambda x: T.log(call("sech_squared", x)), (SIGNED,), "logcosh mul"),
    case("log_of_cosine", lambda x: T.log(T.cos(x)), (UNIT,), "log_cos"),
    case("log1m_square", lambda x: T.log1p(-T.sqr(x)), (UNIT,), "log1m_square"),
    case("log_of_product", lambda x: T.log((x + 1) / x), (X,), "log1p_ratio", note="near 1"),
    case("exp_of_logarithms", lambda x: T.exp(-call("log_gap", 1.0, x)), (X,),
         "add lt switch true_div", note="gap"),
    case("exp_of_logarithms", lambda x: T.exp(0.5 * call("log1p_square", x)), (SIGNED,), "hypot",
         note="square"),
    case("expm1_of_logarithm", lambda x, y: T.expm1(y * T.log(x)), (X, SIGNED), "powm1"),
    case("expm1_of_logarithm", lambda x, y: T.expm1(y * T.log1p(x)), (X, SIGNED),
         "compoundm1 lt switch", note="log1p"),
    case("root_of_softmax", lambda x: T.sqrt(T.softmax(x)), (M,), "RootSoftmax"),
    case("unit_vector", lambda x: x**2 / (3 * T.sqr(Norm((1,))(x).dimshuffle(0, "x"))),
         (M,), "UnitVector mul sqr"),
    case("product_over_norm", lambda x, y: T.dot(x, y) / T.dot(x, x), (X, SIGNED),
         "Norm ProjectionLength true_div"),
    case("product_over_norm",
         lambda x, y: T.sum(3 * x * y, axis=1) ** 2 / (T.sum(x * x, axis=1) * T.sum(y * y, axis=1)),
         (M, M[::-1] + 1), "Cosine mul sqr", note="powers"),
    case("product_over_norm", lambda x, y: T.sum(x * y) / Norm((0,))(x), (X, np.array([2.0])),
         "ProjectionLength second", note="stretched", static="full"),
    case("odds_share", lambda x, y: y * x**4 / (3 + 6 * x**4), (SIGNED, Y),
         "mul mul mul odds_share pow"),
    case("half_tangent", lambda x: 2 * x / (1 + call("hypot", x, 1.0)), (SIGNED,),
         "half_tangent mul"),
    case("expm1_of_factor", lambda x, y: 2 * y - 2 * y * T.exp(x), (SIGNED, Y),
         "add expm1 mul mul sub"),
    case("expm1_of_factor", lambda x, y: T.exp(x) * T.exp(y) - T.exp(y), (SIGNED, Y),
         "exp expm1 mul", note="two"),
    case("power_sum_over_norm", lambda x: T.sum(x**4) / (3 * T.sum(x**2) ** 2), (M,),
         "UnitPowerSum mul"),
    case("power_sum_over_norm",
         lambda x: T.sum(2 * abs(x) ** 3, axis=1) ** 2 / T.sum(x**2, axis=1) ** 2, (M,),
         "Norm UnitPowerSum abs mul mul sqr sqr", note="absolute values"),
    case("power_minus_one", lambda x: 3 * 2.0**x - 3, (SIGNED,), "mul powm1"),
    case("power_minus_one", lambda x: 1 - T.exp2(x), (SIGNED,), "neg powm1", note="exp2"),
    case("geometric_mean", lambda x: T.exp(-T.mean(T.log(x), axis=0)), (np.abs(M),),
         "DimShuffle ShapeI cast log log_exponent log_mantissa mul power_of_parts sum sum",
         static="none"),
    case("geometric_mean", lambda x: T.exp(T.sum(T.log(x)) / 3), (X,),
         "log_exponent log_mantissa power_of_parts sum sum", note="sum"),
    case("power_of_product", lambda x: T.prod(x, axis=1) ** 0.7, (np.abs(M),), POWER,
         note="power"),
    case("power_of_product", lambda x: T.sqrt(T.prod(x)), (SIGNED,), POWER, note="negative"),
    case("ratio_of_angles", lambda x: x * T.sin(x) / T.sin(x / 2), (SIGNED,),
         "cos mul mul true_div"),
    case("ratio_of_hyperbolic", lambda x: T.expm1(x) / T.expm1(2 * x), (SIGNED,), "neg sigmoid"),
    case("cancelled_factors", lambda x, y: y * T.cosh(x) / T.cosh(x) ** 2.0, (X, Y),
         "cosh true_div", note="positive"),
    case("cancelled_factors", lambda x, y: y * T.sinh(x) / T.sinh(x), (SIGNED, Y),
         "mul own_ratio", note="sinh"),
    case("cancelled_factors", lambda x, y: 2 * x * y / (x * T.exp(x)), (SIGNED, Y),
         "exp mul mul own_ratio true_div"),
    case("cancelled_factors", lambda x: x**3 / abs(x), (SIGNED,), "mul over_size sqr",
         note="size"),
    case("sum_of_quotients", lambda x, y: 2 / (y**2 * (1 / x + 1 / y) ** 2.0), (X, SIGNED),
         "add sqr sqr true_div true_div"),
    case("over_argument", lambda x: T.tanh(x) ** 2.0 / x, (SIGNED,), "mul series_remainder tanh",
         note="bounded square"),
    case("root_of_power", lambda x: (x**3) ** (1 / 3), (X,), "pow pow"),
    case("root_of_product", lambda x, y: (x / y) ** 0.5, (X, Y), "eq sqrt switch true_div"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case):
    check_rule(case)


def test_every_rule_has_a_case():
    rules = {rule.name for rule in STABILIZE} - LINALG_RULES.names
    assert rules == {case.rule for case in CASES}


# Expression, arrays: where the plain form loses digits, overflows or is 0 / 0.
NEAR_0 = np.array([5e-324, -1e-300, 1e-17, -3e-9, 2e-5])
LARGE = np.array([-800.0, -40.5, -3.1, 0.7, 37.5, 720.0])
HARD = {
    "exp(x) - 1": (lambda x: T.exp(x) - 1, NEAR_0),
    "sqrt(exp(x))": (lambda x: T.sqrt(T.exp(x)), 1.8 * LARGE),
    "1 - 1 / exp(-x)": (lambda x: 1 - 1 / T.exp(-x), NEAR_0),
    "log(1 + x)": (lambda x: T.log(1 + x), NEAR_0),
    "log(1 - x) of a quotient": (lambda x: T.log(1 - x / 4), NEAR_0),
    "1 - cos(x)": (lambda x: 1 - T.cos(x), NEAR_0[2:]),
    "(1 - cos(x)) / x^2": (lambda x: (1 - T.cos(x)) / x**2, NEAR_0[2:]),
    "1 - erf(x)": (lambda x: 1 - T.erf(x), np.array([-6.0, 1e-9, 4.1, 9.3, 26.0])),
    "log(1 - erf(x))": (lambda x: T.log(1 - T.erf(x)), np.array([-6.0, 1e-9, 4.1, 9.3, 30.0])),
    "log(1 - ndtr(x))": (lambda x: T.log(1 - T.ndtr(x)), np.array([-6.0, 1e-9, 4.1, 9.3, 30.0])),
    "1 - sigmoid(x)": (lambda x: 1 - T.sigmoid(x), LARGE),
    "log sigmoid(x)": (lambda x: T.log(1 / (1 + T.exp(-x))), LARGE),
    "1 + tanh(x)": (lambda x: 1 + T.tanh(x), LARGE[:5]),
    "1 - tanh(x)^2": (lambda x: 1 - T.tanh(x) ** 2, LARGE[1:5]),
    "log(1 + exp(x))": (lambda x: T.log(1 + T.exp(x)), LARGE),
    "log cosh(x)": (lambda x: T.log(T.cosh(x)), LARGE),
    "sinh / cosh": (lambda x: T.sinh(x) / T.cosh(x), LARGE),
    "sqrt(x + 1) - sqrt(x)": (
        lambda x: T.sqrt(x + 1) - T.sqrt(x), np.array([1e-9, 3.0, 1e8, 1e200])
    ),
    "log1p(x) - x": (lambda x: T.log1p(x) - x, np.array([1e-100, 1e-9, -2e-3, 0.3, 9.0])),
    "(1 + x)^3 - 1": (lambda x: (1 + x) ** 3.0 - 1, np.array([1e-30, -1e-9, -2.5, 4.0])),
    "(1 + x)^2 - 1": (lambda x: T.sqr(1 + x) - 1, np.array([1e-30, -2 + 1e-9, -2.5, -1.0])),
    "x^2 - 9": (lambda x: x**2 - 9, np.array([3 + 1e-12, -3 + 1e-9, 1e150])),
    "x / expm1(x)": (lambda x: x / (T.exp(x) - 1), np.array([1e-300, -1e-9, 37.0, 720.0, -800.0])),
    "erfcx": (lambda x: T.exp(x**2) * T.erfc(x), np.array([-5.0, 0.3, 9.1, 40.0, 1e8])),
    "log erfc": (lambda x: T.log(T.erfc(x)), np.array([-5.0, 1e-9, 9.1, 40.0])),
    "norm": (lambda x: T.sqrt(T.sum(x**2)), np.array([3e-200, -4e-200])),
    "log of a product": (lambda x: T.log(T.prod(x)), np.array([1e-200, 1e-300, 3e-5])),
    "log of a power": (lambda x: T.log(x**9), np.array([1e-200, 1e200, 1.0 + 1e-9])),
    "area tangent": (lambda x: T.log((1 + x) / (1 - x)), np.array([1e-300, -1e-9, 0.3, -0.999])),
    "log sum exp": (lambda x: T.log(T.sum(T.exp(x))), LARGE),
    "log mean exp": (lambda x: T.log(T.mean(T.exp(x))), LARGE),
    "softmax": (lambda x: T.exp(x) / T.sum(T.exp(x)), LARGE),
    "shifted softmax": (
        lambda x: T.exp(x - T.max(x)) / T.sum(T.exp(x - T.max(x))), np.array([36.5, 1.1, -0.4])
    ),
    "log softmax": (lambda x: T.log(T.exp(x) / T.sum(T.exp(x))), LARGE),
    "variance": (lambda x: T.mean(x**2) - T.mean(x) ** 2, 1e8 + np.array([1.0, 2.0, 4.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_values(name):
    """The whole pipeline, against the plain form computed with hundreds of digits."""
    build, values = HARD[name]
    inputs = variables_for((values,), "full")
    outputs = [build(*inputs)]
    graph = rewritten(inputs, outputs, RuleSet([*STABILIZE, *CANONICALIZE]))
    truth = evaluate_exactly(inputs, outputs, [values])
    assert units_off(run(graph, [values])[0], truth[0]) <= 4
    plain = values_of(inputs, outputs, [values])[0]
    assert not units_off(plain, truth[0]) <= 4, "not a hard case"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_deviations_from_a_mean_that_is_not_finite(bad):
    x, c = T.dmatrix("x"), T.drow("c")
    z = (c * (x - T.mean(x, axis=0, keepdims=True))).sum(axis=0)
    graph = rewritten([x, c], [z], RuleSet([*STABILIZE, *CANONICALIZE]))
    values = [np.array([[1.0, 0.1, 3.0], [bad, 0.2, 4.0]]), np.array([[2.0, 3.0, bad]])]
    with np.errstate(invalid="ignore"):
        (found,) = run(graph, values)
    np.testing.assert_array_equal(found, [np.nan, 0, np.nan])


def test_deviations_are_those_of_the_sum():
    """No other mean is taken for that along the axes of the sum, and no comparison is lost."""
    x, y = T.dmatrix("x"), T.dmatrix("y")

    def names(z):
        graph = FunctionGraph([x, y], [z])
        return Engine(graph, RuleSet([*STABILIZE, *CANONICALIZE])).run()

    for other in (x.mean(axis=1, keepdims=True), x.mean(), y.mean(axis=0, keepdims=True)):
        assert "sum_of_deviations" not in {f.rule for f in names((x - other).sum(axis=0))}
    deviations = x - x.mean(axis=0, keepdims=True)
    for factor in (y, T.exp(x)):
        assert "sum_of_deviations" not in {f.rule for f in names((factor * deviations).sum(axis=0))}
    assert "sum_of_deviations" not in {f.rule for f in names((T.exp(y) + deviations).sum(axis=0))}
    # The factor compares the lengths.
    factor = (T.exp(y) * x).sum(axis=0, keepdims=True)
    z = (T.exp(y) + factor * deviations).sum(axis=0)
    assert "sum_of_deviations" in {f.rule for f in names(z)}


# Sums and products of a narrow x and float64: the result has that dtype, and its digits where it is
# rewritten.
D = np.float64
MIXED = {
    "log(1 + x)": lambda x: T.log(D(1) + x),
    "log(1 + 2 x)": lambda x: T.log(1 + D(2) * x),
    "exp(x) - 1": lambda x: T.exp(x) - D(1),
    "1 - cos(x)": lambda x: D(1) - T.cos(x),
    "1 - erf(x)": lambda x: D(1) - T.erf(x),
    "sigmoid": lambda x: D(1) / (D(1) + T.exp(-x)),
    "ndtr": lambda x: 0.5 * T.erfc(-x / np.sqrt(2.0)),
    "1 - tanh(x)^2": lambda x: D(1) - T.tanh(x) ** 2,
    "sinh": lambda x: (T.exp(x) - T.exp(-x)) / D(2),
    "softmax": lambda x: D(2) * T.exp(x) / T.sum(T.exp(x)),
    "variance": lambda x: T.mean(x**2) - D(1) * T.mean(x) ** 2,
    "log of a product": lambda x: T.log(T.prod(x) * D(2)),
    "weighted sum": lambda x: T.log(T.sum(T.constant(np.array([1.0, 2.0, 4.0])) * T.exp(x))),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("name", MIXED)
def test_mixed_dtypes(name, dtype):
    values = np.array([1, 2, 3], dtype)
    inputs = variables_for((values,), "none")
    outputs = [MIXED[name](*inputs)]
    graph = FunctionGraph(inputs, outputs)
    rewrite(graph, Mode(optimizer="fast_run").selects, on_error="raise")
    (got,) = run(graph, [values])
    assert got.dtype == outputs[0].dtype == "float64"
    wide = variables_for((values.astype(float),), "none")
    (truth,) = values_of(wide, [MIXED[name](*wide)], [values.astype(float)])
    worst = {"float32": 1e-5, "float16": 2e-2, "int8": 2e-2, "int64": 1e-11}[dtype]
    np.testing.assert_allclose(got, truth, rtol=worst)
