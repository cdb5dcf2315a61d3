"""Identity ops that change derivatives: to stop, undefine, clip or scale a gradient."""

from __future__ import annotations

from typing import Any

from symcomp.autodiff.lop import grad_undefined
from symcomp.core.node import Apply
from symcomp.core.record import record
from symcomp.ops.control.markers import GradientMarker


@record
class DisconnectedGrad(GradientMarker):
    """z = x, to which nothing upstream is connected."""

    no_derivative = "the gradient is meant to stop here"

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]


@record
class ZeroGrad(GradientMarker):
    """z = x with dz/dx = 0."""

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [None]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [None]


@record
class UndefinedGrad(GradientMarker):
    """z = x whose derivative must not be used."""

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> list[list[str]]:
        return [[self._null(node.inputs[0]).type.reason]]

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [self._null(inputs[0])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [self._null(inputs[0])]

    def _null(self, x: Any) -> Any:
        return grad_undefined(self, 0, x, "It was marked by undefined_grad.")


@record
class GradClip(GradientMarker):
    """z = x; the gradient of x is that of z clipped to [lower, upper]. Tangents pass unchanged."""

    lower: float
    upper: float

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0].clip(self.lower, self.upper)]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0]]


@record
class GradScale(GradientMarker):
    """z = x with dz/dx taken as ``factor``."""

    factor: float

    def pullback(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
        return [output_grads[0] * self.factor]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Any]:
        return [tangents[0] * self.factor]


def disconnected_grad(x: Any) -> Any:
    """Return ``x``, treated by ``grad`` and ``Rop`` as not depending on anything.

    Parameters
    ----------
    x : Variable

    Returns
    -------
    Variable
        A variable of the same type and value.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> float(symcomp.grad(x * symcomp.gradient.disconnected_grad(x), x).eval({x: 5.0}))
    5.0
    """
    return DisconnectedGrad()(x)


def consider_constant(x: Any) -> Any:
    """Return ``x`` with a zero derivative: the older name of ``zero_grad``.

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import gradient
    >>> x = T.dscalar("x")
    >>> T.grad(gradient.consider_constant(x) * x, x).eval({x: 3.0})
    array(3.)
    """
    return ZeroGrad()(x)


def zero_grad(x: Any) -> Any:
    """Return ``x`` with a zero derivative; unlike ``disconnected_grad``, it stays connected.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> float(symcomp.grad(symcomp.gradient.zero_grad(x) ** 2, x).eval({x: 5.0}))
    0.0
    """
    return ZeroGrad()(x)


def undefined_grad(x: Any) -> Any:
    """Return ``x``; a gradient through it is an error (NullTypeGradError).

    Examples
    --------
    >>> import symcomp.tensor as T
    >>> from symcomp import gradient
    >>> x = T.dvector("x")
    >>> gradient.undefined_grad(x).eval({x: [1.0]})
    array([1.])
    """
    return UndefinedGrad()(x)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Any:
    """Return ``x``; the gradient of ``x`` is clipped elementwise to ``[lower_bound, upper_bound]``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> y = symcomp.gradient.grad_clip(x, -1, 1) ** 2
    >>> float(symcomp.grad(y, x).eval({x: 5.0}))
    1.0
    """
    if not lower_bound <= upper_bound:
        raise ValueError(f"grad_clip: lower_bound {lower_bound} exceeds upper_bound {upper_bound}")
    return GradClip(float(lower_bound), float(upper_bound))(x)


def grad_scale(x: Any, multiplier: float) -> Any:
    """Return ``x``; the gradient of ``x`` is multiplied by ``multiplier``.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> float(symcomp.grad(symcomp.gradient.grad_scale(x, -1.0) * 3, x).eval({x: 5.0}))
    -3.0
    """
    return GradScale(float(multiplier))(x)
