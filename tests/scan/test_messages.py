"""Errors of loops name the argument, its type, and what would fix it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError, StepError

x, s, n = T.dvector("x"), T.dscalar("s"), T.lscalar("n")
scan, loop = symcomp.scan, symcomp.loop
FOLDS = (symcomp.reduce, symcomp.foldl, symcomp.foldr)
OBJECT = object()

STEPS: list[tuple[Callable[[], Any], str]] = [
    (lambda: scan(None, x), "^scan: fn is None; it must be a function"),
    (lambda: scan(x, lambda row: row), r"^scan: fn is x \(float64 vector\); it must be a function"),
    (lambda: scan(3, x, name="encoder"), "^encoder: fn is int 3"),
    (lambda: symcomp.map(None, x), "^map: fn is None"),
    *((lambda fold=fold: fold(None, x, s), "fn is None") for fold in FOLDS),
    (lambda: symcomp.scan_checkpoints(None, x, s), "^checkpointscan_fn: fn is None"),
    (lambda: loop(None, s, x), "^loop: step is None"),
    (
        lambda: scan(lambda a, b, c: a, x),
        r"step <lambda>\(a, b, c\) cannot take the 1 argument .*rows of sequences: x\[t\] "
        r"\(float64 scalar\)\): missing .* 'b'.*pass more sequences, outputs_info or non_sequences",
    ),
    (
        lambda: scan(lambda a: a, {"input": x, "taps": [-1, 0]}, [s, None], n),
        r"cannot take the 4 arguments .*x\[t-1\] \(float64 scalar\), x\[t\] .*earlier outputs: "
        r"s\[t-1\] \(float64 scalar\); non_sequences: n \(int64 scalar\)\): too many",
    ),
    (lambda: scan(lambda: s, x), r"<lambda>\(\) cannot take the 1 argument"),
    (lambda: scan(lambda a: a, n_steps=3), "cannot take the 0 arguments .*there are none"),
    (lambda: symcomp.map(lambda a, b: a, x), r"^map: the step <lambda>\(a, b\) cannot take the 1"),
    (lambda: symcomp.foldr(lambda a: a, x, s), "^foldr: the step .* cannot take the 2 arguments"),
    (
        lambda: loop(lambda carry: (carry, None), {"sum": s}, (x, x)),
        r"carry: \{'sum': s\}; row of xs: \(x\[t\], x\[t\]\)\): too many.*into the carry",
    ),
]


@pytest.mark.parametrize(("build", "message"), STEPS, ids=range(len(STEPS)))
def test_steps_that_do_not_fit(build: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


def test_errors_inside_a_step_pass() -> None:
    def needs_two(a: Any, b: Any) -> Any:
        return a + b

    with pytest.raises(TypeError, match=r"needs_two\(\) missing 1 required positional argument"):
        scan(lambda row: needs_two(row), x)


def test_callables_of_all_kinds_are_steps() -> None:
    class Step:
        def __call__(self, row: Any, *rest: Any, scale: float = 2.0) -> Any:
            return row * scale

    for step in (Step(), Step().__call__, np.negative, T.exp, abs):
        y, _ = scan(step, x)
        assert y.eval({x: [0.0]}).shape == (1,)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda row: None, "returned None: return an output .* is a `return` missing"),
        (lambda row: symcomp.until(row > 0), "returned until alone, no output and no update"),
        (lambda row: (None, symcomp.until(row > 0)), "returned until alone"),
        (lambda row: [], r"returned \[\], no output and no update"),
        (lambda row: ([], {}), r"returned \(\[\], \{\}\), no output"),
        (lambda row: [row, OBJECT], "output 1 of the step is .*object.*, which is no variable"),
        (lambda row: [row, None], "output 1 of the step is None"),
        (
            lambda row: (row, symcomp.until(row > 1), symcomp.until(row < 0)),
            r"two conditions: combine them, as until\(a \| b\)",
        ),
        (lambda row: (row, row, {}), "the step returned 3 parts"),
    ],
)
def test_steps_that_return_nothing_of_use(step: Any, message: str) -> None:
    """Theano raises a ValueError; it is a TypeError as well."""
    for build in (scan, symcomp.map):
        with pytest.raises(StepError, match=message) as caught:
            build(step, x)
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, TypeError)


def test_outputs_that_outputs_info_does_not_describe() -> None:
    with pytest.raises(ValueError, match=r"2 outputs; .* 1: .*Returned: s\[t-1\] \(float64 scal"):
        scan(lambda a: (a, a), outputs_info=[s], n_steps=2)


ARGUMENTS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: scan(lambda a: a, OBJECT), DTypeError, "sequence 0 is object .*no tensor: pass a ten"),
    (lambda: scan(lambda a: a, [x, "abc"]), DTypeError, "sequence 1 is str 'abc', which is no ten"),
    (lambda: scan(lambda a: a, s), ShapeError, r"sequence 0 \(s\) is a float64 scalar.* no rows"),
    (lambda: scan(lambda: s, {"input": x, "taps": []}), ValueError, r"has no taps: give one at"),
    (lambda: scan(lambda a: a, {"taps": [0]}), ValueError, r"without 'input': pass dict\(input=x"),
    (lambda: scan(lambda a: a, {"input": x, "tap": 0}), ValueError, "key 'tap'; the keys are inp"),
    (lambda: scan(lambda a: a, {"input": x, "taps": [0.5]}), TypeError, "tap 0.5 is no integer: "),
    (lambda: scan(lambda a: a, np.ones(2), n_steps=3), ShapeError, r"pass a longer one than .*\(2"),
    (lambda: scan(lambda a: a, None, OBJECT, n_steps=2), DTypeError,
     r"outputs_info of output 0 is object .*no tensor: .*dict\(initial=\.\.\., taps"),
    (lambda: scan(lambda a: a, None, {"initial": s, "taps": [-2]}, n_steps=2), ShapeError,
     r"output 0 \(s\): the initial value is float64 scalar; .* need 2 rows"),
    (lambda: scan(lambda a: a, None, {"taps": [-2]}, n_steps=2), ValueError, "but no initial valu"),
    (lambda: scan(lambda a, b: a, x, None, {"w": s}), DTypeError, "non_sequence 0 is dict .*clos"),
    (lambda: scan(lambda a: a, x, n_steps=OBJECT), DTypeError, "n_steps is object .* integer scal"),
    (lambda: scan(lambda a: a, x, n_steps=x), DTypeError, r"n_steps is x \(float64 vector\)"),
    (lambda: scan(lambda: s), ValueError, "n_steps is missing.*pass n_steps or a sequence"),
    (lambda: scan(lambda a: a, x, go_backwards="no"), TypeError, "go_backwards is str 'no'; it mu"),
    (lambda: scan(lambda a: a, x, name=3), TypeError, "scan: name is int 3; it must be a str"),
    (lambda: symcomp.until(OBJECT), DTypeError, "until: the condition is object .*pass a scalar"),
    (lambda: symcomp.map(lambda a: a, None), ValueError, "^map: sequences is None; at least one"),
    (lambda: symcomp.foldl(lambda a: a, [], s), ValueError, r"^foldl: sequences is \[\]; at least"),
    (lambda: symcomp.scan_checkpoints(lambda a, h: h, x, s, save_every_N="a"), TypeError,
     "save_every_N is str 'a'; it must be an int"),
    (lambda: symcomp.scan_checkpoints(lambda a, h: h, s, s), ShapeError, "sequence 0 is a float64"),
    (lambda: loop(lambda c, _: (c, None), OBJECT, x), DTypeError, "loop: state 0 of init is obje"),
    (lambda: loop(lambda c, _: (c, None), s), ValueError, "n_steps is missing.*pass length or xs"),
    (lambda: loop(lambda c, _: (OBJECT, None), s, x), DTypeError, "state 0, as the step returns"),
    (lambda: loop(lambda c, _: (c, OBJECT), s, x), DTypeError, "leaf 0 of y, as the step returns"),
    (lambda: loop(lambda c, _: None, s, x), TypeError, r"must return \(carry, y\), .* None: y is"),
    (lambda: loop(lambda c, _: (c, None, 3), s, x), TypeError, "third result .*, it is int 3"),
    (lambda: loop(lambda c, _: ((c, c), None), s, x), TypeError, "with a carry like init"),
    (lambda: loop(lambda c, _: (x, None), s, x), ShapeError, "Give init the shape that the step"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "error", "message"), ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_that_do_not_fit(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()
