"""function_dump: save the arguments of a call of ``function``, to send with a bug report."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Sequence
from typing import Any

from symcomp.core.flat import Flat, flatten, unflatten
from symcomp.core.node import Variable


class _Collector(pickle.Pickler):
    """Pickles a number for each variable; the graph is written flat, at any depth."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.numbers: dict[Variable, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        return (
            self.numbers.setdefault(obj, len(self.numbers)) if isinstance(obj, Variable) else None
        )


class _Restorer(pickle.Unpickler):
    """Unpickles variables by number."""

    def __init__(self, file: Any, variables: Sequence[Variable]) -> None:
        super().__init__(file)
        self._variables = variables

    def persistent_load(self, pid: int) -> Variable:
        return self._variables[pid]


class _Call:
    """The arguments by name; unpickles to a dict."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments

    def __reduce__(self) -> Any:
        text = io.BytesIO()
        collector = _Collector(text)
        collector.dump(self._arguments)
        return (_restore, (flatten([], list(collector.numbers)), text.getvalue()))


def _restore(flat: Flat, text: bytes) -> Any:
    return _Restorer(io.BytesIO(text), unflatten(flat)[1]).load()


def function_dump(
    file: str | os.PathLike[str], inputs: Any, outputs: Any = None, **options: Any
) -> None:
    """Write the arguments of a call of ``function`` to a file.

    Parameters
    ----------
    file : path
    inputs, outputs, **options
        As for ``function``.

    Notes
    -----
    ``symcomp.function(**pickle.load(open(file, "rb")))`` makes the call. As with every pickle, load
    only what you trust.

    Examples
    --------
    >>> import os, pickle, tempfile
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x = T.dscalar("x")
    >>> file = os.path.join(tempfile.mkdtemp(), "call.pkl")
    >>> symcomp.function_dump(file, [x], x + 1)
    >>> with open(file, "rb") as opened:
    ...     f = symcomp.function(**pickle.load(opened))
    >>> f(1.0)
    array(2.)
    """
    with open(file, "wb") as opened:
        pickle.dump(_Call({"inputs": inputs, "outputs": outputs, **options}), opened)
