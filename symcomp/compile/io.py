"""In and Out: options for an input or output of a function."""

from __future__ import annotations

from typing import Any

from symcomp.compile.shared import SharedVariable
from symcomp.core.node import Constant, Variable


class In:
    """An input of a function, with options.

    Parameters
    ----------
    variable : Variable
    name : str, optional
        Its keyword in calls; by default the variable's name.
    value : optional
        Makes the input optional, with this default. A shared variable: its value is used.
    update : Variable, optional
        The default is set to the value of this expression after each call.
    mutable : bool, optional
        The function may overwrite the array passed, with results of whatever ops, and may return
        it; without an ``update``, as defaults are kept.
    borrow : bool, optional
        The function may keep and return the array passed; implied by ``mutable``.
    strict : bool
        Accept only values that need no conversion.
    allow_downcast : bool, optional
        Convert values even if precision is lost; None: only a Python float to ``config.floatX``.
    autoname, implicit, shared
        Accepted for Theano's sake: take the name from the variable (true by default); not passed
        in calls (by
        default where ``value`` is a shared variable); of no effect.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, n = T.dscalar("x"), T.dscalar("n")
    >>> power = symcomp.function([x, symcomp.In(n, value=2.0)], x ** n)
    >>> float(power(3.0)), float(power(3.0, n=3.0))
    (9.0, 27.0)
    """

    def __init__(
        self,
        variable: Variable,
        name: str | None = None,
        value: Any = None,
        update: Any = None,
        mutable: bool | None = None,
        strict: bool = False,
        allow_downcast: bool | None = None,
        autoname: bool = True,
        implicit: bool | None = None,
        borrow: bool | None = None,
        shared: bool = False,
    ) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(f"In: {variable!r} is not a variable")
        if isinstance(variable, Constant | SharedVariable):
            kind = "constant" if isinstance(variable, Constant) else "shared variable"
            raise TypeError(
                f"{variable} is a {kind} and cannot be an input: it has a value already. To "
                "replace it "
                "for one function, use givens={it: other_variable}"
            )
        if mutable and borrow is False:
            raise ValueError(f"In: {variable} is mutable, which implies borrow=True, not False")
        self.variable = variable
        self.name = variable.name if name is None and autoname else name
        self.value = value
        self.mutable = bool(mutable) if mutable is not None else update is not None
        self.borrow = bool(self.mutable if borrow is None else borrow)
        self.strict = strict
        self.allow_downcast = allow_downcast
        self.implicit = isinstance(value, SharedVariable) if implicit is None else implicit
        self.shared = shared
        self.update: Variable | None = None
        if update is not None:
            try:
                self.update = variable.type.filter_variable(update)
            except TypeError as problem:
                raise TypeError(f"In: the update of {variable}: {problem}") from None

    def __repr__(self) -> str:
        return f"In({self.variable})"


Param = In


class Out:
    """An output of a function, with options.

    Parameters
    ----------
    variable : Variable
    borrow : bool
        True: the function may return its own storage, or that of an input, without copying it.
    """

    def __init__(self, variable: Variable, borrow: bool = False) -> None:
        if not isinstance(variable, Variable):
            raise TypeError(f"Out: {variable!r} is not a variable")
        self.variable = variable
        self.borrow = borrow

    def __repr__(self) -> str:
        return f"Out({self.variable}, borrow={self.borrow})"
