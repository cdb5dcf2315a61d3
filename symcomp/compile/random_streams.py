"""Streams of random numbers: each draw has a shared state of its own, which calls update."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from symcomp.compile.random_state import RandomSharedVariable
from symcomp.compile.shared import TensorSharedVariable, shared
from symcomp.config import config
from symcomp.core import dtype as dtypes
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.elementwise.scalar_math import cast
from symcomp.ops.random import continuous, discrete, gamma_distributions, vectors
from symcomp.ops.random.ranges import check_ranges
from symcomp.ops.random.state import RandomType, require_generator, seeded, seeded_counter
from symcomp.ops.shapes.shape import shape_tuple


class Streams:
    """Base of all streams: a seed, and the states of the draws made so far.

    Parameters
    ----------
    seed : int or sequence of int, optional
        Equal seeds, and equal draws in equal order, give equal numbers. None: another seed each
        time, from the operating system.
    generator : {"pcg64", "philox"}, optional
        By default ``config.random_generator``. Philox is counter-based: it draws the same numbers
        on devices, where the states are made that are made while ``config.device`` is one.

    Attributes
    ----------
    generator : str
    state_updates : list of (shared variable, Variable)
        For each draw its state, and the state after it.
    """

    def __init__(self, seed: Any = None, generator: str | None = None) -> None:
        seeded(seed)  # raises if the seed is not valid
        self.generator = config.random_generator if generator is None else generator
        require_generator(self.generator)
        self._seed = seed
        # States with one seed differ in their keys; a stream without seed draws one when it is
        # made.
        self._entropy = seed if seed is not None else [int(n) for n in seeded(None)]
        self.state_updates: list[tuple[TensorSharedVariable, Variable]] = []

    def gen(self, distribution: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a draw with a new state.

        Parameters
        ----------
        distribution : callable
            Takes a state and the arguments; returns the state after it and the draw. One of
            ``T.random``, or a function of the user's that calls some of them.

        Returns
        -------
        TensorVariable
            The draw; its attribute ``rng`` is the state, ``update`` the pair of it and of the
            state after it.

        Examples
        --------
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> stream = T.random.RandomStream(seed=1)
        >>> z = stream.gen(T.random.exponential, 2.0, size=3)
        >>> symcomp.function([], z)().shape
        (3,)
        """
        state = self._new_state()
        after, z = distribution(state, *args, **kwargs)
        state.default_update = after
        self.state_updates.append((state, after))
        z.rng, z.update = state, (state, after)
        return z

    def _words(self, number: int) -> Any:
        """Return the first state of a draw."""
        make = seeded_counter if self.generator == "philox" else seeded
        return make(self._entropy, (number,))

    def _new_state(self) -> TensorSharedVariable:
        words = self._words(len(self.state_updates))
        if self.generator == "philox":
            found: Any = shared(words, shape=words.shape, device=config.device)
            return found
        return RandomSharedVariable(RandomType(), words)

    def updates(self) -> list[tuple[TensorSharedVariable, Variable]]:
        """Return a copy of ``state_updates``, the updates that functions apply by default."""
        return list(self.state_updates)

    def seed(self, seed: Any = None) -> None:
        """Set the states of all draws made so far, and of those to come, as if the stream had been
        made with ``seed`` (None: with the seed that it was made with).
        """
        if seed is not None:
            seeded(seed)
            self._entropy = seed
        elif self._seed is not None:
            self._entropy = self._seed
        for number, (state, _) in enumerate(self.state_updates):
            state.set_value(self._words(number))

    def _state_of(self, draw: Any) -> TensorSharedVariable:
        state = getattr(draw, "rng", draw)
        if not any(state is known for known, _ in self.state_updates):
            raise KeyError(f"{draw} is no draw of this stream, nor the state of one")
        return state

    def __getitem__(self, draw: Any) -> Any:
        """Return the state of a draw of this stream: a NumPy generator; of Philox, the words."""
        return self._state_of(draw).get_value()

    def __setitem__(self, draw: Any, value: Any) -> None:
        self._state_of(draw).set_value(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self._seed!r}), {len(self.state_updates)} draws"


