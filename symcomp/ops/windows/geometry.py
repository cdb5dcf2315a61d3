"""The geometry of windows: padding, steps, dilation, and the number of windows along an axis.

Formulas are for ints and for symbolic lengths alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Annotated, Any

import numpy as np

from symcomp.core.fields import Between, check_fields, one_of
from symcomp.core.record import record
from symcomp.errors import ParameterError, ShapeError

# Limit of lengths, so that positions in a padded image, sums of products of two of these, fit in 64
# bits.
LARGEST = 2**31 - 1
#: A step, or the length of a window
Count = Annotated[int, Between(1, LARGEST)]
#: Elements added at an end of an axis
Margin = Annotated[int, Between(0, LARGEST)]

# "valid": none; "full": all windows that meet the image; "half": as many windows as elements, for
# odd windows; or the numbers of elements before and after.
Padding = Annotated[str, one_of("valid", "full", "half")] | tuple[Margin, Margin]


@record
class Geometry:
    """The padding, steps and dilation of windows along the spatial axes.

    Attributes
    ----------
    padding : tuple of Padding
        For each axis.
    strides : tuple of int
        The steps between adjacent windows.
    dilation : tuple of int
        The steps between adjacent elements of a window.
    """

    padding: tuple[Padding, ...]
    strides: tuple[Count, ...]
    dilation: tuple[Count, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if not len(self.padding) == len(self.strides) == len(self.dilation) > 0:
            raise ParameterError(
                f"Geometry: padding {self.padding}, strides {self.strides} and dilation "
                f"{self.dilation} must have one entry for each spatial axis, at least one"
            )

    def span(self, axis: int, k: Any) -> Any:
        """Return the distance from the first to the last element of a window of ``k`` elements,
        plus 1.
        """
        return (k - 1) * self.dilation[axis] + 1

    def pads(self, axis: int, k: Any) -> tuple[Any, Any]:
        """Return the number of elements added before and after the image."""
        padding = self.padding[axis]
        if isinstance(padding, tuple):
            return padding
        if padding == "valid":
            return 0, 0
        reach = self.span(axis, k)
        around = reach - 1 if padding == "full" else reach // 2
        return around, around

    def count(self, axis: int, n: Any, k: Any) -> Any:
        """Return the number of windows of ``k`` elements along an axis of length ``n``."""
        before, after = self.pads(axis, k)
        return (n + before + after - self.span(axis, k)) // self.strides[axis] + 1

    def counts(self, lengths: Sequence[Any], kernel: Sequence[Any]) -> tuple[Any, ...]:
        """Return the number of windows along each axis; None where a length is None."""
        pairs = enumerate(zip(lengths, kernel, strict=True))
        return tuple(None if n is None or k is None else self.count(a, n, k) for a, (n, k) in pairs)

    def checked_counts(
        self, name: str, lengths: Sequence[int], kernel: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the same for known lengths, or raise.

        Raises
        ------
        ShapeError
            If the kernel is empty, or larger than the padded image.
        """
        found = self.counts(lengths, kernel)
        for a, n in enumerate(found):
            if n is not None and (n < 1 or kernel[a] < 1):
                raise ShapeError(
                    f"{name}: a kernel of {tuple(kernel)} elements does not fit an image of "
                    f"{tuple(lengths)}, padded by {self.pads(a, kernel[a])} along axis {a}, "
                    f"dilation {self.dilation}: make the image or the padding larger"
                )
        return found

    def offsets(
        self, kernel: Sequence[int], counts: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Return, for each element of a window, its position and the slice of the padded image that
        holds it in all windows.
        """
        for at in product(*map(range, kernel)):
            parts = []
            for i, n, step, spread in zip(at, counts, self.strides, self.dilation, strict=True):
                first = i * spread
                parts.append(slice(first, first + (n - 1) * step + 1, step))
            yield at, tuple(parts)

    def padded(self, x: Any, kernel: Sequence[int], fill: Any = 0) -> Any:
        """Return ``x`` with ``fill`` around it along the last axes; ``x`` itself if nothing is
        added.
        """
        pads = [self.pads(a, k) for a, k in enumerate(kernel)]
        if not any(map(any, pads)):
            return x
        lead = x.ndim - len(pads)
        lengths = [b + n + a for n, (b, a) in zip(x.shape[lead:], pads, strict=True)]
        wide = np.full((*x.shape[:lead], *lengths), fill, x.dtype)
        wide[self.inner(kernel, x.shape[lead:])] = x
        return wide

    def inner(self, kernel: Sequence[int], lengths: Sequence[int]) -> tuple[Any, ...]:
        """Return the slices of the padded image that hold the image."""
        starts = [self.pads(a, k)[0] for a, k in enumerate(kernel)]
        return (..., *(slice(s, s + n) for s, n in zip(starts, lengths, strict=True)))


def unfolded(geometry: Geometry, wide: Any, kernel: Sequence[int], counts: Sequence[int]) -> Any:
    """Return the elements of all windows: (b, c, *lengths) -> (b, c, *kernel, *counts)."""
    if prod(kernel) == 1 and tuple(counts) == wide.shape[2:]:
        return wide.reshape(*wide.shape[:2], *kernel, *counts)
    columns: Any = np.empty((*wide.shape[:2], *kernel, *counts), wide.dtype)
    for at, parts in geometry.offsets(kernel, counts):
        columns[(slice(None), slice(None), *at)] = wide[(slice(None), slice(None), *parts)]
    return columns


def folded(geometry: Geometry, columns: Any, kernel: Sequence[int], wide: Any) -> None:
    """Add the elements of all windows to the padded image: the adjoint of ``unfolded``."""
    counts = columns.shape[2 + len(kernel) :]
    for at, parts in geometry.offsets(kernel, counts):
        wide[(slice(None), slice(None), *parts)] += columns[(slice(None), slice(None), *at)]
