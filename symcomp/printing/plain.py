"""pp: print expressions as they would be written in Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.indexing.index_pattern import ARRAY, FLAG, NEW, SYMBOL, Slice
from symcomp.ops.linalg.cholesky import Cholesky
from symcomp.ops.linalg.determinant import Det
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.products import BatchedDot, Dot
from symcomp.ops.linalg.solve import Solve
from symcomp.ops.nnet.softmax import LogSoftmax, Softmax
from symcomp.ops.reductions.reduce import ArgReduce, Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.join import Join
from symcomp.ops.shapes.shape import Reshape, Shape, ShapeI
from symcomp.ops.shapes.stack import Stack
from symcomp.printing.formulas import Formulas, Level, Rule, Text, is_negative
from symcomp.printing.values import min_informative_str
from symcomp.rewrite.views import number

# Elements of a constant that are shown
FEW = 6


def infix(sign: str, level: Level) -> Rule:
    """Return the rule of a binary operator, which groups from the left."""

    def rule(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
        first, *rest = parts
        looser = [formulas.fit(part, Level(level + 1)) for part in rest]
        return Text(f" {sign} ".join([formulas.fit(first, level), *looser]), level)

    return rule


def prefix(sign: str) -> Rule:
    """Return the rule of a prefix operator."""

    def rule(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
        return Text(sign + formulas.fit(parts[0], Level.SIGN), Level.SIGN)

    return rule


def called(name: str) -> Rule:
    """Return the rule of a function of the inputs."""
    return lambda node, parts, formulas: Text(f"{name}({', '.join(p.text for p in parts)})")


def _power(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    base = formulas.fit(parts[0], Level.ATOM)
    return Text(f"{base} ** {formulas.fit(parts[1], Level.SIGN)}", Level.POWER)


def _square(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"{formulas.fit(parts[0], Level.ATOM)} ** 2", Level.POWER)


def _inverse(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"1 / {formulas.fit(parts[0], Level.SIGN)}", Level.PRODUCT)


def _cast(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"{node.outputs[0].type.dtype}({parts[0].text})")


def _transposed(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    inner = formulas.fit(parts[0], Level.ATOM)
    if node.op.order == tuple(reversed(range(node.op.ndim))):
        return Text(f"{inner}.T")
    return Text(f"{inner}.dimshuffle({', '.join(map(repr, node.op.order))})")


def _reduced(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    op = node.op
    name = op.reduction.name if isinstance(op, Reduce) else op.which
    axes, rank = op.axes, node.inputs[0].type.ndim
    along = "" if len(axes) == rank else f", axis={axes[0] if len(axes) == 1 else axes}"
    return Text(f"{name}({parts[0].text}{along})")


def index_text(node: Apply, parts: Sequence[Text]) -> str:
    """Return the entries of an index expression; ``parts`` fill its placeholders."""
    rest = iter(parts)

    def entry(part: object) -> str:
        if isinstance(part, Slice):
            filled = ["" if p is None else entry(p) for p in part]
            return ":".join(filled[:2] if part.step is None else filled)
        if part == NEW:
            return "newaxis"
        return next(rest).text if part in (SYMBOL, ARRAY, FLAG) else str(part)

    return ", ".join(entry(part) for part in node.op.pattern) or "..."


def _part(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    inner = formulas.fit(parts[0], Level.ATOM)
    return Text(f"{inner}[{index_text(node, parts[1:])}]")


def _changed_part(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    name = "set_subtensor" if node.op.set else "inc_subtensor"
    inner = formulas.fit(parts[0], Level.ATOM)
    return Text(f"{name}({inner}[{index_text(node, parts[2:])}], {parts[1].text})")


def _joined(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    given = ", ".join(part.text for part in parts)
    return Text(f"concatenate([{given}], axis={node.op.axis})")


def _stacked(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"stack([{', '.join(part.text for part in parts)}])")


def _along(name: str) -> Rule:
    """Return the rule of an along-axis function."""
    return lambda node, parts, formulas: Text(f"{name}({parts[0].text}, axis={node.op.axis})")


def _counted(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write arange as numbers from a start in steps."""
    start, step, n = node.inputs
    text = f"arange({parts[2].text})"
    if number(step) != 1:
        text = f"{formulas.fit(parts[1], Level.PRODUCT)} * {text}"
    if number(start) != 0:
        return Text(f"{formulas.fit(parts[0], Level.SUM)} + {text}", Level.SUM)
    return Text(text, Level.ATOM if number(step) == 1 else Level.PRODUCT)