class RandomStream(Streams):
    """Random numbers, with the methods of NumPy's ``Generator``.

    A method makes a draw: a variable that has other values in each call of a function. Each draw
    has a state of its own, so that its numbers do not depend on other draws. All methods take
    ``size``, ``dtype`` and ``ndim``: ``size`` is an int, a scalar, a sequence of them, or an
    integer vector (whose length must be given by ``ndim`` if it is not static); by default that of
    the parameters.

    Parameters
    ----------
    seed : int or sequence of int, optional
        None: another one each time.
    generator : {"pcg64", "philox"}, optional
        By default ``config.random_generator``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> stream = T.random.RandomStream(seed=234)
    >>> x = stream.normal(size=(2, 2))
    >>> f = symcomp.function([], [x, x - x])
    >>> a, zero = f()
    >>> b, _ = f()
    >>> bool((a != b).all()), float(abs(zero).max())
    (True, 0.0)
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"RandomStream has no distribution {name!r}; there are {', '.join(DISTRIBUTIONS)}"
        )


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a distribution, with its signature except for the state."""

    def method(self: RandomStream, *args: Any, **kwargs: Any) -> Any:
        return self.gen(function, *args, **kwargs)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    method.__qualname__ = f"RandomStream.{function.__name__}"
    signature = inspect.signature(function)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = list(signature.parameters.values())[1:]
    method.__signature__ = signature.replace(parameters=[own, *rest])  # type: ignore[attr-defined]
    return method


DISTRIBUTIONS = {
    name: getattr(module, name)
    for module, names in (
        (
            continuous,
            "exponential gumbel laplace logistic lognormal normal pareto power rayleigh "
            "standard_cauchy standard_exponential standard_gamma standard_normal standard_uniform "
            "triangular truncated_normal uniform weibull",
        ),
        (
            gamma_distributions,
            "beta chisquare f gamma noncentral_chisquare noncentral_f standard_t vonmises wald",
        ),
        (
            discrete,
            "bernoulli binomial categorical geometric hypergeometric integers logseries "
            "multinomial negative_binomial poisson zipf",
        ),
        (
            vectors,
            "choice dirichlet multivariate_normal permutation shuffle_row_elements",
        ),
    )
    for name in names.split()
}

for _name, _function in DISTRIBUTIONS.items():
    setattr(RandomStream, _name, _method(_function))


