"""Functions called by many threads at once: guards, loops, updates, profiles, memory given back."""

import threading

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp.ifelse import ifelse
from symcomp.tensor import slinalg
from symcomp.tests.cvm.together import together

THREADS, CALLS = 4, 250


def functions():
    x, m, n = T.dvector("x"), T.dmatrix("m"), T.iscalar("n")
    state, _ = symcomp.scan(lambda a: a / 2 + 1, outputs_info=T.zeros((4,)), n_steps=n)
    system = T.dot(m, m.T) + 100 * T.eye(m.shape[0])
    return {
        "sums": symcomp.function([x], T.exp(x).sum() + T.dot(x, x)),
        "chosen": symcomp.function([x], [x[T.gt(x, 0).nonzero()], T.sort(x)], profile=True),
        "loop": symcomp.function([n], state),
        "branch": symcomp.function([x], ifelse(T.gt(x.sum(), 0), x * 2, x - 1)),
        "solved": symcomp.function([m], slinalg.solve(system, m)),
    }


def call_once(found, rng):
    """Call each function on new shapes, and compare with NumPy."""
    x, m = rng.normal(size=rng.integers(1, 40)), rng.normal(size=(rng.integers(1, 9), 5))
    n = int(rng.integers(1, 9))
    np.testing.assert_allclose(found["sums"](x), np.exp(x).sum() + x @ x, rtol=1e-12)
    chosen, ordered = found["chosen"](x)
    np.testing.assert_array_equal(chosen, x[x > 0])
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_allclose(found["loop"](n)[-1], 2 - 2 * 0.5**n)
    np.testing.assert_allclose(found["branch"](x), x * 2 if x.sum() > 0 else x - 1)
    want = np.linalg.solve(m @ m.T + 100 * np.eye(len(m)), m)
    np.testing.assert_allclose(found["solved"](m), want, atol=1e-12)


def test_threads_call_grow_read_and_free_the_same_plans():
    found = functions()
    total = symcomp.shared(np.zeros(8), name="total")
    add = symcomp.function([], total.sum(), updates={total: total + 1})

    def work(seed):
        rng = np.random.default_rng(seed)
        for k in range(CALLS):
            call_once(found, rng)
            add()
            seen = total.get_value()
            assert (seen == seen[0]).all(), "half an update"
            if k % 50 == seed:
                found["chosen"].plan()
                found["sums"].free()

    together(THREADS, work)
    assert found["chosen"].profile.calls == THREADS * CALLS
    # An update reads before it waits for its turn, so that some are lost; none is counted twice.
    assert 0 < total.get_value()[0] <= THREADS * CALLS


def test_an_op_in_python_may_wait_for_another_thread():
    x = T.dvector("x")
    inner = symcomp.function([x], x + 1)
    ready = threading.Event()

    @symcomp.as_op(itypes=[T.dvector], otypes=[T.dvector])
    def waits(value):
        while not ready.is_set():  # with no call that lets others run
            pass
        return inner(value)

    f = symcomp.function([x], waits(x) * 2)
    results = []
    thread = threading.Thread(target=lambda: results.append(f(np.ones(3))))
    thread.start()
    np.testing.assert_array_equal(inner(np.zeros(2)), np.ones(2))
    ready.set()
    thread.join()
    np.testing.assert_array_equal(results[0], np.full(3, 4.0))
