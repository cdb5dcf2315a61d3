"""explain_rewrites: report the rewrites of a function's graph."""

from __future__ import annotations

from typing import Any, TextIO

from symcomp.compile.callable import Function
from symcomp.core.output import written


def explain_rewrites(f: Function, file: TextIO | str | None = None) -> Any:
    """Report how rewriting changed the graph of a compiled function.

    Phase by phase: each rule that fired with its reason, and for each firing the node, its
    replacement, and the line of your program that made the node. ``config.optimizer_verbose``
    prints the same for every function when it is compiled.

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
    >>> from symcomp.printing import explain_rewrites
    >>> x = T.dvector("x")
    >>> f = symcomp.function([x], T.log(1 + x))
    >>> "log(add) -> log1p(x)" in explain_rewrites(f, file="str")
    True
    """
    if not isinstance(f, Function):
        raise TypeError(
            f"explain_rewrites: f must be a compiled function, got {type(f).__name__}; compile "
            "the expression with symcomp.function first"
        )
    text = str(f.maker.trace)
    return written(text, file)
