"""einsum as transposes, products and batched matrix products, two operands at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.tensor import TensorVariable
from symcomp.errors import ShapeError
from symcomp.ops.convert import as_common, cast_to
from symcomp.ops.elementwise.scalar_math import mul
from symcomp.ops.indexing.diagonals import diagonal
from symcomp.ops.linalg.products import contract, same_lengths
from symcomp.ops.reductions.functions import sum as sum_
from symcomp.ops.shapes.axes import dimshuffle

# In the order of NumPy's labels 0 to 51, which is also that of the characters.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Labelled = tuple[TensorVariable, str]


def einsum(subscripts: Any, *operands: Any) -> TensorVariable:
    """Compute sums of products in Einstein's notation, with NumPy's syntax.

    Parameters
    ----------
    subscripts : str
        ``"ij,jk->ik"``; without ``->``, the labels that occur once, in alphabetical order, remain.
        ``...`` stands for axes that broadcast.
    *operands : tensor_like
        Or, in NumPy's other form, operand, list of labels, operand, list of labels ..., output
        labels. The labels are integers from 0 to 51.

    Returns
    -------
    TensorVariable
        A tensor of the operands' common dtype, also where integers or booleans are summed.

    Raises
    ------
    ShapeError
        If a label is given two lengths, or labels and axes do not match in number.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> x = T.dmatrix("x")
    >>> T.einsum("ij,ij->i", x, x).eval({x: [[1, 2], [3, 4]]})
    array([ 5., 25.])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists(subscripts, operands)
    if not operands:
        raise ShapeError(f"einsum: {subscripts!r} is given no operand")
    tensors = as_common(*operands)
    common = dtypes.upcast(*(x.dtype for x in tensors))
    terms, output = _parse(subscripts, [x.ndim for x in tensors])
    _check_lengths(subscripts, terms, tensors)
    labelled = [
        _without_repeats(cast_to(x, common), term, subscripts)
        for x, term in zip(tensors, terms, strict=True)
    ]
    for first, second in _order(labelled, output):
        right, left = labelled.pop(second), labelled.pop(first)
        needed = set(output).union(*(term for _, term in labelled))
        labelled.append(_combine(left, right, needed, subscripts))
    x, term = labelled[0]
    summed = [a for a, label in enumerate(term) if label not in output]
    if summed:
        x = sum_(x, axis=summed, dtype=common)
        term = "".join(label for label in term if label in output)
    return dimshuffle(x, *[term.index(label) for label in output])


