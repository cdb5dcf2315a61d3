"""Programs that are loops: filters, integrators, iterations."""

from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T


def test_kalman_filter() -> None:
    """Log-likelihood of a linear Gaussian model, and its gradient in the noise's variance."""
    rng = np.random.default_rng(0)
    a = np.array([[1.0, 0.1], [-0.1, 0.95]])
    c = np.array([[1.0, 0.5]])
    q = 0.05 * np.eye(2)
    ys = rng.normal(size=(12, 1))

    def by_hand(r: float) -> tuple[Any, float]:
        m, p, total, means = np.zeros(2), np.eye(2), 0.0, []
        for y in ys:
            m, p = a @ m, a @ p @ a.T + q
            s = c @ p @ c.T + r
            k = p @ c.T / s
            e = y - c @ m
            total -= 0.5 * float((np.log(2 * np.pi * s) + e**2 / s)[0, 0])
            m, p = m + (k @ e), p - k @ c @ p
            means.append(m)
        return np.array(means), total

    r, observed = T.dscalar("r"), T.dmatrix("ys")

    def step(y: Any, m: Any, p: Any) -> Any:
        m, p = T.dot(a, m), T.dot(T.dot(a, p), a.T) + q
        s = (T.dot(T.dot(c, p), c.T) + r)[0, 0]
        k = T.dot(p, c.T) / s
        e = y - T.dot(c, m)
        term = -0.5 * (T.log(2 * np.pi * s) + (e**2).sum() / s)
        return [m + T.dot(k, e), p - T.dot(T.dot(k, c), p), term]

    (means, _, terms), _ = symcomp.scan(step, observed, [T.zeros(2), T.eye(2), None])
    f = symcomp.function([observed, r], [means, terms.sum(), symcomp.grad(terms.sum(), r)])
    found, total, slope = f(ys, 0.3)
    wanted, likelihood = by_hand(0.3)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(total, likelihood)
    np.testing.assert_allclose(slope, (by_hand(0.3 + 1e-6)[1] - by_hand(0.3 - 1e-6)[1]) / 2e-6)


def test_runge_kutta_with_gradient_of_parameters() -> None:
    """x'' = -k x from (1, 0): x(t) = cos(sqrt(k) t), and its derivative in k."""
    k, dt, n = T.dscalar("k"), 0.01, 200

    def field(state: Any) -> Any:
        return T.stack([state[1], -k * state[0]])

    def step(state: Any, _: Any) -> Any:
        k1 = field(state)
        k2 = field(state + dt / 2 * k1)
        k3 = field(state + dt / 2 * k2)
        k4 = field(state + dt * k3)
        new = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return new, new[0]

    end, path = symcomp.loop(step, np.array([1.0, 0.0]), length=n)
    f = symcomp.function([k], [path, end[0], symcomp.grad(end[0], k)])
    xs, last, slope = f(2.0)
    t = dt * np.arange(1, n + 1)
    np.testing.assert_allclose(xs, np.cos(np.sqrt(2) * t), atol=1e-8)
    np.testing.assert_allclose(last, xs[-1])
    wanted = -np.sin(np.sqrt(2) * 2.0) * 2.0 / (2 * np.sqrt(2))
    np.testing.assert_allclose(slope, wanted, rtol=1e-7)


def test_power_iteration() -> None:
    """The largest eigenvalue, and its gradient, the outer product of the eigenvector."""
    rng = np.random.default_rng(1)
    b = rng.normal(size=(5, 5))
    matrix = b @ b.T
    a, v = T.dmatrix("a"), T.dvector("v")

    def step(v: Any) -> Any:
        w = T.dot(a, v)
        return w / T.sqrt((w**2).sum())

    vs, _ = symcomp.scan(step, None, v, n_steps=300)
    top = vs[-1]
    value = T.dot(top, T.dot(a, top))
    f = symcomp.function([a, v], [value, symcomp.grad(value, a)])
    found, slope = f(matrix, np.ones(5))
    values, vectors = np.linalg.eigh(matrix)
    np.testing.assert_allclose(found, values[-1])
    np.testing.assert_allclose(slope, np.outer(vectors[:, -1], vectors[:, -1]), atol=1e-8)


def collatz(n: int) -> int:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def test_collatz() -> None:
    """The number of steps to 1, by until, for each of many numbers: a loop in a loop."""
    starts = T.lvector("starts")

    def path_length(start: Any) -> Any:
        def step(n: Any) -> Any:
            new = T.switch(T.eq(n % 2, 0), n // 2, 3 * n + 1)
            return new, symcomp.until(T.eq(new, 1))

        path, _ = symcomp.scan(step, None, start, n_steps=10_000)
        return path.shape[0]

    lengths, _ = symcomp.map(path_length, starts)
    f = symcomp.function([starts], lengths)
    numbers = np.array([2, 3, 6, 7, 27, 97])
    assert f(numbers).tolist() == [collatz(int(n)) for n in numbers]


def test_polynomial_of_the_tutorials() -> None:
    """Sum of coefficients times powers: a scan without recurrence."""
    c, x = T.dvector("c"), T.dscalar("x")
    terms, _ = symcomp.scan(lambda c, k, x: c * x**k, [c, T.arange(1000)], None, x)
    f = symcomp.function([c, x], [terms.sum(), symcomp.grad(terms.sum(), x)])
    value, slope = f([1.0, 0.0, 2.0], 3.0)
    assert value == 19
    np.testing.assert_allclose(slope, 12)


def test_running_mean_of_a_stream_with_shared_state() -> None:
    count, mean = symcomp.shared(0, name="count"), symcomp.shared(0.0, name="mean")
    x = T.dvector("x")

    def step(x: Any) -> Any:
        n = count + 1
        new = mean + (x - mean) / n
        return new, {count: n, mean: new}

    means, updates = symcomp.scan(step, x)
    f = symcomp.function([x], means, updates=updates)
    data = np.array([1.0, 4.0, 7.0, 0.0])
    found = np.concatenate([f(data[:3]), f(data[3:])])
    np.testing.assert_allclose(found, np.cumsum(data) / np.arange(1, 5))
