"""The nodes of the graph: Type, Variable, Constant and Apply.

A graph is bipartite: an Apply node takes Variables and makes Variables. Variables compare by
identity. Nodes
are built once; only a FunctionGraph, on its own copy, exchanges the inputs of a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from symcomp.core.source import Source, user_line


class Type:
    """The static facts about a value: dtype and partly known shape for tensors. Equal types are
    interchangeable.

    Subclasses compare by their parameters and say which classes of Variable and Constant they make.
    """

    variable_class: ClassVar[type[Variable]]
    constant_class: ClassVar[type[Constant]]

    def filter(self, value: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``value`` as a value of this type, or raise TypeError."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to check values")

    def is_super(self, other: Type) -> bool:
        """Tell whether every value of ``other`` is also a value of this type."""
        return self == other

    def filter_variable(self, variable: Variable) -> Variable:
        """Return ``variable``, or one computed from it, whose type fits this one, else raise
        TypeError.
        """
        if not self.is_super(variable.type):
            raise TypeError(f"{variable} has type {variable.type}, which does not fit {self}")
        return variable

    def filter_gradient(self, x: Variable, term: Any, who: str) -> Any:
        """Return ``term`` as a gradient or tangent of ``x``; an error names ``who`` gave it if it
        does not fit.
        """
        return term

    def values_eq(self, a: Any, b: Any) -> bool:
        """Tell whether the two values are equal."""
        return bool(a == b)

    def values_eq_approx(self, a: Any, b: Any) -> bool:
        """Tell whether the two values are equal up to rounding."""
        return self.values_eq(a, b)

    def may_share_memory(self, a: Any, b: Any) -> bool:
        """Tell whether the two values may have memory in common."""
        return a is b

    def copy_value(self, value: Any) -> Any:
        """Return a copy of ``value`` that shares no mutable memory with it."""
        return value

    def joined(self, other: Type) -> Type | None:
        """Return the smallest type that contains this type and ``other``; None if there is none."""
        return self if self == other else None

    def make_variable(self, name: str | None = None) -> Variable:
        """Return a new variable of this type with no owner."""
        return self.variable_class(self, name=name)

    def make_constant(self, value: Any, name: str | None = None) -> Constant:
        """Return a constant of this type."""
        return self.constant_class(self, self.filter(value), name=name)

    def __call__(self, name: str | None = None) -> Any:
        return self.make_variable(name)


class Variable:
    """A value in the graph: an input (``owner`` is None) or output ``index`` of the node ``owner``.

    Attributes
    ----------
    type : Type
    owner : Apply or None
    index : int or None
    name : str or None
    source : Source or None
        The user's line that made it; kept by clones.
    """

    auto_name_count: ClassVar[int] = 0

    def __init__(
        self,
        type: Type,
        owner: Apply | None = None,
        index: int | None = None,
        name: str | None = None,
        source: Source | None = None,
    ) -> None:
        self.type = type
        self.owner = owner
        self.index = index
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a variable is a str or None, not {name!r}")
        self.name = name
        self.source = source if source is not None or owner is not None else user_line()

    @property
    def tag(self) -> SimpleNamespace:
        """Namespace for the user's own attributes."""
        if "_tag" not in self.__dict__:
            self._tag = SimpleNamespace()
        return self._tag

    def clone(self, name: str | None = None) -> Variable:
        """Return a variable of the same type, name, source and tag, with no owner."""
        twin = self.type.variable_class(self.type, name=name or self.name, source=self.source)
        if "_tag" in self.__dict__:
            twin._tag = self._tag
        return twin

    def get_parents(self) -> list[Apply]:
        """Return the owner in a list, or an empty list."""
        return [] if self.owner is None else [self.owner]

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is None:
            return f"<{self.type}>"
        suffix = f".{self.index}" if len(self.owner.outputs) > 1 else ""
        return f"{self.owner.op}{suffix}"

    def __repr__(self) -> str:
        return str(self)


