"""The contract of an op: its inputs and outputs, how it is computed and how it is differentiated.

An op is a frozen dataclass: its fields are its parameters, and equal parameters make equal ops.
That is how merging works. Sections of an op class, in this order: docstring (formula, shapes),
fields, ``output_types``, ``perform``, ``infer_shape``, ``pullback``, ``pushforward``, aliasing.
What the compiler needs beyond the contract are tables by op class in its features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from symcomp.core.applications import note_application
from symcomp.core.fields import check_fields
from symcomp.core.node import Apply, Type, Variable


class Op:
    """Base class of all ops.

    Attributes
    ----------
    multiple_outputs : bool
        If true, ``perform`` returns a tuple and calling the op returns a list, also for one output.
    no_derivative : str
        Why the op has no derivative rules; empty for an op with ``pullback`` and ``pushforward``.
    view_map, destroy_map : mapping of int to tuple of int
        Output position to the input positions that it may share memory with, or that it overwrites.
    moves : bool
        If true, the op only moves elements, looks at lengths or passes values on: ``perform`` takes
        arrays of any dtype. Other ops of symcomp's never see arrays of bfloat16 (see
        `core/storage.py`).
    has_effects : bool
        If true, computing the op has side effects (it prints): it is never folded or run early.
    """

    multiple_outputs: ClassVar[bool] = False
    no_derivative: ClassVar[str] = ""
    moves: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    view_map: Mapping[int, tuple[int, ...]] = {}
    destroy_map: Mapping[int, tuple[int, ...]] = {}

    def __post_init__(self) -> None:
        """Check the parameters of symcomp's own ops by their annotations, when an op is made or
        loaded. Subclasses add checks that annotations cannot express.
        """
        check_fields(self)

    # -- building
    # ------------------------------------------------------------------------------------

    def as_inputs(self, *args: Any) -> list[Variable]:
        """Turn the arguments of a call into variables; called before ``output_types``."""
        for position, arg in enumerate(args):
            if not isinstance(arg, Variable):
                raise TypeError(f"{self}: argument {position} is {arg!r}, not a variable")
        return list(args)

    def output_types(self, *inputs: Any) -> Sequence[Type]:
        """Validate the input variables and return one type per output."""
        raise NotImplementedError(f"{type(self).__name__} defines no output_types")

    def make_node(self, *args: Any) -> Apply:
        """Apply this op to ``args``."""
        inputs = self.as_inputs(*args)
        return Apply(self, inputs, self.output_types(*inputs))

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        """Apply this op and return its output, or the list of its outputs."""
        node = self.make_node(*args)
        note_application(node)
        if self.multiple_outputs:
            return list(node.outputs)
        if name is not None:
            node.outputs[0].name = name
        return node.outputs[0]

    # -- running
    # -------------------------------------------------------------------------------------

    def perform(self, *values: Any) -> Any:
        """Compute with NumPy: the value of the output, or a tuple if ``multiple_outputs``."""
        raise NotImplementedError(f"{type(self).__name__} defines no perform")

    def bind(self, node: Apply) -> Callable[..., Any]:
        """Return the function that computes ``node``: ``perform``, or one that knows the types of
        its variables, and checks that values keep what these promise.
        """
        return self.perform

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of each output, a tuple of int or integer scalar variables, from the
        shapes of the inputs.

        ``shapes[i]`` is None for an input that is no tensor.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no infer_shape")

    # -- differentiating
    # -----------------------------------------------------------------------------

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return ``[i][j]``: True if the value (not just the shape) of output j depends on input i.
        """
        return [[True] * len(node.outputs) for _ in node.inputs]

    def undefined_derivatives(self, node: Apply, forward: bool = False) -> Sequence[Sequence[str]]:
        """Return ``[i][j]``: why output j has no derivative in input i (as a draw has none in its
        parameters), empty text if it has one. An empty list: all derivatives exist.

        A gradient along such a connection is undefined even if nothing that follows has a
        derivative other than zero. Where output j has a gradient, ``pullback`` is asked instead.
        With ``forward``, the answer is for the forward mode, where ``pushforward`` is not asked.
        """
        return ()

    def pullback(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        output_grads: Sequence[Any],
    ) -> list[Any]:
        """L-op: for each input, the sum over outputs of J^T times the output's gradient.

        A gradient of None means that the cost does not depend on that output; None returned means
        zero.
        """
        raise NotImplementedError(self._why_not("pullback (L-op)"))

    def pushforward(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        tangents: Sequence[Any],
    ) -> list[Any]:
        """R-op: for each output, J times the tangents of the inputs; None stands for a zero
        tangent.
        """
        raise NotImplementedError(self._why_not("pushforward (R-op)"))

    def _why_not(self, rule: str) -> str:
        reason = self.no_derivative or "nobody wrote it"
        return f"{self} has no {rule}: {reason}"

    # -- structure
    # -----------------------------------------------------------------------------------

    def inner_graphs(self) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        """Return (inputs, outputs) of each graph that the op contains."""
        return ()

    def inner_graphs_of(
        self, node: Apply
    ) -> Sequence[tuple[Sequence[Variable], Sequence[Variable]]]:
        """Return the inner graphs of one application, where they depend on the types of its inputs.
        """
        return self.inner_graphs()

    def inner_sources(self, node: Apply) -> Sequence[Sequence[Variable | None]]:
        """Return, for each graph of ``inner_graphs_of``, the source of each of its inputs: an input
        of ``node`` (or part of one), or None if the value is made inside.
        """
        counts = [len(inputs) for inputs, _ in self.inner_graphs_of(node)]
        n = len(node.inputs)
        return [node.inputs if count == n else [None] * count for count in counts]

    def __str__(self) -> str:
        names = getattr(self, "__match_args__", ())
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}{{{shown}}}" if shown else type(self).__name__
