"""The bytes that a memory report tells as allocated, compared with counted allocations."""

import gc
import tracemalloc

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.config import config
from symcomp.ifelse import ifelse
from symcomp.tests.golden.registry import BUILDERS
from symcomp.tests.golden.sections import FLAGS

# Loops, branches, results that are copies, and others that can be called with larger arrays.
NAMES = """
    branches branches_with_gradients checkpointed_gradient cumulative_functions decompositions
    jacobian_and_hessian layouts loop_second_derivative loop_until loop_with_taps loop_writing_rows
    mutable_inputs nested_loop_gradient products_of_other_dtypes results_of_several_lengths
    softmax_cross_entropy statistics writes_to_parts
""".split()
# Calls of Python, and of C functions that ask for memory themselves.
WITH_OWN_MEMORY = ["fourier", "random_draws"]


@pytest.fixture(autouse=True)
def kernels():
    # Another thread that optimizes code would allocate, too.
    with config.change_flags(kernels=True, linker="cvm", early_code=False):
        yield


def allocated(f, *arguments):
    """Return the bytes that the report tells, and the bytes that a call of the plan takes."""
    f.free()
    gc.collect()
    told, before = f.memory_report(*arguments).allocated, f.repeated
    tracemalloc.start()
    try:
        f(*arguments)
        took = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f.repeated == before + 1
    return told, took


def agree(told, took):
    """Return whether two numbers of bytes are the same, but for objects of Python."""
    return abs(told - took) < 4000 + 0.02 * took


def larger(arguments, elements=10_000):
    """Return the arguments, repeated along all axes to about a number of elements."""
    arrays = [x for x in arguments if isinstance(x, np.ndarray) and x.ndim]
    axes = max(x.ndim for x in arrays)
    times = int((elements / sum(x.size for x in arrays)) ** (1 / axes))
    rng = np.random.default_rng(0)
    found = []
    for x in arguments:
        if isinstance(x, np.ndarray) and x.ndim:
            x = np.tile(x, [times if n > 1 else 1 for n in x.shape])
            if x.dtype.kind == "f":
                x = (x + 0.01 * rng.normal(size=x.shape)).astype(x.dtype)
        found.append(x)
    return found


def copies(values):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in values]


@pytest.mark.parametrize("name", [*NAMES, *WITH_OWN_MEMORY])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_golden_functions(name):
    with config.change_flags(**FLAGS | {"kernels": True, "early_code": False}):
        golden = BUILDERS[name]()
        f = symcomp.function(golden.inputs, golden.outputs, updates=golden.updates, name=name)
        arguments = larger(golden.arguments)
        f(*copies(arguments))
        f(*copies(arguments))
        told, took = allocated(f, *copies(arguments))
    if name in WITH_OWN_MEMORY:
        assert told <= took
    else:
        assert agree(told, took), f"told {told}, took {took}"


def test_results_that_are_copied():
    x = T.dvector("x")
    e = T.exp(x)
    f = symcomp.function([x], [e[::2], e[1::2]])
    value = np.zeros(200_000)
    f(value)
    told, took = allocated(f, value)
    assert agree(told, took) and told == pytest.approx(3_200_000, rel=0.01)


def test_the_way_that_takes_most_of_branches():
    c, x = T.lscalar("c"), T.dvector("x")
    larger_one = T.sort(T.exp(x).repeat(8))
    f = symcomp.function([c, x], ifelse(c, x[0], larger_one[3] + larger_one.sum()))
    value = np.zeros(100_000)
    f(1, value)
    small = f.memory_report(1, value).allocated
    assert small < 1000
    for choice in (0, 0, 1):
        f(choice, value)
    told, took = allocated(f, 0, value)
    assert agree(told, took) and took > 6_000_000
    assert f.memory_report(1, value).allocated == told


def test_arrays_made_before_a_guard():
    c, x = T.lscalar("c"), T.dmatrix("x")
    y = T.exp(x)
    f = symcomp.function([c, x], [y, ifelse(c, T.dot(y, y).sum(), T.sort(y.flatten())[0])])
    value = np.zeros((400, 400))
    for choice in (1, 0, 1, 0):
        f(choice, value)
    told, took = allocated(f, 0, value)
    assert agree(told, took)
    assert allocated(f, 1, value)[1] < took


def test_steps_that_take_turns():
    """The memory of each branch that steps take is kept for the next step."""
    x, w = T.dmatrix("x"), T.dmatrix("w")

    def step(row, w):
        product, least = T.dot(w, T.outer(row, row)).sum(), T.sort(T.exp(w).flatten())[0]
        return ifelse(T.gt(row[0], 0), product, least)

    states, _ = symcomp.scan(step, x, non_sequences=w)
    f = symcomp.function([x, w], states)
    rows = np.where(np.arange(8) % 2, 1.0, -1.0)[:, None] * np.ones((8, 200))
    for _ in range(3):
        f(rows, np.eye(200))
    told, took = allocated(f, rows, np.eye(200))
    assert agree(told, took)


@pytest.mark.parametrize("use", [lambda s: s, lambda s: T.dot(s.T, s).sum()])
def test_rows_that_grow(use):
    """A loop that may end early makes room for rows as it needs them, and arrays at its end."""
    x, end = T.dvector("x"), T.lscalar("end")
    states, _ = symcomp.scan(
        lambda h: (h + 1, symcomp.until(h[0] >= end)), outputs_info=[x], n_steps=10_000
    )
    f = symcomp.function([x, end], use(states))
    value = np.zeros(200)
    for steps, rows in ((700, 1024), (20, 64)):
        for _ in range(3):
            f(value, steps)
        told, took = allocated(f, value, steps)
        assert agree(told, took) and took > 8 * 200 * (rows + steps)


def test_rows_that_grow_in_steps_of_another_loop():
    def step(row):
        states, _ = symcomp.scan(
            lambda h: (h + 1, symcomp.until(h[0] >= 150)), outputs_info=[row], n_steps=1000
        )
        return states.sum(0)

    x = T.dmatrix("x")
    sums, _ = symcomp.scan(step, x)
    f = symcomp.function([x], sums)
    for _ in range(3):
        f(np.zeros((5, 200)))
    told, took = allocated(f, np.zeros((5, 200)))
    assert agree(told, took) and took > 8 * 200 * (256 + 150)
