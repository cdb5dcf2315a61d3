"""Optimizers and samplers made of loops and of products with Jacobians."""

from collections.abc import Callable
from typing import Any

import numpy as np

import symcomp
import symcomp.tensor as T


def conjugate_gradient(product: Callable[[Any], Any], b: Any, most: int, tolerance: float) -> Any:
    """Solve A x = b for a positive definite A given by its products (Hestenes and Stiefel, 1952):
    a do-while loop; returns the solution and the number of steps.
    """

    def step(x: Any, r: Any, p: Any, rr: Any) -> Any:
        ap = product(p)
        alpha = rr / (p * ap).sum()
        r_new = r - alpha * ap
        new = (r_new**2).sum()
        state = [x + alpha * p, r_new, r_new + new / rr * p, new]
        return state, symcomp.until(new < tolerance**2)

    (xs, _, _, _), _ = symcomp.scan(step, None, [T.zeros_like(b), b, b, (b**2).sum()], n_steps=most)
    return xs[-1], xs.shape[0]


def test_conjugate_gradient() -> None:
    rng = np.random.default_rng(0)
    q = rng.normal(size=(8, 8))
    matrix, right = q @ q.T + np.eye(8), rng.normal(size=8)
    a, b = T.dmatrix("a"), T.dvector("b")
    x, steps = conjugate_gradient(lambda p: T.dot(a, p), b, 100, 1e-10)
    f = symcomp.function([a, b], [x, steps])
    found, count = f(matrix, right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-8)
    assert 1 < count <= 12


def test_gradient_through_conjugate_gradient() -> None:
    """The gradient of c.x with respect to b is A^-1 c, as far as the iteration has converged."""
    rng = np.random.default_rng(1)
    q = rng.normal(size=(4, 4))
    matrix, right, c = q @ q.T + np.eye(4), rng.normal(size=4), rng.normal(size=4)
    b = T.dvector("b")
    x, _ = conjugate_gradient(lambda p: T.dot(matrix, p), b, 100, 1e-9)
    f = symcomp.function([b], symcomp.grad((x * c).sum(), b))
    np.testing.assert_allclose(f(right), np.linalg.solve(matrix, c), rtol=1e-5)


def test_hessian_free_optimizer() -> None:
    """Gauss-Newton steps (Martens, 2010): products J^T J v by Rop and Lop, solved by conjugate
    gradient inside one function, for a recurrent network that recalls its first input.
    """
    rng = np.random.default_rng(2)
    n_hidden, n_steps, n_batch = 5, 4, 6
    shapes = [(1, n_hidden), (n_hidden, n_hidden), (n_hidden, 1)]
    sizes = [int(np.prod(s)) for s in shapes]
    theta = T.dvector("theta")
    xs = T.dtensor3("xs")

    def parts(flat: Any) -> list[Any]:
        ends = np.cumsum([0, *sizes])
        return [flat[i:j].reshape(s) for i, j, s in zip(ends[:-1], ends[1:], shapes, strict=True)]

    u, w, v = parts(theta)
    hs, _ = symcomp.scan(
        lambda x, h: T.tanh(T.dot(x, u) + T.dot(h, w)), xs, T.zeros((xs.shape[1], n_hidden))
    )
    out = T.dot(hs[-1], v)
    error = out - xs[0]
    cost = (error**2).sum() / 2
    slope = symcomp.grad(cost, theta)
    damping = 0.05

    def gauss_newton(p: Any) -> Any:
        return symcomp.Lop(out, theta, symcomp.Rop(out, theta, p)) + damping * p

    direction, _ = conjugate_gradient(gauss_newton, -slope, 40, 1e-6)
    p = T.dvector("p")
    f = symcomp.function([theta, xs], [cost, direction, slope])
    multiply = symcomp.function([theta, xs, p], gauss_newton(p))
    at, x = 0.5 * rng.normal(size=sum(sizes)), rng.normal(size=(n_steps, n_batch, 1))
    x[1:] = 0
    _, step, gradient = f(at, x)
    np.testing.assert_allclose(multiply(at, x, step), -gradient, atol=1e-5)
    costs = []
    for _ in range(12):
        value, step, _ = f(at, x)
        costs.append(float(value))
        at = at + step
    assert costs[-1] < 1e-2 * costs[0]


def test_hamiltonian_monte_carlo() -> None:
    """Samples of a Gaussian of given covariance; leapfrog (Neal, 2011) as an inner loop, the chain
    as an outer one. The draws are given, so the chain can be computed by NumPy, too.
    """
    rng = np.random.default_rng(3)
    precision = np.array([[2.0, 0.6], [0.6, 1.0]])
    n, leaps, eps = 400, 8, 0.25
    momenta, uniforms = rng.normal(size=(n, 2)), rng.random(n)

    def energy(q: Any) -> Any:
        return (q * T.dot(precision, q)).sum() / 2

    def leapfrog(q: Any, p: Any) -> Any:
        p = p - eps / 2 * symcomp.grad(energy(q), q)
        q = q + eps * p
        return [q, p - eps / 2 * symcomp.grad(energy(q), q)]

    def transition(p: Any, u: Any, q: Any) -> Any:
        (qs, ps), _ = symcomp.scan(leapfrog, None, [q, p], n_steps=leaps)
        new, end = qs[-1], ps[-1]
        change = energy(q) + (p**2).sum() / 2 - energy(new) - (end**2).sum() / 2
        accept = T.log(u) < change
        return [T.switch(accept, new, q), accept]

    ps, us = T.dmatrix("momenta"), T.dvector("uniforms")
    (chain, accepted), _ = symcomp.scan(transition, [ps, us], [T.zeros(2), None])
    samples, accepts = symcomp.function([ps, us], [chain, accepted])(momenta, uniforms)

    q, wanted = np.zeros(2), []
    for p0, u in zip(momenta, uniforms, strict=True):
        x, p = q, p0
        for _ in range(leaps):
            p = p - eps / 2 * precision @ x
            x = x + eps * p
            p = p - eps / 2 * precision @ x
        before = q @ precision @ q / 2 + p0 @ p0 / 2
        q = x if np.log(u) < before - x @ precision @ x / 2 - p @ p / 2 else q
        wanted.append(q)
    np.testing.assert_allclose(samples, wanted, rtol=1e-7, atol=1e-9)
    assert accepts.mean() > 0.8
    np.testing.assert_allclose(np.cov(samples.T), np.linalg.inv(precision), atol=0.25)
