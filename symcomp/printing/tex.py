"""latex: print expressions as formulas for TeX, as in papers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from symcomp.core import dtype as dtypes
from symcomp.core.node import Apply, Constant, Variable
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.ops.indexing.index import IncSubtensor, Subtensor
from symcomp.ops.linalg.inverse import MatrixInverse
from symcomp.ops.linalg.products import Dot
from symcomp.ops.reductions.reduce import ArgReduce, Reduce
from symcomp.ops.shapes.alloc import Alloc
from symcomp.ops.shapes.creation import Arange
from symcomp.ops.shapes.dimshuffle import DimShuffle
from symcomp.ops.shapes.shape import ShapeI
from symcomp.printing.formulas import Formulas, Level, Rule, Text, is_negative
from symcomp.printing.plain import FEW, index_text, infix, prefix
from symcomp.rewrite.views import number

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
    "Omega",
}  # fmt: skip
SPECIAL = {"#", "$", "%", "&", "_", "{", "}"}
# Functions that are words in TeX
WORDS = {
    "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "sinh": "sinh", "cosh": "cosh", "arcsin": "arcsin", "arccos": "arccos", "arctan": "arctan",
    "maximum": "max", "minimum": "min", "gamma": "Gamma",
}  # fmt: skip
FOLDS = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}


def escaped(text: str) -> str:
    """Escape the special characters of TeX."""
    text = text.replace("\\", r"\backslash ").replace("~", r"\sim ").replace("^", r"\wedge ")
    return "".join(f"\\{c}" if c in SPECIAL else c for c in text)


def symbol(name: str) -> str:
    """Return a name as a symbol: Greek letters, and as a subscript the part after ``_`` or a
    number.

    Examples
    --------
    >>> from symcomp.printing.tex import symbol
    >>> symbol("alpha_1"), symbol("W2"), symbol("learning_rate")
    ('\\\\alpha_{1}', 'W_{2}', '\\\\mathrm{learning\\\\_rate}')
    """
    found = re.fullmatch(r"([A-Za-z]+?)_?(\d+|_[A-Za-z0-9]{1,2})?", name)
    if found is None or (len(found[1]) > 1 and found[1] not in GREEK):
        return rf"\mathrm{{{escaped(name)}}}"
    base = f"\\{found[1]}" if found[1] in GREEK else found[1]
    return base if found[2] is None else f"{base}_{{{found[2].lstrip('_')}}}"


def operator(name: str) -> str:
    """Return the name of a function."""
    return f"\\{WORDS[name]}" if name in WORDS else rf"\operatorname{{{escaped(name)}}}"


def applied(name: str, parts: Sequence[Text]) -> Text:
    """Return a function of the inputs."""
    return Text(rf"{name}\left({', '.join(part.text for part in parts)}\right)")


def _product(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write numbers beside their factors; arrays with a sign, as it is no matrix product."""
    arrays = [
        x
        for x, part in zip(node.inputs, parts, strict=True)
        if any(n != 1 for n in x.type.shape) and not part.text.isdigit()
    ]
    digits = any(part.text[:1].isdigit() for part in parts[1:])
    sign = r" \odot " if len(arrays) > 1 else r" \cdot " if digits else r" \, "
    first, *rest = (formulas.fit(part, Level.PRODUCT) for part in parts)
    return Text(sign.join([first, *rest]), Level.PRODUCT)