class Constant(Variable):
    """A variable whose value is known: ``data``."""

    def __init__(
        self, type: Type, data: Any, name: str | None = None, source: Source | None = None
    ) -> None:
        super().__init__(type, None, None, name, source)
        self.data = data

    @property
    def value(self) -> Any:
        """The value (not a copy: do not write to it)."""
        return self.data

    def signature(self) -> Any:
        """Return a hashable key, equal for constants that may be merged."""
        return (self.type, self.data)

    def clone(self, name: str | None = None) -> Constant:
        """Return a constant with the same value."""
        return self.type.constant_class(self.type, self.data, name or self.name, self.source)

    def __str__(self) -> str:
        return self.name if self.name is not None else f"{self.data!r}"


class Apply:
    """The application of ``op`` to ``inputs``, giving ``outputs``.

    An output is given by its type, or as a new variable of that type, whose owner becomes this
    node. Only a FunctionGraph exchanges ``inputs`` in place, on nodes of its own copy.
    """

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Variable],
        outputs: Sequence[Type | Variable],
        source: Source | None = None,
    ) -> None:
        self.op = op
        # Any: the attributes of a variable depend on its type.
        self.inputs: list[Any] = list(inputs)
        self.source = source if source is not None else user_line()
        self.outputs: list[Any] = [
            kind.variable_class(kind, self, i, None, self.source)
            if isinstance(kind, Type)
            else self._adopt(kind, i)
            for i, kind in enumerate(outputs)
        ]

    def _adopt(self, variable: Variable, index: int) -> Variable:
        """Make ``variable``, which has no owner yet, output ``index`` of this node."""
        if not isinstance(variable, Variable):
            raise TypeError(f"output {index} of {self.op} is {variable!r}, not a type or variable")
        if variable.owner is not None or isinstance(variable, Constant):
            raise ValueError(f"output {index} of {self.op} is {variable}, which has an owner")
        variable.owner, variable.index, variable.source = self, index, self.source
        return variable

    @property
    def out(self) -> Any:
        """The only output."""
        if len(self.outputs) != 1:
            raise AttributeError(f"{self} has {len(self.outputs)} outputs, so no single .out")
        return self.outputs[0]

    @property
    def nin(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def nout(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    def get_parents(self) -> list[Variable]:
        """Return the inputs."""
        return list(self.inputs)

    def clone_with_new_inputs(self, inputs: Sequence[Variable], strict: bool = True) -> Apply:
        """Return this op applied to other inputs; names and sources of the outputs are kept.

        Parameters
        ----------
        inputs : sequence of Variable
        strict : bool
            If true, an input of a type that does not fit the old one is an error; if false, the
            node is built
            anew and its output types may change.
        """
        fits = all(
            old.type.is_super(new.type) for old, new in zip(self.inputs, inputs, strict=True)
        )
        if fits:
            node = Apply(self.op, inputs, [out.type for out in self.outputs], self.source)
        elif strict:
            misfit = next(
                (old, new)
                for old, new in zip(self.inputs, inputs, strict=True)
                if not old.type.is_super(new.type)
            )
            raise TypeError(
                f"cannot replace {misfit[0]} of type {misfit[0].type} by {misfit[1]} of type "
                f"{misfit[1].type} as an input of {self.op}; pass strict=False to rebuild what "
                "depends on it"
            )
        else:
            node = self.op.make_node(*inputs)
            node.source = self.source
        for old, new in zip(self.outputs, node.outputs, strict=True):
            new.name = old.name
            new.source = old.source
            if "_tag" in old.__dict__:
                new._tag = old._tag
        return node

    def clone(self) -> Apply:
        """Return a copy of this node with new outputs."""
        return self.clone_with_new_inputs(self.inputs)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(str(i) for i in self.inputs)})"

    def __repr__(self) -> str:
        return str(self)


Type.variable_class = Variable
Type.constant_class = Constant
