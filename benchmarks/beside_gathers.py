"""Tasks of `beside.py`: vectors read and added to at positions, as models with groups do."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from beside_registry import Work, add, call, numbers

import symcomp
import symcomp.tensor as T

GROUPS, ROWS = 85, (8, 919, 100_000)


def _groups(rows: int) -> Any:
    """Return the group of each row, as the rows of a survey have: those of a group are adjacent."""
    return np.sort(np.random.default_rng(5).integers(0, GROUPS, rows))


def _times(rows: int) -> Work:
    a, group, x = T.dvector(), T.lvector(), T.dvector()
    return call([a, group, x], a[group] * x, numbers(GROUPS), _groups(rows), numbers(rows))


def _two_tables(rows: int) -> Work:
    a, b, group, x = T.dvector(), T.dvector(), T.lvector(), T.dvector()
    z = a[group] + b[group] * x
    return call([a, b, group, x], z, numbers(GROUPS), numbers(GROUPS), _groups(rows), numbers(rows))


def _squares(rows: int) -> Work:
    a, group, x = T.dvector(), T.lvector(), T.dvector()
    z = ((x - a[group]) ** 2).sum()
    return call([a, group, x], z, numbers(GROUPS), _groups(rows), numbers(rows))


def _gradient(rows: int, known: bool) -> Work:
    """Compute a linear model with an intercept and a slope for each group, with gradients."""
    a, b, s, group = T.dvector(), T.dvector(), T.dscalar(), T.lvector()
    floor, y = T.constant(np.arange(rows) % 3 / 2.0), T.constant(numbers(rows))
    place = T.constant(_groups(rows)) if known else group
    mu = a[place] + b[place] * floor
    density = -0.5 * T.sum((y - mu) ** 2 / s**2)
    inputs = [a, b, s] if known else [a, b, s, group]
    values = [numbers(GROUPS), numbers(GROUPS), np.array(1.3), *([] if known else [_groups(rows)])]
    return call(inputs, [density, *symcomp.grad(density, [a, b, s])], *values)


def _added(rows: int, several: bool) -> Work:
    """Add the squares of rows up in their groups; if ``several``, the rows themselves, too."""
    a, group, x = T.dvector(), T.lvector(), T.dvector()
    zeros = T.zeros_like(a)
    sums = [T.inc_subtensor(zeros[group], x * x)]
    if several:
        sums.append(T.inc_subtensor(zeros[group], x * 2.0))
    return call([a, group, x], sums, numbers(GROUPS), _groups(rows), numbers(rows))


def _added_products(rows: int) -> Work:
    """Compute the gradient of a sum of functions of elements at positions in no order."""
    a, group, x = T.dvector(), T.lvector(), T.dvector()
    groups = np.random.default_rng(6).integers(0, GROUPS, rows)
    gradient = symcomp.grad(T.sum(T.sqr(a[group]) * x), a)
    return call([a, group, x], gradient, numbers(GROUPS), groups, numbers(rows))


for _rows in ROWS:
    add(f"gather/times_{_rows}", partial(_times, _rows))
    add(f"gather/two_tables_{_rows}", partial(_two_tables, _rows))
    add(f"gather/squares_{_rows}", partial(_squares, _rows))
    add(f"gather/gradient_{_rows}", partial(_gradient, _rows, False))
    add(f"gather/gradient_of_known_groups_{_rows}", partial(_gradient, _rows, True))
    add(f"gather/added_squares_{_rows}", partial(_added, _rows, False))
    add(f"gather/added_twice_{_rows}", partial(_added, _rows, True))
    add(f"gather/added_products_{_rows}", partial(_added_products, _rows))