def _fraction(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(rf"\frac{{{parts[0].text}}}{{{parts[1].text}}}", Level.PRODUCT)


def _inverse(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(rf"\frac{{1}}{{{parts[0].text}}}", Level.PRODUCT)


def _power(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"{{{formulas.fit(parts[0], Level.ATOM)}}}^{{{parts[1].text}}}", Level.POWER)


def _to(exponent: str) -> Rule:
    """Return the rule of a fixed power."""
    return lambda node, parts, formulas: Text(
        f"{{{formulas.fit(parts[0], Level.ATOM)}}}^{{{exponent}}}", Level.POWER
    )


def _root(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(rf"\sqrt{{{parts[0].text}}}")


def _between(left: str, right: str) -> Rule:
    """Return the rule of a text between two signs."""
    return lambda node, parts, formulas: Text(rf"\left{left}{parts[0].text}\right{right}")


def _cases(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    condition, x, y = (part.text for part in parts)
    rows = rf"{x} & \text{{if }} {condition} \\ {y} & \text{{otherwise}}"
    return Text(rf"\begin{{cases}} {rows} \end{{cases}}")


def _same(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return parts[0]


def _transposed(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    kept = [a for a in node.op.order if a != "x"]
    if kept == sorted(kept):
        return parts[0]
    inner = formulas.fit(parts[0], Level.ATOM)
    order = "" if len(kept) == 2 else f"_{{{','.join(map(str, kept))}}}"
    return Text(rf"{{{inner}}}^{{\top{order}}}", Level.POWER)


def _reduced(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    op = node.op
    name = op.reduction.name if isinstance(op, Reduce) else op.which
    sign = FOLDS.get(name, operator(name))
    axes = "" if len(op.axes) == node.inputs[0].type.ndim else ",".join(map(str, op.axes))
    below = f"_{{{axes}}}" if axes else ""
    return Text(f"{sign}{below} {formulas.fit(parts[0], Level.PRODUCT)}", Level.PRODUCT)


def _part(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(f"{{{formulas.fit(parts[0], Level.ATOM)}}}_{{[{index_text(node, parts[1:])}]}}")


def _changed_part(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write an array in which a part is replaced or increased."""
    sign = r"\leftarrow" if node.op.set else r"\mathrel{+}="
    change = f"[{index_text(node, parts[2:])}] {sign} {parts[1].text}"
    return Text(f"{{{formulas.fit(parts[0], Level.ATOM)}}}_{{{change}}}")


def _cast(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write the operand of a cast, unless it drops a fraction or an imaginary part."""
    old, new = node.inputs[0].type.dtype, node.outputs[0].type.dtype
    rounds = dtypes.is_discrete(new) and not dtypes.is_discrete(old)
    drops = dtypes.is_complex(old) and not dtypes.is_complex(new)
    return applied(operator(new), parts) if rounds or drops else parts[0]


def _counted(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write arange: the first numbers, and how many."""
    start, step, n = (part.text for part in parts)
    first, second = number(node.inputs[0]), number(node.inputs[1])
    known = first is not None and second is not None
    following = f"{first + second:g}" if known else f"{start} + {step}"  # type: ignore[operator]
    return Text(rf"\left({start}, {following}, \ldots\right)_{{{n}}}")


def _length(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    return Text(rf"\operatorname{{len}}_{{{node.op.axis}}} {formulas.fit(parts[0], Level.ATOM)}")


def _filled(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    """Write an array filled with one number as that number."""
    return parts[0]


def _otherwise(node: Apply, parts: Sequence[Text], formulas: Formulas) -> Text:
    op = node.op
    name = op.scalar.name if isinstance(op, Elemwise) else str(op).split("{")[0]
    return applied(operator(name), parts)


def _leaf(x: Variable) -> Text:
    if x.name is not None:
        return Text(symbol(x.name))
    if isinstance(x, Constant) and isinstance(x.data, np.ndarray):
        return _number(x)
    return Text(rf"\mathrm{{{escaped(str(x))}}}")


def _number(x: Constant) -> Text:
    if x.data.size != 1:
        if x.data.ndim == 1 and x.data.size <= FEW:
            return Text(rf"\left({', '.join(map(str, x.data.tolist()))}\right)")
        shape = r" \times ".join(map(str, x.data.shape))
        return Text(f"C_{{{shape}}}")
    value = x.data.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        value = int(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if "e" in text:
        digits, _, exponent = text.partition("e")
        power = f"10^{{{int(exponent)}}}"
        shown = power if digits == "1" else rf"{digits} \cdot {power}"
        return Text(shown, Level.PRODUCT)
    text = text.replace("inf", r"\infty").replace("nan", r"\mathrm{NaN}")
    return Text(text, Level.SIGN if is_negative(x) else Level.ATOM)


def _lines(names: Sequence[tuple[str, str]], results: Sequence[str]) -> str:
    if not names:
        return ", ".join(results)
    rows = [f"{name} &= {text}" for name, text in names]
    rows.append(f"& {', '.join(results)}")
    return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"


SCALARS: dict[str, Rule] = {
    "add": infix("+", Level.SUM),
    "sub": infix("-", Level.SUM),
    "mul": _product,
    "true_div": _fraction,
    "reciprocal": _inverse,
    "neg": prefix("-"),
    "pow": _power,
    "sqr": _to("2"),
    "sqrt": _root,
    "abs": _between("|", "|"),
    "floor": _between(r"\lfloor ", r"\rfloor "),
    "ceil": _between(r"\lceil ", r"\rceil "),
    "conj": lambda node, parts, formulas: Text(rf"\overline{{{parts[0].text}}}"),
    "cast": _cast,
    "identity": _same,
    "second": lambda node, parts, formulas: parts[1],
    "switch": _cases,
    "sigmoid": lambda node, parts, formulas: applied(r"\sigma", parts),
    "lt": infix("<", Level.COMPARED),
    "gt": infix(">", Level.COMPARED),
    "le": infix(r"\le", Level.COMPARED),
    "ge": infix(r"\ge", Level.COMPARED),
    "eq": infix("=", Level.COMPARED),
    "neq": infix(r"\ne", Level.COMPARED),
    "and_": infix(r"\wedge", Level.AND),
    "or_": infix(r"\vee", Level.OR),
    "invert": prefix(r"\neg "),
}
OPS: dict[type, Rule] = {
    Alloc: _filled,
    Arange: _counted,
    ArgReduce: _reduced,
    DimShuffle: _transposed,
    Dot: infix(r"\,", Level.PRODUCT),
    IncSubtensor: _changed_part,
    MatrixInverse: _to("-1"),
    Reduce: _reduced,
    ShapeI: _length,
    Subtensor: _part,
}

_formulas = Formulas(SCALARS, OPS, _otherwise, _leaf, _lines, symbol, (r"\left(", r"\right)"))


def latex(*variables: Variable) -> str:
    """Return expressions as a formula for TeX, without the dollars around it.

    Products of matrices stand side by side and elementwise products of arrays have a circled dot;
    broadcasting is left out, and so are casts that drop no fraction and no imaginary part.
    Notebooks use this notation.

    Examples
    --------
    >>> import symcomp
    >>> import symcomp.tensor as T
    >>> x, W = T.dvector("x"), T.dmatrix("W1")
    >>> print(symcomp.printing.latex(T.exp(-(T.dot(W, x) ** 2)).sum() / 2))
    \\frac{\\sum \\exp\\left(-{\\left(W_{1} \\, x\\right)}^{2}\\right)}{2}
    """
    return _formulas(*variables)
