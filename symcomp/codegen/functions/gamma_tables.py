"""Write the tables of ``pairs.h`` and of the headers of gamma functions, from exact numbers.

In double-double arithmetic the first coefficients of a series, whose terms are large, are pairs,
and the others doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

from symcomp.codegen.functions import gamma_coefficients as fitted
from symcomp.codegen.functions.c_tables import double_rows, doubles
from symcomp.codegen.functions.temme_coefficients import SQUARE_OF_ETA, slopes, temme_coefficients

PI = Fraction("3.14159265358979323846264338327950288419716940")
LN2 = Fraction("0.693147180559945309417232121458176568075500134")
LN_PI = Fraction("1.14472988584940017414342735135305871164729481")
EULER = Fraction("0.577215664901532860606512090082402431042159")
# zeta(k) - 1 for k = 2, 3, ...
ZETA_TAILS = (
    "6.44934066848226436472415166646025189e-1", "2.02056903159594285399738161511449991e-1",
    "8.23232337111381915160036965411679028e-2", "3.69277551433699263313654864570341681e-2",
    "1.73430619844491397145179297909205279e-2", "8.34927738192282683979754984979675960e-3",
    "4.07735619794433937868523850865246526e-3", "2.00839282608221441785276923241206049e-3",
    "9.94575127818085337145958900319017006e-4", "4.94188604119464558702282526469936469e-4",
    "2.46086553308048298637998047739670960e-4", "1.22713347578489146751836526357395714e-4",
    "6.12481350587048292585451051353337475e-5", "3.05882363070204935517285106450625876e-5",
    "1.52822594086518717325714876367220232e-5", "7.63719763789976227360029356302921309e-6",
    "3.81729326499983985646164462193973045e-6", "1.90821271655393892565695779510135326e-6",
    "9.53962033872796113152038683449345944e-7", "4.76932986787806463116719604373045966e-7",
    "2.38450502727732990003648186752994935e-7", "1.19219925965311073067788718882326387e-7",
    "5.96081890512594796124402079358012275e-8", "2.98035035146522801860637050693660118e-8",
    "1.49015548283650412346585066306986289e-8",
)  # fmt: skip
# Logarithms of k / 32 from LOG_FIRST to LOG_LAST, exponentials of k / 64 up to EXP_RANGE.
LOG_FIRST, LOG_LAST = 22, 46
EXP_RANGE = 23
# Beyond HUGE, 1 / x is negligible beside log(x), and below its inverse log gamma(x) is -log(x).
# From VAST on, the difference of two arguments alone decides.
HUGE, VAST = 2.0**200, 1e150
# Ratios of gamma functions whose arguments differ by a whole number up to these are products: in
# double-double; in double-double for a logarithm near 0; and in double for other logarithms.
FEW_FACTORS, EXACT_FACTORS, MOST_FACTORS = 4, 16, 64
# Beyond, the gamma function is 0 or infinite.
GAMMA_END = 190
# Temme's expansion is used for k from the first on where abs(x / k - 1) is below the second; the
# derivative is 0 if an argument is larger than the third and the two are not close.
TEMME_LARGE, TEMME_CLOSE, TEMME_ALL = 1e4, 0.1, 1e12


@cache
def pair_tables() -> str:
    """Return the type of ``pairs.h``, and the definitions of its tables and constants."""
    lines = [
        "typedef struct { double hi, lo; } pair;",
        # 2 atanh(s) / (2 s) in powers of s^2, for abs(s) < 1/80
        *_series("ATANH", [Fraction(1, 2 * k + 1) for k in range(10)], 5),
        *_series("SINE", [Fraction((-1) ** k, math.factorial(2 * k + 1)) for k in range(15)], 9),
        *_series("COSINE", [Fraction((-1) ** k, math.factorial(2 * k)) for k in range(15)], 9),
        *_series("EXPONENTIAL", [Fraction(1, math.factorial(k)) for k in range(11)], 5),
        _decimals("LOGARITHMS", "ln", [Fraction(k, 32) for k in range(LOG_FIRST, LOG_LAST + 1)]),
        _decimals(
            "EXPONENTIALS", "exp", [Fraction(k, 64) for k in range(-EXP_RANGE, EXP_RANGE + 1)]
        ),
        *_constants(),
    ]
    return "\n".join(lines) + "\n"


@cache
def gamma_tables() -> str:
    """Return the definitions of the tables of gamma functions."""
    bernoulli = _bernoulli(20)
    stirling = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(bernoulli, 1)]
    stirling_psi = [b / (2 * k) for k, b in enumerate(bernoulli, 1)]
    first = [float(b) for b in bernoulli[:8]]
    lines = [
        *_series("TAYLOR", _taylor(), len(ZETA_TAILS) + 1),
        *_series("STIRLING", stirling, 7),
        *_series("STIRLING_PSI", stirling_psi, 7),
        doubles("STIRLING_DOUBLES", map(float, stirling[:9])),
        # Enough terms from 16, and from 8 on.
        doubles("STIRLING_PSI_DOUBLES", map(float, stirling_psi[:9])),
        doubles("STIRLING_PSI_MORE", map(float, stirling_psi[:15])),
        doubles("LOG_GAMMA_NEAR", fitted.LOG_GAMMA),
        doubles("GAMMA_NEAR", fitted.GAMMA),
        doubles("PSI_NEAR", fitted.PSI),
        # B(2 k), and these over 2 k (DLMF 5.11.2) and over (2 k)!
        doubles("BERNOULLI", first),
        doubles("PSI_TAIL", [b / (2 * k) for k, b in enumerate(first, 1)]),
        doubles("ZETA_TAIL", [b / math.factorial(2 * k) for k, b in enumerate(first, 1)]),
        double_rows("LOG_GAMMA_ROOTS", fitted.LOG_GAMMA_ROOTS),
        double_rows("PSI_ROOTS", fitted.PSI_ROOTS),
        doubles("SQUARE_OF_ETA", SQUARE_OF_ETA),
        double_rows("TEMME", temme_coefficients()),
        double_rows("TEMME_SLOPES", map(slopes, temme_coefficients())),
    ]
    return "\n".join(lines) + "\n"


def _constants() -> list[str]:
    pairs = {
        "PI_PAIR": PI, "LN2_PAIR": LN2, "LN_PI_PAIR": LN_PI, "HALF_LOG_2PI_PAIR": (LN2 + LN_PI) / 2,
    }  # fmt: skip
    numbers = {
        "HUGE_SIZE": HUGE, "VAST_SIZE": VAST, "EULER": float(EULER),
        "GAMMA_CENTRE": fitted.CENTRE, "GAMMA_REACH": fitted.REACH, "GAMMA_END": GAMMA_END,
        "TEMME_LARGE": TEMME_LARGE, "TEMME_CLOSE": TEMME_CLOSE, "TEMME_ALL": TEMME_ALL,
        "PSI_ROOT": fitted.PSI_ROOT, "PSI_ROOT_LOW": fitted.PSI_ROOT_LOW,
    }  # fmt: skip
    return [
        *(f"#define {name} p_pair({_pair(value)[1:-1]})" for name, value in pairs.items()),
        *(f"#define {name} {float(value).hex()}" for name, value in numbers.items()),
        f"#define LOG_FIRST {LOG_FIRST}",
        f"#define FEW_FACTORS {FEW_FACTORS}",
        f"#define EXACT_FACTORS {EXACT_FACTORS}",
        f"#define MOST_FACTORS {MOST_FACTORS}",
        f"#define EXP_RANGE {EXP_RANGE}",
    ]


def _taylor() -> list[Fraction]:
    """Return the coefficients of log gamma(2 + t) / t in powers of t: 1 - EULER, then (-1)^k
    (zeta(k) - 1) / k.
    """
    tails = [Fraction(z) for z in ZETA_TAILS]
    for k in range(len(tails) + 2, 56):
        tails.append(sum((Fraction(1, n**k) for n in range(2, 7)), Fraction(0)))
    return [1 - EULER, *(z / k * (-1) ** k for k, z in enumerate(tails, 2))]


def _bernoulli(count: int) -> list[Fraction]:
    """Return B2, B4, ... (DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        binomial, total = 1, Fraction(0)
        for k in range(n):
            total += binomial * numbers[k]
            binomial = binomial * (n + 1 - k) // (k + 1)
        numbers.append(-total / (n + 1))
    return numbers[2::2]


# ----- pairs


def _series(name: str, coefficients: Sequence[Fraction], count: int) -> list[str]:
    """Return the first ``count`` coefficients as pairs and the others as doubles."""
    first, rest = coefficients[:count], coefficients[count:]
    return [_pairs(f"{name}_PAIRS", first), doubles(f"{name}_REST", map(float, rest))]


def _decimals(name: str, function: str, numbers: Sequence[Fraction]) -> str:
    """Return a table of ``function``, a method of Decimal, of each number."""
    with localcontext(prec=45):
        values = [
            getattr(Decimal(n.numerator) / Decimal(n.denominator), function)() for n in numbers
        ]
    return _pairs(name, map(Fraction, values))


def _pair(value: Fraction) -> str:
    """Return the pair nearest to a number."""
    high = float(value)
    return f"{{{high.hex()}, {float(value - Fraction(high)).hex()}}}"


def _pairs(name: str, values: Iterable[Fraction]) -> str:
    return f"TABLE pair {name}[] = {{{', '.join(map(_pair, values))}}};"