class RandomStreams(Streams):
    """Theano's ``RandomStreams``: its names, its order of arguments, and its defaults.

    A ``size`` of None or () is that of the parameters.

    Parameters
    ----------
    seed : int, optional
    generator : {"pcg64", "philox"}, optional
        By default ``config.random_generator``.

    Examples
    --------
    >>> import symcomp
    >>> from symcomp.tensor.shared_randomstreams import RandomStreams
    >>> srng = RandomStreams(seed=234)
    >>> rv_u, rv_n = srng.uniform((2, 2)), srng.normal((2, 2))
    >>> f = symcomp.function([], rv_u)
    >>> g = symcomp.function([], rv_n, no_default_updates=True)
    >>> bool((f() == f()).any()), bool((g() == g()).all())
    (False, True)
    """

    default_seed: Any = None

    def __init__(self, seed: Any = None, generator: str | None = None) -> None:
        super().__init__(self.default_seed if seed is None else seed, generator)

    @property
    def default_instance_seed(self) -> Any:
        """The seed that it was made with."""
        return self._seed

    def uniform(
        self, size: Any = None, low: Any = 0.0, high: Any = 1.0, ndim: Any = None, dtype: Any = None
    ) -> TensorVariable:
        """Draw uniformly from [low, high)."""
        return self._draw(continuous.uniform, low, high, size=size, ndim=ndim, dtype=dtype)

    def normal(
        self, size: Any = None, avg: Any = 0.0, std: Any = 1.0, ndim: Any = None, dtype: Any = None
    ) -> TensorVariable:
        """Draw from the normal distribution with mean ``avg`` and standard deviation ``std``;
        gradients flow to both.
        """
        check_ranges("normal", {"scale": std}, {"scale": "std"})
        return self._draw(continuous.normal, avg, std, size=size, ndim=ndim, dtype=dtype)

    def binomial(
        self,
        size: Any = None,
        n: Any = 1,
        p: Any = 0.5,
        ndim: Any = None,
        dtype: Any = "int64",
        prob: Any = None,
    ) -> TensorVariable:
        """Draw the number of successes in ``n`` trials, each with probability ``p`` (or ``prob``).
        """
        p = p if prob is None else prob
        return self._draw(discrete.binomial, n, p, size=size, ndim=ndim, dtype=dtype)

    def random_integers(
        self, size: Any = None, low: Any = 0, high: Any = 1, ndim: Any = None, dtype: Any = "int64"
    ) -> TensorVariable:
        """Draw integers from ``low`` to ``high``, both included; real bounds are truncated."""
        low, high = (_whole_part(v) for v in (low, high))
        return self._draw(
            discrete.integers, low, high, size=size, ndim=ndim, dtype=dtype, endpoint=True
        )

    def poisson(
        self, size: Any = None, lam: Any = 1.0, ndim: Any = None, dtype: Any = "int64"
    ) -> TensorVariable:
        """Draw from Poisson's distribution with mean ``lam``."""
        return self._draw(discrete.poisson, lam, size=size, ndim=ndim, dtype=dtype)

    def multinomial(
        self,
        size: Any = None,
        n: Any = 1,
        pvals: Any = (0.5, 0.5),
        ndim: Any = None,
        dtype: Any = "int64",
    ) -> TensorVariable:
        """Draw how often each outcome occurs among ``n``, for each row of ``pvals``."""
        return self._draw(discrete.multinomial, n, pvals, size=size, ndim=ndim, dtype=dtype)

    def choice(
        self,
        size: Any = None,
        a: Any = 2,
        replace: bool = True,
        p: Any = None,
        ndim: Any = None,
        dtype: Any = "int64",
    ) -> TensorVariable:
        """Draw elements of the vector ``a``, or numbers below it."""
        return self.gen(vectors.choice, a, size, replace, p, dtype, ndim)

    def permutation(
        self, size: Any = None, n: Any = 1, ndim: Any = None, dtype: Any = "int64"
    ) -> TensorVariable:
        """Permute the numbers below ``n``, along an axis after those of ``size``."""
        n = as_tensor_variable(n)
        if n.ndim != 0:
            raise ShapeError(f"permutation: n is {n} ({n.type}); it must be an integer scalar")
        return self._draw(vectors.permutation, n, size=size, ndim=ndim, dtype=dtype)

    def shuffle_row_elements(self, input: Any) -> TensorVariable:
        """Permute each row of ``input`` independently."""
        return self.gen(vectors.shuffle_row_elements, input)

    def _draw(self, distribution: Any, *args: Any, size: Any, **more: Any) -> Any:
        absent = isinstance(size, tuple | list) and not size
        return self.gen(distribution, *args, size=None if absent else size, **more)


def _whole_part(bound: Any) -> Any:
    bound = as_tensor_variable(bound)
    return bound if dtypes.is_integer(bound.dtype) else cast(bound, "int64")


