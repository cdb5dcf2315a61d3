"""explain_fusion: tell which loops a function has, and why they are not one."""

from __future__ import annotations

from typing import Any, TextIO

from symcomp.compile.callable import Function
from symcomp.core.node import Apply
from symcomp.core.output import written
from symcomp.rewrite.apart import LoopNode, kernels_of


def explain_fusion(f: Function, file: TextIO | str | None = None) -> Any:
    """Report the loops over elements of a compiled function, and why each is a loop of its own.

    For each scalar function, reduction or fused group of them, in the order of computation: the op,
    the line of your program that made it, and the loops that feed it, each with the reason why it
    is not part of this one. The bodies of ``scan`` and of ops made of graphs are left out.

    Parameters
    ----------
    f : Function
        A compiled function.
    file : file object or "str", optional
        The file to write to, standard output if not given; ``"str"`` returns the text instead.

    Raises
    ------
    TypeError
        If ``f`` is no compiled function.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> from symcomp.printing import explain_fusion
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.exp(T.cumsum(T.sin(x) * 2)) + 1)
    >>> explain_fusion(f)
    0  Fused{sin(x0) * 2.0}    [...]
    1  Fused{exp(x0) + 1.0}    [...]
       apart from 0: between them is CumOp{axis=0, mode='add'}: no loop over elements
    """
    if not isinstance(f, Function):
        raise TypeError(
            f"explain_fusion: f must be a compiled function, got {type(f).__name__}; compile "
            "the expression with symcomp.function first"
        )
    kernels = kernels_of(f.maker.fgraph)
    fuses = any(phase.name == "fusion" for phase in f.maker.trace.phases)
    number = {kernel.node: i for i, kernel in enumerate(kernels)}
    lines = [line for kernel in kernels for line in _told(kernel, number, fuses)]
    if not fuses:
        lines.insert(0, "the mode leaves out the phase fusion")
    return written("\n".join(lines or ["no loops over elements"]), file)


def _told(kernel: LoopNode, number: dict[Apply, int], fuses: bool) -> list[str]:
    node = kernel.node
    source = f"    [{node.source}]" if node.source else ""
    lines = [f"{number[node]}  {node.op}{source}"]
    if fuses and kernel.alone:
        lines.append(f"   alone: {kernel.alone}")
    if fuses:
        lines += [f"   apart from {number[maker]}: {why}" for maker, why in kernel.apart]
    return lines
