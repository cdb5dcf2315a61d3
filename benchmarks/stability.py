"""Measure how many units in the last place the value, the gradient and the R-op of each expression
of stability_cases.py are off, beside 60-digit arithmetic, and write the table of docs/stability.md.

    python benchmarks/stability.py                          symcomp alone, to the screen
    python benchmarks/stability.py --write                  and into its column of the page
    python benchmarks/stability.py --peers PYTHON --write   with PyTensor and JAX; PYTHON is an
                                                            interpreter that has both
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from stability_cases import CASES, Case

PAGE = Path(__file__).resolve().parent.parent / "docs" / "stability.md"
WITHIN = 4.0
mp.mp.dps = 60


# -- the truth


class Exact:
    """The namespace of arrays of mpmath's numbers."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = np.frompyfunc(getattr(mp, name), 1, 1)
        return lambda x: function(x)

    constant = staticmethod(lambda x: exact(x))
    sum = staticmethod(lambda x: x.sum())
    mean = staticmethod(lambda x: x.sum() / x.size)
    prod = staticmethod(lambda x: x.prod())
    dot = staticmethod(lambda a, b: a.dot(b))
    det = staticmethod(lambda a: mp.det(mp.matrix(a.tolist())))
    inv = staticmethod(lambda a: exact(np.array(mp.inverse(mp.matrix(a.tolist())).tolist())))

    @staticmethod
    def log(x: Any) -> Any:
        return np.frompyfunc(mp.log, 1, 1)(x)


def exact(x: Any) -> Any:
    """Return an array of numbers of 60 digits."""
    return np.frompyfunc(mp.mpf, 1, 1)(np.asarray(x)) if np.ndim(x) else mp.mpf(float(x))


