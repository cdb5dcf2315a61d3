"""Features of calls: updates, mutable arguments, branches, ops of graphs, draws."""

from __future__ import annotations

import numpy as np

import symcomp
import symcomp.tensor as T
from symcomp import typed_list
from symcomp.ifelse import ifelse
from symcomp.tests.golden.functions.values import numbers, parameter
from symcomp.tests.golden.registry import Golden, golden


@golden
def updates_in_place() -> Golden:
    """Update a counter, a sum, a row of a table, and swap two shared variables."""
    x = T.dmatrix("x")
    count = symcomp.shared(np.int64(0), "count")
    total, table = parameter("total", 4, dtype="float64"), parameter("table", 3, 4, dtype="float64")
    a, b = parameter("a", 4, dtype="float64"), parameter("b", 4, dtype="float64")
    updates = {
        count: count + 1, total: total * 0.9 + x.sum(axis=0),
        table: T.set_subtensor(table[count % 3], x[0]), a: b, b: a,
    }  # fmt: skip
    return Golden([x], (total * x).sum(), [numbers(3, 4)], updates)


@golden
def mutable_inputs() -> Golden:
    """Overwrite an argument, and return a view of another."""
    x, y = T.dvectors("x", "y")
    inputs = [symcomp.In(x, mutable=True), symcomp.In(y, borrow=True)]
    outputs = [T.exp(x) - y, symcomp.Out(y[::-1], borrow=True)]
    return Golden(inputs, outputs, [numbers(5), numbers(5)])


@golden
def branches() -> Golden:
    """Nest `ifelse`; each branch computes its values lazily."""
    c, x, a = T.lscalar("c"), T.dvector("x"), T.dmatrix("a")
    both = T.exp(x)
    inner = ifelse(T.lt(both.sum(), 3), T.dot(a, both), both * 2)
    chosen = ifelse(c, inner, T.tanh(T.dot(a, T.dot(a, x))))
    return Golden([c, x, a], chosen, [np.int64(1), numbers(3), numbers(3, 3)])


@golden
def branches_with_gradients() -> Golden:
    """Choose two results by one condition, and differentiate both."""
    c, x, y = T.dscalar("c"), T.dvector("x"), T.dvector("y")
    a, b = ifelse(T.gt(c, 0), [x**2, x * y], [T.sin(y), x + y])
    slopes = symcomp.grad((a + b).sum(), [x, y])
    return Golden([c, x, y], [a, b, *slopes], [np.float64(1), numbers(4), numbers(4)])


@golden
def op_from_graph() -> Golden:
    """Apply an OpFromGraph that is not inlined, and differentiate it."""
    x, y = T.dvectors("x", "y")
    wave = symcomp.OpFromGraph([x, y], [T.sin(x) * y, T.exp(y)], name="wave")
    a, b = T.dvectors("a", "b")
    first, second = wave(a, b)
    again, _ = wave(first, second)
    slope = symcomp.grad(again.sum(), a)
    return Golden([a, b], [again, slope], [numbers(4), numbers(4)])


@golden
def op_from_graph_inlined() -> Golden:
    """Apply an inlined OpFromGraph that overrides its gradient."""
    x, y = T.dvectors("x", "y")

    def clipped(inputs, output_grads):
        return [T.clip(output_grads[0] * inputs[1], -1, 1), output_grads[0] * inputs[0]]

    product = symcomp.OpFromGraph([x, y], [x * y], inline=True, lop_overrides=None,
                                  grad_overrides=clipped, name="product")  # fmt: skip
    a, b = T.dvectors("a", "b")
    z = product(product(a, b), b + 1)
    return Golden([a, b], [z, *symcomp.grad((5 * z).sum(), [a, b])], [numbers(4), numbers(4)])


@golden
def python_op() -> Golden:
    """Run a Python op between native instructions."""

    @symcomp.as_op([T.dmatrix], [T.dvector])
    def python_norms(a):
        return np.linalg.norm(a, axis=1)

    x = T.dmatrix("x")
    norms = python_norms(T.exp(x))
    return Golden([x], [x / norms[:, None], norms.sum()], [numbers(3, 4)])


@golden
def random_draws() -> Golden:
    """Draw natively and by NumPy, with scalars and arrays as parameters."""
    stream, mean = T.random.RandomStream(seed=11), T.dvector("mean")
    draws = [stream.uniform(size=(2, 3)), stream.normal(mean, 2.0), stream.integers(0, 9, size=4)]
    draws += [stream.permutation(5), stream.gamma(2.0, size=3), stream.bernoulli(0.3, size=4)]
    draws += [stream.categorical(T.nnet.softmax(mean[None, :])[0])]
    return Golden([mean], draws, [numbers(3)])


@golden
def random_states() -> Golden:
    """Draw from a state that is an argument; differentiate with respect to a parameter."""
    state, scale = T.random.state("state"), T.dscalar("scale")
    after, a = T.random.normal(state, size=4)
    _, b = T.random.gamma(after, scale, size=3)
    slope = symcomp.grad((a * scale).sum() + b.sum(), scale)
    return Golden([state, scale], [a, b, slope], [np.random.default_rng(1), np.float64(2)])


@golden
def typed_lists() -> Golden:
    """Make a list of arrays of different lengths."""
    x, y = T.dvectors("x", "y")
    made = typed_list.make_list([x, y * 2, T.exp(x)])
    longer = typed_list.append(made, x[1:])
    outputs = [typed_list.length(longer), longer[1], longer[0].sum()]
    return Golden([x, y], outputs, [numbers(4), numbers(3)])
