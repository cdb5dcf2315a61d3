"""Gradients of whole programs beside those of JAX, where it is installed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.tests.programs.test_recurrent import (
    HIDDEN,
    STEPS,
    Elman,
    Gru,
    Lstm,
    batch,
    cost_of,
    parameters,
)

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax


class Jax:
    """The operations of a cell, for traced arrays."""

    tanh, dot, sigmoid = jnp.tanh, jnp.dot, staticmethod(jax.nn.sigmoid)


def cost_by_jax(cell: Any, p: Any, xs: Any, targets: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        x, target = row
        new = cell.step(x, h, p, Jax)
        return new, ((new[0] @ p["V"] + p["c"] - target) ** 2).sum()

    start = tuple(jnp.zeros((xs.shape[1], HIDDEN)) for _ in range(cell.n_states))
    return lax.scan(step, start, (xs, targets))[1].sum()


def agree(found: Any, wanted: Any) -> None:
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"checkpoint": "auto"}, {"checkpoint": "20 kB"}])
@pytest.mark.parametrize("cell", [Elman, Gru, Lstm])
def test_recurrent_networks(cell: Any, options: Any) -> None:
    values, (x, y) = parameters(cell), batch()
    p = {name: T.as_tensor_variable(v).type(name) for name, v in values.items()}
    xs, targets = T.dtensor3("xs"), T.dtensor3("targets")
    cost = cost_of(cell, p, xs, targets, **options)
    f = symcomp.function([xs, targets, *p.values()], symcomp.grad(cost, [*p.values(), xs]))
    slopes, gx = jax.grad(lambda p, xs: cost_by_jax(cell, p, xs, y), argnums=(0, 1))(values, x)
    agree(f(x, y, *values.values()), [*(slopes[name] for name in values), gx])


@pytest.mark.parametrize("cell", [Elman, Gru, Lstm])
def test_products_with_hessians(cell: Any) -> None:
    values, (x, y) = parameters(cell), batch()
    w = T.dmatrix("W")
    name = next(n for n in values if n.startswith("W"))
    p = {n: T.as_tensor_variable(v) for n, v in values.items()} | {name: w}
    xs, targets, v = T.dtensor3("xs"), T.dtensor3("targets"), T.dmatrix("v")
    slope = symcomp.grad(cost_of(cell, p, xs, targets), w)
    f = symcomp.function([xs, targets, w, v], symcomp.Rop(slope, w, v))
    direction = np.random.default_rng(3).normal(size=values[name].shape)
    gradient = jax.grad(lambda w: cost_by_jax(cell, {**values, name: w}, x, y))
    agree([f(x, y, values[name], direction)], [jax.jvp(gradient, (values[name],), (direction,))[1]])


def test_truncated_back_propagation() -> None:
    values, (x, _) = parameters(Elman), batch()
    w, xs = T.dmatrix("W"), T.dtensor3("xs")
    p = {n: T.as_tensor_variable(v) for n, v in values.items()} | {"W": w}
    for k in (1, 3, STEPS):
        for options in ({}, {"checkpoint": 2}):
            states, _ = symcomp.scan(
                lambda x, h: _symbolic_step(x, h, p),
                xs,
                T.zeros((xs.shape[1], HIDDEN)),
                truncate_gradient=k,
                **options,
            )
            f = symcomp.function([xs, w], symcomp.grad((states[-1] ** 2).sum(), [w, xs]))

            def last(w: Any, xs: Any, k: int = k) -> Any:
                h = jnp.zeros((xs.shape[1], HIDDEN))
                step = lambda h, x: (Elman.step(x, (h,), {**values, "W": w}, Jax)[0], None)  # noqa: E731
                h = lax.stop_gradient(lax.scan(step, h, xs[: STEPS - k])[0])
                return (lax.scan(step, h, xs[STEPS - k :])[0] ** 2).sum()

            agree(f(x, values["W"]), jax.grad(last, argnums=(0, 1))(values["W"], x))


def _symbolic_step(x: Any, h: Any, p: Any) -> Any:
    return T.tanh(T.dot(x, p["U"]) + T.dot(h, p["W"]) + p["b"])


def both(
    ours: Callable[..., Any], theirs: Callable[..., Any], *values: Any, rtol: float = 1e-9
) -> None:
    """Compute a scalar program and its gradients in all arguments."""
    inputs = [T.as_tensor_variable(v).type() for v in values]
    y = ours(*inputs)
    f = symcomp.function(inputs, [y, *symcomp.grad(y, inputs)])
    numbers = tuple(range(len(values)))
    value, slopes = jax.value_and_grad(theirs, argnums=numbers)(*map(jnp.asarray, values))
    for found, wanted in zip(f(*values), [value, *slopes], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-10)


def test_runge_kutta() -> None:
    """The end of a Lotka-Volterra system, by its parameters and its start."""

    def ours(k: Any, y: Any) -> Any:
        end, _ = symcomp.loop(lambda y, _: (runge_kutta(y, k, T), None), y, length=50)
        return (end**2).sum()

    def theirs(k: Any, y: Any) -> Any:
        return (lax.scan(lambda y, _: (runge_kutta(y, k, jnp), None), y, None, 50)[0] ** 2).sum()

    both(ours, theirs, np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0]))


def runge_kutta(y: Any, k: Any, m: Any, dt: float = 0.05) -> Any:
    def field(y: Any) -> Any:
        return m.stack([k[0] * y[0] - k[1] * y[0] * y[1], k[2] * y[0] * y[1] - k[3] * y[1]])

    a = field(y)
    b = field(y + dt / 2 * a)
    c = field(y + dt / 2 * b)
    d = field(y + dt * c)
    return y + dt / 6 * (a + 2 * b + 2 * c + d)


def test_kalman_filter() -> None:
    """The likelihood by the transition, the observations and the noise."""
    rng = np.random.default_rng(0)

    def filtered(y: Any, mean: Any, p: Any, a: Any, r: Any, m: Any) -> Any:
        c = np.array([[1.0, 0.5]])
        mean, p = m.dot(a, mean), m.dot(m.dot(a, p), a.T) + 0.05 * np.eye(2)
        s = m.dot(m.dot(c, p), c.T)[0, 0] + r
        e = y - m.dot(c, mean)
        gain = m.dot(p, c.T) / s
        term = -0.5 * (m.log(2 * np.pi * s) + (e**2).sum() / s)
        return mean + m.dot(gain, e), p - m.dot(m.dot(gain, c), p), term

    def ours(a: Any, r: Any, ys: Any) -> Any:
        step = lambda y, mean, p: list(filtered(y, mean, p, a, r, T))  # noqa: E731
        return symcomp.scan(step, ys, [T.zeros(2), T.eye(2), None])[0][2].sum()

    def theirs(a: Any, r: Any, ys: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            mean, p, term = filtered(y, *state, a, r, jnp)
            return (mean, p), term

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), ys)[1].sum()

    transition = np.array([[1.0, 0.1], [-0.1, 0.95]])
    both(ours, theirs, transition, np.asarray(0.3), rng.normal(size=(12, 1)))


def test_power_iteration() -> None:
    q = np.random.default_rng(1).normal(size=(5, 5))

    def ours(a: Any, v: Any) -> Any:
        step = lambda v: (w := T.dot(a, v)) / T.sqrt((w**2).sum())  # noqa: E731
        top = symcomp.scan(step, None, v, n_steps=20)[0][-1]
        return T.dot(top, T.dot(a, top))

    def theirs(a: Any, v: Any) -> Any:
        step = lambda v, _: ((w := a @ v) / jnp.sqrt((w**2).sum()), None)  # noqa: E731
        top = lax.scan(step, v, None, 20)[0]
        return top @ (a @ top)

    both(ours, theirs, q @ q.T, np.ones(5), rtol=1e-7)


def test_conjugate_gradient() -> None:
    """Six steps: the gradient through the iteration itself."""
    q = np.random.default_rng(2).normal(size=(6, 6))

    def improved(x: Any, r: Any, p: Any, a: Any, m: Any) -> Any:
        ap = m.dot(a, p)
        alpha = (r**2).sum() / (p * ap).sum()
        new = r - alpha * ap
        return x + alpha * p, new, new + (new**2).sum() / (r**2).sum() * p

    def ours(a: Any, b: Any) -> Any:
        def step(x: Any, r: Any, p: Any) -> Any:
            state = improved(x, r, p, a, T)
            return list(state), symcomp.until((state[1] ** 2).sum() < 1e-30)

        (xs, _, _), _ = symcomp.scan(step, None, [T.zeros_like(b), b, b], n_steps=4)
        return (xs[-1] ** 2).sum()

    def theirs(a: Any, b: Any) -> Any:
        state = (jnp.zeros_like(b), b, b)
        return (
            lax.scan(lambda s, _: (improved(*s, a, jnp), None), state, None, 4)[0][0] ** 2
        ).sum()

    both(ours, theirs, q @ q.T + np.eye(6), np.ones(6), rtol=1e-7)


def test_leapfrog() -> None:
    """The energy after a trajectory of Hamiltonian Monte Carlo, by its start and step length."""

    def ours(q: Any, p: Any, eps: Any) -> Any:
        potential = lambda q: (q**4).sum() / 4 + (q[0] - q[1]) ** 2  # noqa: E731

        def step(q: Any, p: Any) -> Any:
            p = p - eps / 2 * symcomp.grad(potential(q), q)
            q = q + eps * p
            return [q, p - eps / 2 * symcomp.grad(potential(q), q)]

        (qs, ps), _ = symcomp.scan(step, None, [q, p], n_steps=10)
        return potential(qs[-1]) + (ps[-1] ** 2).sum() / 2

    def theirs(q: Any, p: Any, eps: Any) -> Any:
        potential = lambda q: (q**4).sum() / 4 + (q[0] - q[1]) ** 2  # noqa: E731
        slope = jax.grad(potential)

        def step(state: Any, _: Any) -> Any:
            q, p = state
            p = p - eps / 2 * slope(q)
            q = q + eps * p
            return (q, p - eps / 2 * slope(q)), None

        q, p = lax.scan(step, (q, p), None, 10)[0]
        return potential(q) + (p**2).sum() / 2

    both(ours, theirs, np.array([0.5, -1.0]), np.array([0.3, 0.8]), np.asarray(0.2))
