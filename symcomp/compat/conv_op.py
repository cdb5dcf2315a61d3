"""``theano.tensor.nnet.conv``: the first convolution of Theano, and its op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symcomp.autodiff.lop import Lop
from symcomp.compat.convolutions import conv_shape_1axis
from symcomp.compile.builders import OpFromGraph
from symcomp.core.tensor import TensorType, TensorVariable
from symcomp.ops.convert import as_tensor_variable
from symcomp.ops.windows import convolve

__all__ = ["ConvOp", "conv2d", "conv_op"]

# Options of the C code
_OF_C_CODE = frozenset(
    ["openmp", "unroll_batch", "unroll_kern", "unroll_patch", "verbose", "version"]
)


class ConvOp(OpFromGraph):
    """The convolution of images with flipped kernels, as one op.

    Programs ask it for gradients: ``conv2d(x, w).owner.op.grad((x, w), (g,))``. Compiled functions
    inline its graph.
    """

    def grad(self, inputs: Sequence[Any], output_gradients: Sequence[Any]) -> list[Any]:
        """Return the gradients with respect to the images and to the kernels.

        The gradient for the images needs only their lengths: if these are known, the images are not
        read.
        """
        found: list[Any] = Lop(self.graph(list(inputs)), list(inputs), list(output_gradients))
        return found


def _op(dtypes: tuple[str, str], *parameters: Any) -> ConvOp:
    images, kernels = (TensorType(dtype, (None,) * 4)() for dtype in dtypes)
    image_shape, filter_shape, border_mode, subsample = parameters
    z = convolve.conv2d(images, kernels, image_shape, filter_shape, border_mode, subsample)
    return ConvOp([images, kernels], [z], inline=True, name="conv2d")


def conv2d(
    input: Any,
    filters: Any,
    image_shape: Any = None,
    filter_shape: Any = None,
    border_mode: str = "valid",
    subsample: Any = (1, 1),
    **options: Any,
) -> TensorVariable:
    """Implement ``theano.tensor.nnet.conv.conv2d``; options concern its C code."""
    check_options("nnet.conv.conv2d", options)
    x, w = as_tensor_variable(input), as_tensor_variable(filters)
    # Checks ranks and dtypes, with error messages that name the arguments.
    convolve.conv2d(x, w, image_shape, filter_shape, border_mode, subsample)
    op = _op((x.dtype, w.dtype), image_shape, filter_shape, border_mode, subsample)
    z: TensorVariable = op(x, w)
    return z


def check_options(name: str, options: dict[str, Any]) -> None:
    """Raise for options other than those of the C code."""
    for option, value in options.items():
        if option not in _OF_C_CODE and value is not None:
            raise NotImplementedError(f"theano.tensor.{name}: {option}={value!r}")


def conv_op(
    imshp: Any = None,
    kshp: Any = None,
    nkern: Any = None,
    bsize: Any = None,
    dx: int = 1,
    dy: int = 1,
    output_mode: str = "valid",
    **of_c_code: Any,
) -> Callable[..., Any]:
    """Construct a ConvOp: lengths are (channels, rows, columns) and (rows, columns).
    """
    channels = None if imshp is None or len(imshp) < 3 else imshp[0]
    image = None if imshp is None else (bsize, channels, *imshp[-2:])
    kernels = None if kshp is None else (nkern, channels, *kshp)
    return lambda inputs, kerns: conv2d(
        inputs, kerns, image, kernels, output_mode, (dx or 1, dy or 1)
    )


def output_shape(
    inshp: Sequence[Any],
    kshp: Sequence[Any],
    stride: Sequence[int] = (1, 1),
    mode: str = "valid",
) -> list[Any]:
    """Implement ``ConvOp.getOutputShape``: the lengths of a result, from those of images and
    kernels.

    A length that is None stands for one that is not known.
    """
    axes = zip(inshp, kshp, stride, strict=True)
    return [conv_shape_1axis(n, k, mode, step) for n, k, step in axes]
