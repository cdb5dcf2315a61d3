"""In-place ops that overwrite arguments: functions with ``accept_inplace=True``; ``T.inplace``.

As in Theano, in-place ops of the program also overwrite arrays passed as arguments, and values of
shared variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import wraps
from inspect import signature
from typing import Any

from symcomp.compile.arguments import read_outputs, read_pairs
from symcomp.compile.function import function as compile_function
from symcomp.compile.io import In
from symcomp.compile.shared import SharedVariable
from symcomp.core.node import Variable
from symcomp.core.tensor import TensorVariable
from symcomp.core.walk import rebuild, toposort
from symcomp.ops.elementwise import inplace, scalar_logic
from symcomp.ops.elementwise.elemwise import Elemwise, elemwise_function
from symcomp.ops.elementwise.scalar_special import chi2sf
from symcomp.ops.nnet.functions import ultra_fast_sigmoid
from symcomp.ops.shapes.axes import transpose
from symcomp.vm.order import alias_roots, destroyed_inputs

__all__ = ["INPLACE", "function", "ultra_fast_sigmoid_inplace"]


def _expressions(given: Mapping[str, Any]) -> list[Variable]:
    """Return the expressions that ``function`` computes, with the replacements made."""
    outputs, _ = read_outputs(given.get("outputs"))
    pairs = read_pairs("updates", given.get("updates"))
    roots = [out.variable for out in outputs]
    roots += [new for _, new in pairs if isinstance(new, Variable)]
    replace = read_pairs("givens", given.get("givens"))
    return rebuild(roots, {old: new for old, new in replace if isinstance(new, Variable)}, False)


def _overwritten(expressions: Sequence[Variable]) -> list[Variable]:
    """Return the variables without owner whose memory ops in the expressions write to."""
    found: dict[Variable, None] = {}
    for node in toposort(expressions):
        for i in destroyed_inputs(node):
            found.update((v, None) for v in alias_roots(node.inputs[i]) if v.owner is None)
    return list(found)


def _mutable(item: Any, overwritten: Sequence[Variable]) -> Any:
    """Return an input of ``function``, marked as mutable if an op overwrites it."""
    spec = In(item) if isinstance(item, Variable) and item in overwritten else item
    if isinstance(spec, In) and spec.variable in overwritten:
        spec = copy(spec)
        spec.mutable = spec.borrow = True
    return spec


def _with_overwriting(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``function`` with inputs marked mutable and shared variables replaced
    by inputs, as far as ops overwrite them.
    """
    overwritten = _overwritten(_expressions(given))
    inputs = [_mutable(item, overwritten) for item in given["inputs"]]
    updated = {old for old, _ in read_pairs("updates", given.get("updates"))}
    shared = [s for s in overwritten if isinstance(s, SharedVariable) and s not in updated]
    # Inputs that always receive the arrays of shared variables themselves.
    stands: dict[Variable, Variable] = {s: s.type(s.name) for s in shared}
    inputs += [In(stands[s], value=s, mutable=True) for s in shared]
    replace = dict(read_pairs("givens", given.get("givens")))
    for old, new in replace.items():
        replace[old] = rebuild([new], stands)[0] if isinstance(new, Variable) else new
    return {**given, "inputs": inputs, "givens": replace | stands}


@wraps(compile_function)
def function(*args: Any, **kwargs: Any) -> Any:
    """Compile as ``symcomp.function`` does; with ``accept_inplace=True``, calls overwrite arguments
    and values of shared variables where in-place ops of the program do.
    """
    bound = signature(compile_function).bind(*args, **kwargs).arguments
    if bound.get("accept_inplace"):
        bound = _with_overwriting(bound)
    return compile_function(**bound)


def _variant(name: str, function: Callable[..., Any]) -> Callable[..., TensorVariable]:
    row = function.op.scalar  # type: ignore[attr-defined]
    arguments = ["x", "y"][: row.arity]
    doc = f"``{name}``, overwriting its first argument."
    return elemwise_function(Elemwise(row, ((0, 0),)), f"{name}_inplace", arguments, doc)


def _overwriting(function: Callable[..., TensorVariable]) -> Callable[..., TensorVariable]:
    """Return a function of several ops that writes its result over its first argument."""

    def overwrite(x: Any, *others: Any) -> TensorVariable:
        return inplace.NAMES["second_inplace"](x, function(x, *others))

    overwrite.__name__ = overwrite.__qualname__ = f"{function.__name__}_inplace"
    overwrite.__doc__ = f"``{function.__name__}``, overwriting its first argument."
    return overwrite


ultra_fast_sigmoid_inplace = _overwriting(ultra_fast_sigmoid)
#: The names of ``theano.tensor.inplace``.
INPLACE: dict[str, Any] = {
    **inplace.NAMES,
    **{
        f"{name}_inplace": _variant(name, getattr(scalar_logic, name))
        for name in ("eq", "ge", "gt", "le", "lt", "neq")
    },
    "chi2sf_inplace": _overwriting(chi2sf),
    "fill_inplace": inplace.NAMES["second_inplace"],
    "transpose_inplace": transpose,
}
