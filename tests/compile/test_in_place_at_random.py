"""Random programs update their shared variables in place as they do with arrays of their own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.tests.compile.test_in_place import PLAIN, Refuse, shared


def _step(kind, a, b, i):
    return {
        "scale": lambda: a * 0.5, "minus": lambda: a - 0.1 * b, "dot": lambda: T.dot(a, b) * 0.1,
        "gemm": lambda: a - 0.1 * T.dot(b.T, b), "turn": lambda: a.T, "tanh": lambda: T.tanh(a),
        "rows": lambda: T.inc_subtensor(a[i], b[:2]), "view": lambda: a[::-1], "same": lambda: a,
        "refuse": lambda: Refuse()(abs(a)), "if": lambda: ifelse(T.gt(a.sum(), 1), a, b),
        "twice": lambda: a + a.T, "row": lambda: a + b.sum(axis=0),
    }[kind]()  # fmt: skip


KINDS = "scale minus dot gemm turn tanh rows view same refuse if twice row".split()


def _updating(steps, news, results, borrow, mode):
    """Make a random function of indices and a matrix, and the shared variables that it updates."""
    i, x = T.lvector("i"), T.dmatrix("x")
    params = [shared(np.linspace(-1, k, 9).reshape(3, 3), f"w{k}") for k in range(3)]
    pool = [*params, x]
    for kind, a, b in steps:
        pool.append(_step(kind, pool[-1 - a % len(pool)], pool[-1 - b % len(pool)], i))
    new = [
        p - 0.1 * pool[-1 - k % len(pool)] if k % 3 else pool[-1 - k % len(pool)]
        for p, k in zip(params, news, strict=True)
    ]
    f = symcomp.function(
        [i, x],
        [symcomp.Out(pool[k % len(pool)], borrow=borrow) for k in results],
        updates=list(zip(params, new, strict=True)),
        mode=mode,
        on_unused_input="ignore",
    )
    return f, params


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99)), max_size=8),
    st.lists(st.integers(0, 99), min_size=3, max_size=3),
    st.lists(st.integers(0, 99), max_size=2),
    st.booleans(),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_random_programs_update_the_same(steps, news, results, borrow, shape):
    calls = [([0, 1], (3, 3)), ([2, 2], shape), ([0, 3], (3, 3)), ([-1, 0], (3, 3))]
    found = []
    for mode in (None, PLAIN):
        f, params = _updating(steps, news, results, borrow, mode)
        values = []
        for index, lengths in calls:
            saved = [p.get_value() for p in params]
            try:
                got = f(index, np.full(lengths, 0.3))
            except (IndexError, ValueError):
                got = [np.asarray("refused")]
                for p, want in zip(params, saved, strict=True):
                    np.testing.assert_array_equal(p.get_value(), want)
            values += [*got, *(p.get_value() for p in params)]
        found.append(values)
    for a, b in zip(*found, strict=True):
        if a.dtype.kind == "U":
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