def truth(case: Case, point: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Compute the value, and for each argument its derivative or, unless the expression is
    elementwise, its Jacobian: elements of the result times elements of the argument.
    """
    at = [exact(x) for x in point]
    value = _limit(case, at)
    slopes = []
    for i, x in enumerate(point):
        if case.elementwise:
            slopes.append(_slope(case, at, i, exact(np.ones(x.shape))))
            continue
        columns = [_slope(case, at, i, exact(way)) for way in unit_vectors(x.shape)]
        slopes.append(np.stack([np.ravel(np.asarray(c, object)) for c in columns], axis=-1))
    return {"value": [value], "gradient": slopes, "R-op": slopes}


def unit_vectors(shape: tuple[int, ...]) -> Any:
    """Return all arrays of a shape with a single 1, and zeros elsewhere."""
    return np.eye(int(np.prod(shape))).reshape(-1, *shape)


def _limit(case: Case, at: list[Any]) -> Any:
    """Evaluate the expression; where it is 0 / 0 or 0 log 0, its limit."""
    with mp.workdps(1500):
        try:
            return case.expression(Exact(), *at)
        except (ZeroDivisionError, ValueError):
            return case.expression(Exact(), *(x + mp.mpf(10) ** -700 for x in at))


def _slope(case: Case, at: list[Any], i: int, way: Any) -> Any:
    """Compute the derivative with respect to argument i in a direction, by a difference of 1500
    digits.
    """
    with mp.workdps(1500):
        h = mp.mpf(10) ** -500
        ahead, behind = (
            _limit(case, [x + s * h * way if j == i else x for j, x in enumerate(at)])
            for s in (1, -1)
        )
        return (ahead - behind) / (2 * h)


def off(got: Any, true: Any) -> float:
    """Units in the last place, the worst of those places where the truth is a normal number."""
    worst = 0.0
    for z, t in zip(np.ravel(got), np.ravel(np.asarray(true, object)), strict=True):
        if isinstance(t, mp.mpc) or not mp.isfinite(t):
            continue
        rounded = float(t)
        if not np.isfinite(rounded) or 0 < abs(rounded) < np.finfo(float).tiny:
            continue
        if not np.isfinite(z):
            return float("inf")
        unit = mp.mpf(float(np.spacing(abs(rounded)))) if abs(t) > mp.mpf(10) ** -400 else None
        wrong = abs(mp.mpf(float(z)) - t)
        worst = max(worst, float(wrong / unit) if unit else (0.0 if z == 0 else float("inf")))
    return worst


# -- systems


def symcomp_system(case: Case, point: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Compute a case with symcomp."""
    symcomp = importlib.import_module("symcomp")
    tensor = importlib.import_module("symcomp.tensor")
    return _theano_like(case, point, tensor, symcomp.function, symcomp.grad, symcomp.gradient.Rop)


def pytensor_system(case: Case, point: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Compute a case with PyTensor."""
    pytensor = importlib.import_module("pytensor")
    tensor = importlib.import_module("pytensor.tensor")
    gradient = importlib.import_module("pytensor.gradient")
    forward = getattr(gradient, "pushforward", None) or gradient.Rop
    # Only its rewrites affect values; its compilers would take minutes for all these functions.
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_run")
    function = partial(pytensor.function, mode=mode)
    return _theano_like(case, point, tensor, function, pytensor.grad, forward)


class _Linear:
    """A tensor module with det, inv and constants under one name everywhere."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        if name not in ("det", "inv"):
            return getattr(self._tensor, name)
        linear = getattr(self._tensor, "nlinalg", None) or self._tensor.linalg
        old_name = {"inv": "matrix_inverse"}.get(name, name)
        return getattr(linear, old_name if hasattr(linear, old_name) else name)


def _theano_like(
    case: Case, point: tuple[Any, ...], tensor: Any, function: Any, grad: Any, forward: Any
) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    parts = _compiled.setdefault(case.name, {})
    for part, build in (("value", _value), ("gradient", _gradient), ("R-op", _r_op)):
        try:
            if part not in parts:
                kinds = {0: tensor.dscalar, 1: tensor.dvector, 2: tensor.dmatrix}
                xs = [kinds[x.ndim](f"x{i}") for i, x in enumerate(point)]
                z = case.expression(_Linear(tensor), *xs)
                compiled = partial(function, on_unused_input="ignore")
                parts[part] = build(case, xs, z, kinds, compiled, grad, forward)
            with np.errstate(all="ignore"):
                result[part] = parts[part](point)
        except Exception as problem:  # noqa: BLE001  (a system that fails gets its place in the table)
            kind = type(problem).__name__
            print(f"{case.name}, {part}: {kind}: {problem}"[:300], file=sys.stderr)
            result[part] = []
    return result


_compiled: dict[str, dict[str, Callable[[Any], list[Any]]]] = {}


def _value(case: Case, xs: Any, z: Any, kinds: Any, function: Any, *_: Any) -> Any:
    f = function(xs, [z])
    return lambda point: [np.asarray(v) for v in f(*point)]


def _gradient(case: Case, xs: Any, z: Any, kinds: Any, function: Any, grad: Any, _: Any) -> Any:
    if case.elementwise or z.ndim == 0:
        f = function(xs, grad(z.sum(), xs))
        return lambda point: [np.asarray(v) for v in f(*point)]
    way = kinds[z.ndim]("way")
    g = function([*xs, way], [z, *grad((way * z).sum(), xs)])

    def rows(point: tuple[Any, ...]) -> list[Any]:
        # The shape of the result is that of the first argument here.
        found = [g(*point, unit)[1:] for unit in unit_vectors(point[0].shape)]
        return [np.stack([np.ravel(row[i]) for row in found]) for i in range(len(xs))]

    return rows


def _r_op(case: Case, xs: Any, z: Any, kinds: Any, function: Any, _: Any, forward: Any) -> Any:
    ways = [kinds[x.ndim]("way") for x in xs]
    fs = [function([*xs, w], [forward(z, x, w)]) for x, w in zip(xs, ways, strict=True)]

    def columns(point: tuple[Any, ...]) -> list[Any]:
        if case.elementwise:
            ones = [np.ones(x.shape) for x in point]
            return [np.asarray(f(*point, one)[0]) for f, one in zip(fs, ones, strict=True)]
        return [
            np.stack([np.ravel(f(*point, unit)[0]) for unit in unit_vectors(x.shape)], axis=-1)
            for f, x in zip(fs, point, strict=True)
        ]

    return columns


def jax_system(case: Case, point: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Compute a case with JAX, compiled."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    module = _Jax(jax)

    def f(*xs: Any) -> Any:
        return case.expression(module, *xs)

    at = tuple(jax.numpy.asarray(x, "float64") for x in point)
    places = tuple(range(len(at)))
    if case.elementwise:
        backward = jax.grad(lambda *xs: f(*xs).sum(), argnums=places)
        ones = [jax.numpy.ones_like(x) for x in at]
        zeros = [jax.numpy.zeros_like(x) for x in at]
        forward = [
            jax.jvp(f, at, tuple(ones[j] if j == i else zeros[j] for j in places))[1]
            for i in places
        ]
        slopes, ahead = jax.jit(backward)(*at), forward
    else:
        slopes = jax.jit(jax.jacrev(f, argnums=places))(*at)
        ahead = jax.jit(jax.jacfwd(f, argnums=places))(*at)
    return {
        "value": [np.asarray(jax.jit(f)(*at))],
        "gradient": [np.asarray(g) for g in slopes],
        "R-op": [np.asarray(g) for g in ahead],
    }


class _Jax:
    def __init__(self, jax: Any) -> None:
        self._places = (jax.numpy, jax.scipy.special, jax.numpy.linalg)

    def __getattr__(self, name: str) -> Any:
        if name == "constant":
            return self._places[0].asarray
        return next(getattr(place, name) for place in self._places if hasattr(place, name))


SYSTEMS = {"symcomp": symcomp_system, "pytensor": pytensor_system, "jax": jax_system}
PARTS = ("value", "gradient", "R-op")


def judge(system: str, case: Case) -> dict[str, float]:
    """Units in the last place that a system is off, for the three parts of a case."""
    worst = dict.fromkeys(PARTS, 0.0)
    for point in case.points:
        got, true = SYSTEMS[system](case, point), truth(case, point)
        for part in PARTS:
            pairs = list(zip(got[part], true[part], strict=False))
            errors = [off(z, t) for z, t in pairs] if len(pairs) == len(true[part]) else [np.inf]
            worst[part] = max(worst[part], *errors)
    return worst


# -- the table


def entry(units: dict[str, float]) -> str:
    """One cell: a number where all is well, else the parts that are off."""
    if max(units.values()) <= WITHIN:
        return "ok"
    return ", ".join(f"{part} {_amount(u)}" for part, u in units.items() if u > WITHIN)


def _amount(units: float) -> str:
    if not np.isfinite(units):
        return "∞"
    return f"{units:.0f}" if units < 1000 else f"1e{int(np.log10(units))}"


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Return the table in Markdown."""
    titles = {"symcomp": "symcomp", "pytensor": "PyTensor", "jax": "JAX"}
    lines = [
        "| expression | " + " | ".join(titles[s] for s in results) + " |",
        "|---" * (len(results) + 1) + "|",
    ]
    for i, case in enumerate(CASES):
        cells = [entry(results[s][i]) for s in results]
        lines.append("| `" + case.name + "` | " + " | ".join(cells) + " |")
    count = [sum(max(u.values()) <= WITHIN for u in results[s]) for s in results]
    lines.append(
        "| **within 4 ulp** | " + " | ".join(f"**{c} of {len(CASES)}**" for c in count) + " |"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", choices=SYSTEMS, help="measure this one and print JSON")
    parser.add_argument("--peers", help="an interpreter that has PyTensor and JAX")
    parser.add_argument("--write", action="store_true", help="put the table into docs/stability.md")
    arguments = parser.parse_args()
    if arguments.system:
        print(json.dumps([judge(arguments.system, case) for case in CASES]))
        return
    results = {"symcomp": [judge("symcomp", case) for case in CASES]}
    for system in ("pytensor", "jax") if arguments.peers else ():
        command = [arguments.peers, __file__, "--system", system]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        results[system] = json.loads(done.stdout.splitlines()[-1])
    text = table(results)
    print(text)
    if arguments.write:
        head, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- table -->\n")
        old, end, tail = rest.partition("<!-- end -->")
        text = text if arguments.peers else renewed(old, text)
        PAGE.write_text(f"{head}{start}{text}\n{end}{tail}", encoding="utf-8")


def renewed(old: str, new: str) -> str:
    """Return the old table with the first column of results from the new one."""
    first = {row.split(" | ")[0]: row.split(" | ") for row in new.splitlines()[2:]}
    lines = old.strip().splitlines()
    for i, line in enumerate(lines[2:], 2):
        name, _, *others = line.split(" | ")
        lines[i] = " | ".join([name, first[name][1].removesuffix(" |"), *others])
    return "\n".join(lines)


if __name__ == "__main__":
    main()