def _filled(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    lengths = ", ".join(part.text for part in parts[1:])
    return Text(f"full(({lengths}{',' * (len(parts) == 2)}), {parts[0].text})")


def _length(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"{formulas.fit(parts[0], Level.ATOM)}.shape[{node.op.axis}]")


def _otherwise(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    op = node.op
    name = op.scalar.name if isinstance(op, Elemwise) and not op.inplace else str(op)
    return Text(f"{name}({', '.join(part.text for part in parts)})")


def leaf(x: Variable) -> Text:
    """Return a name, or a number."""
    if not isinstance(x, Constant) or x.name is not None:
        return Text(str(x))
    if not isinstance(x.data, np.ndarray):
        return Text(repr(x.data))
    text = str(x.data.item()) if x.data.size == 1 else elements(x.data)
    return Text(text, Level.SIGN if is_negative(x) else Level.ATOM)


def elements(array: np.ndarray) -> str:
    """Return an array in brackets, or a description of a larger one."""
    few = array.ndim == 1 and array.size <= FEW
    return f"[{', '.join(map(str, array.tolist()))}]" if few else min_informative_str(array)


def _lines(names: Sequence[tuple[str, str]], results: Sequence[str]) -> str:
    return "\n".join([*(f"{name} = {text}" for name, text in names), ", ".join(results)])


SCALARS: dict[str, Rule] = {
    "add": infix("+", Level.SUM),
    "sub": infix("-", Level.SUM),
    "mul": infix("*", Level.PRODUCT),
    "true_div": infix("/", Level.PRODUCT),
    "int_div": infix("//", Level.PRODUCT),
    "mod": infix("%", Level.PRODUCT),
    "pow": _power,
    "sqr": _square,
    "reciprocal": _inverse,
    "neg": prefix("-"),
    "invert": prefix("~"),
    "cast": _cast,
    "switch": called("where"),
    "left_shift": infix("<<", Level.SHIFT),
    "right_shift": infix(">>", Level.SHIFT),
    "and_": infix("&", Level.AND),
    "xor": infix("^", Level.XOR),
    "or_": infix("|", Level.OR),
    "lt": infix("<", Level.COMPARED),
    "gt": infix(">", Level.COMPARED),
    "le": infix("<=", Level.COMPARED),
    "ge": infix(">=", Level.COMPARED),
    "eq": infix("==", Level.COMPARED),
    "neq": infix("!=", Level.COMPARED),
}
OPS: dict[type, Rule] = {
    Alloc: _filled,
    Arange: _counted,
    ArgReduce: _reduced,
    BatchedDot: called("batched_dot"),
    Cholesky: called("cholesky"),
    Det: called("det"),
    DimShuffle: _transposed,
    Dot: infix("@", Level.PRODUCT),
    IncSubtensor: _changed_part,
    Join: _joined,
    LogSoftmax: _along("logsoftmax"),
    MatrixInverse: called("matrix_inverse"),
    Reduce: _reduced,
    Reshape: called("reshape"),
    Shape: lambda node, parts, formulas: Text(f"{formulas.fit(parts[0], Level.ATOM)}.shape"),
    ShapeI: _length,
    Softmax: _along("softmax"),
    Solve: called("solve"),
    Stack: _stacked,
    Subtensor: _part,
}

pprint = Formulas(SCALARS, OPS, _otherwise, leaf, _lines)


def pp(*variables: Variable) -> str:
    """Return expressions as they would be written in Python.

    A long expression that is used more than once gets a line and a name of its own; a named
    variable is shown by its name. ``pprint.assign(op, rule)`` sets the rule of an op.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, y = T.dvectors("x", "y")
    >>> symcomp.printing.pp((x - (y - 1)) * T.exp(-x) ** 2)
    '(x - (y - 1.0)) * exp(-x) ** 2.0'
    """
    return pprint(*variables)