def _from_lists(first: Any, rest: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    args = [first, *rest]
    output = args.pop() if len(args) % 2 else None
    text = ",".join(_spelled(labels) for labels in args[1::2])
    if output is not None:
        text += "->" + _spelled(output)
    return text, tuple(args[::2])


def _spelled(labels: Any) -> str:
    """Return a list of labels as letters."""
    letters = []
    for label in labels:
        if label is Ellipsis:
            letters.append("...")
        elif isinstance(label, int | np.integer) and 0 <= label < len(LETTERS):
            letters.append(LETTERS[label])
        else:
            raise ShapeError(f"einsum: {label!r} is no label: they are integers from 0 to 51")
    return "".join(letters)


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the output; the axes of ``...`` get labels of their
    own.
    """
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {subscripts!r} has {len(terms)} terms for {len(ranks)} operands")
    free = [c for c in LETTERS if c not in text]
    extra = [
        rank - len(t.replace("...", "")) if "..." in t else 0
        for t, rank in zip(terms, ranks, strict=True)
    ]
    widest = "".join(free[: max([0, *extra])])
    spelled = []
    for term, rank, n in zip(terms, ranks, extra, strict=True):
        full = term.replace("...", widest[len(widest) - n :] if n > 0 else "")
        if len(full) != rank or term.count("...") > 1 or any(c not in LETTERS for c in full):
            raise ShapeError(
                f"einsum: the term {term!r} of {subscripts!r} does not fit an operand with {rank} "
                "axes"
            )
        spelled.append(full)
    if arrow and widest and "..." not in output:
        raise ShapeError(f"einsum: the output of {subscripts!r} lacks the '...' of its operands")
    if arrow:
        output = output.replace("...", widest)
    else:
        joined = "".join(spelled)
        output = widest + "".join(
            sorted(c for c in set(joined) if joined.count(c) == 1 and c not in widest)
        )
    for c in output:
        if output.count(c) > 1 or not any(c in term for term in spelled):
            raise ShapeError(
                f"einsum: output label {c!r} of {subscripts!r} is repeated or in no operand"
            )
    return spelled, output


def _check_lengths(
    subscripts: str, terms: Sequence[str], tensors: Sequence[TensorVariable]
) -> None:
    known: dict[str, int] = {}
    for term, x in zip(terms, tensors, strict=True):
        for label, n in zip(term, x.type.shape, strict=True):
            if n in (None, 1):
                continue
            if known.setdefault(label, n) != n:
                raise ShapeError(
                    f"einsum: {subscripts!r}: a label has lengths {known[label]} and {n} ({x.type})"
                )


def _without_repeats(x: TensorVariable, term: str, subscripts: str) -> Labelled:
    """Take the diagonal where a label occurs twice in one operand."""
    while len(set(term)) < len(term):
        label = next(c for c in term if term.count(c) > 1)
        i, j = [a for a, c in enumerate(term) if c == label][:2]
        x = diagonal(same_lengths(f"einsum {subscripts!r}", x, x, [(i, j)]), 0, i, j)
        term = "".join(c for a, c in enumerate(term) if a not in (i, j)) + label
    return x, term


def _order(labelled: Sequence[Labelled], output: str) -> list[tuple[int, int]]:
    """Return the pair of operands to combine at each step; NumPy's greedy path if all lengths are
    known.
    """
    n = len(labelled)
    if n > 2 and all(None not in x.type.shape for x, _ in labelled):
        text = ",".join(term for _, term in labelled) + "->" + output
        models = [np.broadcast_to(np.zeros(()), x.type.shape) for x, _ in labelled]  # type: ignore[arg-type]
        path = np.einsum_path(text, *models, optimize="greedy")[0][1:]
        if all(len(step) == 2 for step in path):
            return [(min(step), max(step)) for step in path]
    # Each result is appended: combine the first two, then the result with the first one left.
    return [(0, 1)] + [(0, n - 2 - k) for k in range(n - 2)] if n > 1 else []


def _combine(first: Labelled, second: Labelled, needed: set[str], subscripts: str) -> Labelled:
    """Return the product of two operands, summed over the labels not in ``needed``."""
    (a, s), (b, t) = _presum(first, second[1], needed), _presum(second, first[1], needed)
    shared = [c for c in s if c in t]
    if any(a.type.broadcastable[s.index(c)] != b.type.broadcastable[t.index(c)] for c in shared):
        return _multiply(a, s, b, t, needed)
    batch, inner = (
        [(s.index(c), t.index(c)) for c in shared if (c in needed) == kept]
        for kept in (True, False)
    )
    if not inner:
        return _multiply(a, s, b, t, needed)
    z = contract(f"einsum {subscripts!r}", a, b, batch, inner)
    alone = [c for c in s + t if c not in shared]
    return z, "".join([s[i] for i, _ in batch] + alone)


def _presum(x: Labelled, other: str, needed: set[str]) -> Labelled:
    """Sum over the labels that only this operand has."""
    v, term = x
    alone = [a for a, c in enumerate(term) if c not in other and c not in needed]
    if not alone:
        return x
    return sum_(v, axis=alone, dtype=v.dtype), "".join(
        c for a, c in enumerate(term) if a not in alone
    )


def _multiply(a: TensorVariable, s: str, b: TensorVariable, t: str, needed: set[str]) -> Labelled:
    labels = s + "".join(c for c in t if c not in s)
    z = mul(
        *(
            dimshuffle(v, *[term.index(c) if c in term else "x" for c in labels])
            for v, term in ((a, s), (b, t))
        )
    )
    gone = [i for i, c in enumerate(labels) if c not in needed]
    if gone:
        z = sum_(z, axis=gone, dtype=z.dtype)
    return z, "".join(c for c in labels if c in needed)


__all__ = ["einsum"]
