"""``loop``: states of any structure, dtypes decided when built."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.evaluate import evaluate
from symcomp.errors import ShapeError
from symcomp.tests.harness import check

Pair = namedtuple("Pair", "left right")


def value(y: Any, values: Any = None) -> Any:
    return evaluate([y], values or {})[0]


def test_nested_carry() -> None:
    def build(x: Any, p: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            a, rest = carry["a"], carry["rest"]
            new = {"a": a + x, "rest": Pair(rest.left * a.sum(), [rest.right[0] - x])}
            return new, (a, {"last": rest.left})

        end, ys = symcomp.loop(step, {"a": p, "rest": Pair(T.constant(1.0), [p * 2])}, x)
        assert isinstance(end["rest"], Pair)
        return [end["a"], end["rest"].left, end["rest"].right[0], ys[0], ys[1]["last"]]

    def by_hand(x: Any, p: Any) -> Any:
        a, left, right, rows, lefts = p, np.asarray(1.0), p * 2, [], []
        for row in x:
            rows.append(a)
            lefts.append(left)
            a, left, right = a + row, left * a.sum(), right - row
        return [a, np.asarray(left), right, np.array(rows), np.array(lefts)]

    rng = np.random.default_rng(0)
    check(build, rng.normal(size=(4, 2)), rng.normal(size=2), expected=by_hand)


def test_dtypes_are_promoted() -> None:
    x = T.fvector("x")
    (total, count, flag), means = symcomp.loop(
        lambda c, x: ((c[0] + x, c[1] + 1, c[2]), c[0] / (c[1] + 1)), (0, 0, True), x
    )
    assert (total.dtype, count.dtype, flag.dtype) == ("float64", "int64", "bool")
    given = {x: np.array([1, 2, 4], np.float32)}
    assert value(total, given) == 7
    assert value(count, given) == 3
    assert value(means, given).tolist() == [0, 0.5, 1]


def test_promotion_spreads_from_state_to_state() -> None:
    (a, b, c), _ = symcomp.loop(lambda s, _: ((s[1], s[2], s[2] / 2), None), (1, 2, 3), length=3)
    assert [x.dtype for x in (a, b, c)] == ["float64"] * 3
    assert [float(value(x)) for x in (a, b, c)] == [1.5, 0.75, 0.375]


def test_no_steps_give_the_start() -> None:
    n = T.lscalar("n")
    end, ys = symcomp.loop(lambda c, _: (c * 2, c), T.constant(3.0), length=n)
    assert value(end, {n: np.asarray(0)}) == 3
    assert value(end, {n: np.asarray(2)}) == 12
    assert value(ys, {n: np.asarray(0)}).shape == (0,)


def test_reverse() -> None:
    x = T.dvector("x")
    end, ys = symcomp.loop(lambda s, x: (10 * s + x, s), T.constant(0.0), x, reverse=True)
    given = {x: np.array([1.0, 2.0, 3.0])}
    assert value(end, given) == 321
    assert value(ys, given).tolist() == [32, 3, 0]


def test_until() -> None:
    end, ys = symcomp.loop(
        lambda x, _: (x / 2, x, symcomp.until(x < 1)), T.constant(8.0), length=100
    )
    assert value(end) == 0.25
    assert value(ys).tolist() == [8, 4, 2, 1, 0.5]


def test_updates_must_be_asked_for() -> None:
    seed = symcomp.shared(1, name="seed")
    seed.default_update = seed * 3
    step = lambda s, _: (s + seed, None)  # noqa: E731
    with pytest.raises(ValueError, match="updates seed: pass return_updates=True"):
        symcomp.loop(step, 0, length=3)
    end, _, updates = symcomp.loop(step, 0, length=3, return_updates=True)
    assert symcomp.function([], end, updates=updates)() == 13
    assert seed.get_value() == 27


def test_bad_input() -> None:
    x = T.dvector("x")
    with pytest.raises(TypeError, match=r"makes \(\*, \*\) of the carry \*"):
        symcomp.loop(lambda c, x: ((c, c), None), 0.0, x)
    with pytest.raises(TypeError, match=r"must return \(carry, y\)"):
        symcomp.loop(lambda c, x: c, 0.0, x)
    with pytest.raises(ShapeError, match="state 0 starts as float64 scalar, and the step makes it"):
        symcomp.loop(lambda c, x: (c + T.ones(2), None), 0.0, x)
    with pytest.raises(ValueError, match="n_steps is missing"):
        symcomp.loop(lambda c, x: (c, None), 0.0)
    with pytest.raises(TypeError, match="third result of the step"):
        symcomp.loop(lambda c, x: (c, None, c > 1), 0.0, x)
