"""Streams of random numbers: shared states, default updates, seeds."""

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.errors import DTypeError, ShapeError
from symcomp.ifelse import ifelse
from symcomp.sandbox.rng_mrg import MRG_RandomStreams
from symcomp.tensor.shared_randomstreams import RandomStreams

KINDS = [T.random.RandomStream, RandomStreams, MRG_RandomStreams]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_equal_numbers(kind: Any) -> None:
    def numbers(seed: Any) -> Any:
        stream = kind(seed)
        draws = [stream.normal(size=5), stream.uniform(size=5), stream.normal(size=5)]
        f = symcomp.function([], draws)
        return np.array([f(), f()])

    a = numbers(3)
    np.testing.assert_array_equal(a, numbers(3))
    assert (a != numbers(4)).all()
    assert len(np.unique(a)) == a.size
    np.testing.assert_array_equal(numbers([1, 2]), numbers([1, 2]))


@pytest.mark.parametrize("linker", ["py", "cvm"])
def test_numbers_are_the_same_in_every_mode(linker: str) -> None:
    def numbers(mode: Any) -> Any:
        stream = RandomStreams(7)
        z = stream.normal((3,), avg=2.0) + stream.binomial((3,), p=0.5, dtype="float64")
        f = symcomp.function([], [z, stream.permutation(n=6)], mode=mode)
        return [f(), f()]

    wanted = numbers(symcomp.Mode(linker="py", optimizer=None))
    for got, want in zip(numbers(symcomp.Mode(linker=linker)), wanted, strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_streams_without_seed_differ() -> None:
    a, b = (symcomp.function([], T.random.RandomStream().normal(size=4))() for _ in range(2))
    assert (a != b).all()


def test_a_draw_is_one_value_in_a_call_and_another_in_the_next() -> None:
    stream = RandomStreams(seed=234)
    u = stream.uniform((2, 2))
    f = symcomp.function([], u + u - 2 * u)
    assert abs(f()).max() < 1e-5
    g = symcomp.function([], u)
    assert (g() != g()).all()
    still = symcomp.function([], u, no_default_updates=True)
    assert (still() == still()).all()
    by_name = symcomp.function([], u, no_default_updates=[u.rng])
    assert (by_name() == still()).all()


def test_updates_may_be_given() -> None:
    stream = RandomStreams(1)
    u = stream.uniform((3,))
    state, after = u.update
    assert state is u.rng and stream.state_updates == [(state, after)] == stream.updates()
    f = symcomp.function([], u, updates=[u.update])
    g = symcomp.function([], u, updates=stream.updates(), no_default_updates=True)
    wanted = np.random.default_rng()
    wanted.bit_generator.state = state.get_value().bit_generator.state
    np.testing.assert_array_equal([f(), g()], wanted.random((2, 3)))


def test_functions_share_the_states() -> None:
    stream = T.random.RandomStream(5)
    z = stream.normal(size=2)
    f, g = symcomp.function([], z), symcomp.function([], 2 * z)
    start = z.rng.get_value()
    np.testing.assert_array_equal([f(), g() / 2, f()], start.normal(size=(3, 2)))


def test_seeding_again() -> None:
    stream = RandomStreams(seed=8)
    f = symcomp.function([], [stream.uniform((2,)), stream.normal((2,))])
    first, _ = f(), f()
    stream.seed()
    np.testing.assert_array_equal(f(), first)
    stream.seed(9)
    second = f()
    assert (np.array(second) != np.array(first)).all()
    other = RandomStreams(seed=9)
    again = symcomp.function([], [other.uniform((2,)), other.normal((2,))])
    np.testing.assert_array_equal(again(), second)
    with pytest.raises(ValueError, match="seed: -4"):
        stream.seed(-4)
    with pytest.raises(TypeError, match="seed: 'x'"):
        RandomStreams("x")
    assert RandomStreams(8).default_instance_seed == 8
    assert MRG_RandomStreams().default_instance_seed == 12345
    unseeded = T.random.RandomStream()
    h = symcomp.function([], unseeded.normal())
    value = h()
    unseeded.seed()
    assert h() == value


# -- states


def test_the_ways_of_theanos_tutorial() -> None:
    """Seeding one draw, copying states, going back to one."""
    stream = RandomStreams(seed=234)
    u, n = stream.uniform((2, 2)), stream.normal((2, 2))
    f = symcomp.function([], u)
    nearly_zeros = symcomp.function([], u + u - 2 * u)
    state = u.rng.get_value(borrow=True)
    state.seed(89234)
    u.rng.set_value(state, borrow=True)
    a = f()
    np.testing.assert_array_equal(a, np.random.default_rng(89234).random((2, 2)))
    stream.seed(902340)
    before = u.rng.get_value().get_state()
    nearly_zeros()
    after = f()
    state = u.rng.get_value(borrow=True)
    state.set_state(before)
    u.rng.set_value(state, borrow=True)
    again = f()
    assert (again != after).all()
    np.testing.assert_array_equal(f(), after)
    assert n.rng is not u.rng


def test_states_copied_between_graphs() -> None:
    class Graph:
        def __init__(self, seed: int) -> None:
            self.rng = MRG_RandomStreams(seed)
            self.y = self.rng.uniform(size=(1,))

    one, two = Graph(123), Graph(987)
    f, g = symcomp.function([], one.y), symcomp.function([], two.y)
    f()
    assert f() != g()
    for (a, _), (b, _) in zip(one.rng.state_updates, two.rng.state_updates, strict=True):
        b.set_value(a.get_value())
    assert f() == g()
    assert one.y.rstate is one.y.rng


def test_states_as_values() -> None:
    stream = T.random.RandomStream(1)
    z = stream.normal()
    f = symcomp.function([], z)
    mine = stream[z]
    assert isinstance(mine, np.random.Generator)
    wanted = mine.normal()  # drawn from a copy
    assert stream[z.rng].normal() == wanted
    assert f() == wanted
    stream[z] = np.random.default_rng(3)
    assert f() == np.random.default_rng(3).normal()
    with pytest.raises(DTypeError, match="no state of PCG64"):
        z.rng.set_value(3)
    with pytest.raises(KeyError, match="no draw of this stream"):
        stream[symcomp.shared(0)]
    words = z.rng.get_value(return_internal_type=True)
    z.rng.set_value(np.random.default_rng(words))
    assert words.dtype == "uint64" and words.shape == (4,)


def test_shared_generators() -> None:
    rng = np.random.default_rng(4)
    state = symcomp.shared(rng, name="rng")
    after, z = T.random.exponential(state, 2.0, size=3)
    f = symcomp.function([], z, updates=[(state, after)])
    np.testing.assert_array_equal([f(), f()], np.random.default_rng(4).exponential(2.0, (2, 3)))
    assert rng.random() == np.random.default_rng(4).random()  # untouched
    assert symcomp.shared(np.random.RandomState(1)).type == state.type


def test_pickling_and_copying() -> None:
    stream = RandomStreams(2)
    z = stream.normal((3,))
    f = symcomp.function([], z)
    f()
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal([f(), f()], [g(), g()])
    other = symcomp.shared(np.random.default_rng(1))
    h = f.copy(swap={z.rng: other})
    np.testing.assert_array_equal(h(), np.random.default_rng(1).normal(size=3))
    frozen = f.copy(delete_updates=True)
    np.testing.assert_array_equal(frozen(), frozen())
    generator = pickle.loads(pickle.dumps(z.rng.get_value()))
    assert generator.normal() == f()[0]
    twin = copy.deepcopy(z.rng.get_value())
    assert twin.normal() == f()[0]


def test_saving(tmp_path: Path) -> None:
    stream = RandomStreams(2)
    walk, updates = symcomp.scan(
        lambda x: x + stream.normal(()), outputs_info=T.constant(0.0), n_steps=4
    )
    f = symcomp.function([], [walk, stream.poisson((3,), 2.0)], updates=updates)
    f()
    symcomp.save(tmp_path / "f.zip", f)
    g = symcomp.load(tmp_path / "f.zip")
    for _ in range(2):
        for mine, loaded in zip(f(), g(), strict=True):
            np.testing.assert_array_equal(mine, loaded)


def test_givens_replace_states() -> None:
    stream = RandomStreams(2)
    z = stream.normal((3,))
    start = T.random.state("start")
    f = symcomp.function([start], z, givens=[(z.rng, start)])
    wanted = np.random.default_rng(6).normal(size=3)
    np.testing.assert_array_equal(f(np.random.default_rng(6)), wanted)


def test_states_in_branches() -> None:
    stream = RandomStreams(2)
    which = T.bscalar("which")
    z = ifelse(which, stream.normal((2,)), stream.uniform((2,), 5.0, 6.0))
    f = symcomp.function([which], z)
    assert (f(0) >= 5).all() and (f(1) < 5).all()
    assert (f(0) != f(0)).all() and (f(1) != f(1)).all()


# -- loops


def test_draws_in_scan_are_fresh_in_every_step() -> None:
    stream = RandomStreams(2)
    steps, updates = symcomp.scan(lambda: stream.normal((3,)), n_steps=5)
    (state, _) = stream.state_updates[0]
    f = symcomp.function([], steps, updates=updates)
    start = state.get_value()
    np.testing.assert_array_equal([f(), f()], start.normal(size=(2, 5, 3)))


def test_draws_in_loop_carry_the_state_out() -> None:
    def step(state: Any, _: Any) -> Any:
        after, z = T.random.normal(state, size=2)
        return after, z

    start = T.random.state("start")
    last, draws = symcomp.loop(step, start, length=4)
    f = symcomp.function([start], [last, draws])
    last, draws = f(np.random.default_rng(3))
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(draws, rng.normal(size=(4, 2)))
    again = symcomp.function([start], T.random.normal(start)[1])
    assert again(last) == rng.normal()


def test_gradients_of_loops_with_noise_see_the_same_noise() -> None:
    """x_t = w x_(t-1) + e_t: the derivative in w is made of the very numbers drawn."""
    for more in ({}, {"checkpoint": 2}):
        stream = RandomStreams(2)
        w = T.dscalar("w")
        x, updates = symcomp.scan(
            lambda x, w, stream=stream: w * x + stream.normal(()),
            outputs_info=T.constant(1.0),
            non_sequences=w,
            n_steps=6,
            **more,
        )
        f = symcomp.function([w], [x, symcomp.grad(x[-1], w)], updates=updates)
        for _ in range(2):
            x_values, slope = f(0.7)
            before = np.array([1.0, *x_values])
            wanted = 0.0
            for value in before[:-1]:
                wanted = 0.7 * wanted + value
            assert slope == pytest.approx(wanted)


# -- Theano's signatures


def test_signatures_of_random_streams() -> None:
    s = RandomStreams(5)
    n, p = T.lscalar("n"), T.dmatrix("p")
    cases = [
        (s.uniform(size=(2, n), low=-1.0, high=0.0, ndim=2, dtype="float32"), (2, 3), "float32"),
        (s.uniform((), 5, 7), (), "float64"),
        (s.normal(avg=p, std=0.1), (2, 4), "float64"),
        (s.binomial((n,), 3, 0.5), (3,), "int64"),
        (s.binomial(size=p.shape, p=p, dtype="float32"), (2, 4), "float32"),
        (s.binomial((2,), prob=0.1), (2,), "int64"),
        (s.random_integers((2, 2), 3, 9), (2, 2), "int64"),
        (s.random_integers((20,), n * 1.0, 9.5), (20,), "int64"),
        (s.poisson(lam=p), (2, 4), "int64"),
        (s.poisson(size=(2,), lam=5, dtype="float32"), (2,), "float32"),
        (s.multinomial((n,), 5, [0.1, 0.9]), (3, 2), "int64"),
        (s.multinomial(pvals=p), (2, 4), "int64"),
        (s.choice((4,), a=n, replace=True), (4,), "int64"),
        (s.choice((2, 2), a=4, replace=False, p=[0.25] * 4), (2, 2), "int64"),
        (s.permutation((n,), 7), (3, 7), "int64"),
        (s.permutation(n=n), (3,), "int64"),
        (s.shuffle_row_elements(p), (2, 4), "float64"),
    ]
    f = symcomp.function([n, p], [z for z, _, _ in cases], on_unused_input="ignore")
    values = f(3, np.full((2, 4), 0.25))
    for value, (z, shape, dtype) in zip(values, cases, strict=True):
        assert value.shape == shape, z
        assert value.dtype == z.dtype == dtype, z
        assert z.rng in [state for state, _ in s.state_updates]
    for k in (6, 7):
        assert values[k].min() >= 3 and values[k].max() <= 9
    with pytest.raises(ShapeError, match="permutation: n is"):
        s.permutation(n=p)


def test_signatures_of_mrg_random_streams() -> None:
    s = MRG_RandomStreams(5)
    n, p = T.lscalar("n"), T.dmatrix("p")
    cases = [
        (s.uniform((2, n), -1.0, 0.0, None, "float32", 7), (2, 3), "float32"),
        (s.uniform(size=p.shape, nstreams=3, target=None), (2, 4), "float64"),
        (s.normal((n,), avg=1.0, std=2.0, truncate=True), (3,), "float64"),
        (s.truncated_normal((n,), dtype="float32"), (3,), "float32"),
        (s.binomial(size=p.shape, n=1, p=0.5, dtype="float32"), (2, 4), "float32"),
        (s.multinomial(pvals=p), (2, 4), "int64"),
        (s.multinomial(n=10, pvals=p, dtype="float32"), (2, 4), "float32"),
        (s.choice(size=2, replace=False, p=p, target="cpu"), (2, 2), "int64"),
        (s.choice(size=6, p=p), (2, 6), "int64"),
        (s.choice((3, 2), a=5), (3, 2), "int64"),
        (s.multinomial_wo_replacement(n=3, pvals=p), (2, 3), "int64"),
    ]
    f = symcomp.function([n, p], [z for z, _, _ in cases], on_unused_input="ignore")
    values = f(3, np.full((2, 4), 0.25))
    for value, (z, shape, dtype) in zip(values, cases, strict=True):
        assert value.shape == shape, z
        assert value.dtype == z.dtype == dtype, z
    assert abs(values[2] - 1).max() <= 4
    assert values[6].sum() == 20
    assert (values[7][:, 0] != values[7][:, 1]).all()
    before = s.state_updates[0][0].get_value().get_state()
    s.set_rstate(5)
    start = s.state_updates[0][0].get_value().get_state()
    assert (before != start).any()
    with pytest.raises(TypeError, match="multinomial: pvals"):
        s.multinomial((2,))
    with pytest.raises(TypeError, match="choice: p"):
        s.choice(2)


def test_unknown_distributions_are_named() -> None:
    stream = T.random.RandomStream(1)
    with pytest.raises(AttributeError, match=r"no distribution 'gauss'; there are .*normal"):
        stream.gauss(3)
    assert repr(stream) == "RandomStream(seed=1), 0 draws"
    assert "size" in inspect.signature(stream.normal).parameters
