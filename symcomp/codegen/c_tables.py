"""Write the tables of ``pairs.h``, the headers of gamma functions and ``special.h`` as C, from the
tables in ``ops``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from symcomp.ops import (
    double_double,
    gamma_values,
    incomplete_gamma,
    log_gamma,
    scalar_error,
)
from symcomp.ops.double_double import Pair, Series

__all__ = ["error_tables", "gamma_tables"]


@cache
def gamma_tables() -> str:
    """Return the definitions of the tables and constants of gamma functions."""
    series = {
        "ATANH": double_double.ATANH, "SINE": double_double.SINE, "COSINE": double_double.COSINE,
        "EXPONENTIAL": double_double.EXPONENTIAL,
        "TAYLOR": log_gamma.TAYLOR, "STIRLING": log_gamma.STIRLING,
        "STIRLING_PSI": log_gamma.STIRLING_PSI,
    }  # fmt: skip
    lines = [
        "typedef struct { double hi, lo; } pair;",
        *(line for name, table in series.items() for line in _series(name, table)),
        _pairs("LOGARITHMS", _each(double_double._logarithms())),
        _pairs("EXPONENTIALS", _each(double_double._exponentials())),
        _doubles("STIRLING_DOUBLES", _rounded(log_gamma.STIRLING)[:9]),
        _doubles("STIRLING_PSI_DOUBLES", _rounded(log_gamma.STIRLING_PSI)[:9]),
        _doubles("LOG_GAMMA_NEAR", gamma_values._LOG_GAMMA),
        _doubles("GAMMA_NEAR", gamma_values._GAMMA),
        _doubles("PSI_NEAR", gamma_values._PSI),
        _doubles("BERNOULLI", gamma_values._BERNOULLI),
        _doubles("PSI_TAIL", gamma_values._PSI_TAIL),
        _doubles("ZETA_TAIL", gamma_values._ZETA_TAIL),
        _rows("LOG_GAMMA_ROOTS", gamma_values._LOG_GAMMA_ROOTS),
        _rows("PSI_ROOTS", gamma_values._PSI_ROOTS),
        _doubles("SQUARE_OF_ETA", incomplete_gamma.SQUARE_OF_ETA),
        _rows("TEMME", incomplete_gamma.temme_coefficients()),
        _rows("TEMME_SLOPES", map(incomplete_gamma.slopes, incomplete_gamma.temme_coefficients())),
    ]
    pairs = {
        "PI_PAIR": double_double.PI, "LN2_PAIR": double_double.LN2,
        "LN_PI_PAIR": double_double.LN_PI, "HALF_LOG_2PI_PAIR": log_gamma.HALF_LOG_2PI,
    }  # fmt: skip
    lines += [f"#define {name} ((pair){_pair(value)})" for name, value in pairs.items()]
    numbers = {
        "HUGE_SIZE": log_gamma.HUGE, "VAST_SIZE": gamma_values.VAST, "EULER": log_gamma.EULER.hi,
        "GAMMA_CENTRE": gamma_values.CENTRE, "GAMMA_REACH": gamma_values.REACH,
        "GAMMA_END": gamma_values.END,
        "TEMME_LARGE": incomplete_gamma.LARGE, "TEMME_CLOSE": incomplete_gamma.CLOSE,
        "TEMME_ALL": incomplete_gamma.ALL,
        "PSI_ROOT": gamma_values.PSI_ROOT, "PSI_ROOT_LOW": gamma_values.PSI_ROOT_LOW,
    }  # fmt: skip
    lines += [f"#define {name} {float(value).hex()}" for name, value in numbers.items()]
    lines.append(f"#define LOG_FIRST {double_double.LOG_FIRST}")
    lines.append(f"#define EXP_RANGE {double_double.EXP_RANGE}")
    return "\n".join(lines) + "\n"


@cache
def error_tables() -> str:
    """Return the tables of ``special.h``."""
    tables = {
        "ERF": scalar_error._ERF, "ERFCX": scalar_error._ERFCX, "IERFCX": scalar_error._IERFCX,
    }  # fmt: skip
    return "\n".join(_doubles(f"{name}_TABLE", table) for name, table in tables.items()) + "\n"


def _rounded(series: Series) -> list[float]:
    return [float(c) for c in series.coefficients()]


def _each(values: Pair) -> list[Pair]:
    return [values[i] for i in range(len(values.hi))]


def _series(name: str, series: Series) -> list[str]:
    first, rest = series.parts
    return [_pairs(f"{name}_PAIRS", first), _doubles(f"{name}_REST", rest)]


def _pair(value: Pair) -> str:
    return f"{{{float(value.hi).hex()}, {float(value.lo).hex()}}}"


def _pairs(name: str, values: Iterable[Pair]) -> str:
    return f"static const pair {name}[] = {{{', '.join(map(_pair, values))}}};"


def _doubles(name: str, values: Iterable[float]) -> str:
    return f"static const double {name}[] = {{{', '.join(float(v).hex() for v in values)}}};"


def _rows(name: str, rows: Iterable[Sequence[float]]) -> str:
    """Return a table of rows of one length, padded with zeros."""
    texts = [[float(v).hex() for v in row] for row in rows]
    written = ", ".join(f"{{{', '.join(row)}}}" for row in texts)
    return f"static const double {name}[][{max(map(len, texts))}] = {{{written}}};"