class MRG_RandomStreams(RandomStreams):
    """Theano's ``MRG_RandomStreams``: its methods and defaults; the generator is PCG64 or Philox.

    Parameters
    ----------
    seed : int or sequence of 6 int
        By default 12345.
    generator : {"pcg64", "philox"}, optional
        By default ``config.random_generator``.

    Examples
    --------
    >>> import symcomp
    >>> from symcomp.sandbox.rng_mrg import MRG_RandomStreams
    >>> srng = MRG_RandomStreams(seed=1)
    >>> mask = srng.binomial((1000,), p=0.9, dtype="float32")
    >>> bool(850 < symcomp.function([], mask)().sum() < 950)
    True
    """

    default_seed = 12345

    def gen(self, distribution: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a draw as ``Streams.gen`` does; it also has its state as ``rstate``."""
        z = super().gen(distribution, *args, **kwargs)
        z.rstate = z.rng
        return z

    def set_rstate(self, seed: Any) -> None:
        """Start again from another seed, as ``seed`` does."""
        self.seed(seed)

    def uniform(
        self,
        size: Any = None,
        low: Any = 0.0,
        high: Any = 1.0,
        ndim: Any = None,
        dtype: Any = None,
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw uniformly from [low, high). ``nstreams`` and ``target`` have no effect, here and
        below.
        """
        return super().uniform(size, low, high, ndim, dtype)

    def normal(
        self,
        size: Any = None,
        avg: Any = 0.0,
        std: Any = 1.0,
        ndim: Any = None,
        dtype: Any = None,
        nstreams: Any = None,
        truncate: bool = False,
        target: Any = None,
    ) -> TensorVariable:
        """Draw from the normal distribution; with ``truncate`` within two standard deviations of
        the mean.
        """
        if truncate:
            return self.truncated_normal(size, avg, std, ndim, dtype)
        return super().normal(size, avg, std, ndim, dtype)

    def truncated_normal(
        self,
        size: Any = None,
        avg: Any = 0.0,
        std: Any = 1.0,
        ndim: Any = None,
        dtype: Any = None,
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw from the normal distribution restricted to two standard deviations around the mean.
        """
        check_ranges("truncated_normal", {"scale": std}, {"scale": "std"})
        return self._draw(continuous.truncated_normal, avg, std, size=size, ndim=ndim, dtype=dtype)

    def binomial(
        self,
        size: Any = None,
        n: Any = 1,
        p: Any = 0.5,
        ndim: Any = None,
        dtype: Any = "int64",
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw the number of successes in ``n`` trials, each with probability ``p``."""
        return super().binomial(size, n, p, ndim, dtype)

    def multinomial(
        self,
        size: Any = None,
        n: Any = 1,
        pvals: Any = None,
        ndim: Any = None,
        dtype: Any = "int64",
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw how often each outcome occurs among ``n``, for each row of ``pvals``."""
        if pvals is None:
            raise TypeError("multinomial: pvals, the probabilities of the outcomes, is missing")
        return super().multinomial(size, n, pvals, ndim, dtype)

    def choice(
        self,
        size: Any = 1,
        a: Any = None,
        replace: bool = True,
        p: Any = None,
        ndim: Any = None,
        dtype: Any = "int64",
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw ``size`` outcomes for each row of ``p``: a matrix. With ``a``, as in
        ``RandomStreams``.
        """
        if a is not None:
            return super().choice(size, a, replace, p, ndim, dtype)
        if p is None:
            raise TypeError("choice: p, the probabilities of the outcomes, is missing")
        if not replace:
            return self.gen(vectors.distinct, p, size, dtype)
        check_ranges("choice", {"p": p})
        rows = as_tensor_variable(p)
        if rows.ndim not in (1, 2):
            raise ShapeError(f"choice: p is {rows.type}; it must be a vector or a matrix")
        spread = rows.dimshuffle(*range(rows.ndim - 1), "x", rows.ndim - 1)
        lengths = (*shape_tuple(rows)[:-1], size)
        return self.gen(discrete.categorical, spread, lengths, dtype)

    def multinomial_wo_replacement(
        self,
        size: Any = None,
        n: Any = 1,
        pvals: Any = None,
        ndim: Any = None,
        dtype: Any = "int64",
        nstreams: Any = None,
        target: Any = None,
    ) -> TensorVariable:
        """Draw ``n`` different outcomes for each row of ``pvals``."""
        return self.choice(n, None, False, pvals, ndim, dtype)
