"""pp and latex: signs, brackets, names."""

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.printing import latex, pp, pprint
from symcomp.printing.notebook import repr_html, repr_latex

x, y, z = T.dvectors("x", "y", "z")
X = T.dmatrix("X")

PLAIN = [
    (x - (y - z), "x - (y - z)"),
    ((x - y) - z, "x - y - z"),
    (x + (y - z), "x + (y - z)"),
    (x / (y * z), "x / (y * z)"),
    (x / y * z, "x / y * z"),
    (x * (y + z), "x * (y + z)"),
    ((-x) ** 2, "(-x) ** 2.0"),
    (-(x**2), "-x ** 2.0"),
    (x**-y, "x ** -y"),
    ((x**y) ** z, "(x ** y) ** z"),
    (x ** (y**z), "x ** y ** z"),
    (-(x + y), "-(x + y)"),
    ((x > y) & (y > 0), "(x > y) & (y > 0.0)"),
    (~(x > y), "~(x > y)"),
    (T.dot(X, X.T), "X @ X.T"),
    ((X + 1).T, "(X + 1.0).T"),
    (X[1:, None, -1], "X[1:, newaxis, -1]"),
    (X[T.constant(1) : X.shape[0], ::2], "X[1:X.shape[0], ::2]"),
    (T.set_subtensor(X[0], 1.0), "set_subtensor(X[0], 1.0)"),
    (T.inc_subtensor(X[:2], 1.0), "inc_subtensor(X[:2], 1.0)"),
    (X.sum(0), "sum(X, axis=0)"),
    (X.sum(), "sum(X)"),
    (X.argmax(1), "argmax(X, axis=1)"),
    (T.switch(x > 0, x, 0), "where(x > 0.0, x, 0.0)"),
    (T.cast(x, "float32"), "float32(x)"),
    (T.zeros((3,)), "full((3,), 0.0)"),
    (X.dimshuffle(0, "x", 1), "X.dimshuffle(0, 'x', 1)"),
    (x + np.arange(10.0), "x + float64 (10,), 0 to 9"),
    (x.reshape((2, -1)), "reshape(x, [2, -1])"),
    (T.concatenate([x, y]), "concatenate([x, y], axis=0)"),
    (T.stack([x, y]), "stack([x, y])"),
    (T.arange(T.lscalar("n")) * 2, "arange(maximum(n, 0)) * 2"),
    (T.arange(3, 10, 2) * T.lvector("k"), "(3 + 2 * arange(4)) * k"),
    (T.nnet.softmax(X), "softmax(X, axis=1)"),
    (T.slinalg.cholesky(X), "cholesky(X)"),
]


@pytest.mark.parametrize("expression, expected", PLAIN, ids=[text for _, text in PLAIN])
def test_plain(expression, expected):
    assert pp(expression) == expected


def test_brackets_are_those_that_python_needs():
    """The printed text, evaluated by Python, is the expression."""
    rng = np.random.default_rng(0)
    values = {"x": 1.25, "y": 0.5, "z": 2.0}
    signs = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "({}) ** ({} - 2 * {})", "-({})"]
    scalars = {name: T.dscalar(name) for name in values}
    for _ in range(200):
        text = str(rng.choice(list(values)))
        for _ in range(4):
            other = str(rng.choice(list(values)))
            parts = [f"({text})", f"({other})", f"({text})"]
            if rng.random() < 0.5:
                parts = parts[1::-1] + parts[:1]
            text = str(rng.choice(signs)).format(*parts)
        with np.errstate(all="ignore"):
            given = {k: np.float64(v) for k, v in values.items()}
            expected = eval(text, {}, given)
            printed = pp(eval(text, {}, scalars))
            lines = printed.split("\n")
            for line in lines[:-1]:
                name, _, right = line.partition(" = ")
                given[name] = eval(right, {}, given)
            np.testing.assert_allclose(eval(lines[-1], {}, given), expected, rtol=1e-9)


def test_named_parts_and_long_ones():
    named = T.exp(x)
    named.name = "e"
    assert pp(named * 2) == "e * 2.0"
    assert pp(named) == "exp(x)"
    long = x
    for _ in range(40):
        long = T.tanh(long) * long
    lines = pp(long).split("\n")
    assert lines[0].startswith("t0 = tanh(") and len(lines) < 30
    assert "t_{0} &= " in latex(long)


def test_assign():
    ordered = T.sort(x + y)
    pprint.assign(ordered.owner.op, lambda *texts: f"S<{texts[0]}>")
    assert pp(ordered) == "S<(x + y)>"
    with pytest.raises(TypeError, match="no op"):
        pprint.assign("sort", str)


CASES = r"\begin{cases} x & \text{if } x > 0 \\ y & \text{otherwise} \end{cases}"
TEX = [
    (2 * x * y, r"2 \, x \odot y"),
    (x / (y + 1), r"\frac{x}{y + 1}"),
    (x * (y - 1), r"x \odot \left(y - 1\right)"),
    ((x + 1) ** 2, r"{\left(x + 1\right)}^{2}"),
    (T.dot(X.T, x), r"{X}^{\top} \, x"),
    (X.sum(0), r"\sum_{0} X"),
    ((x + y).sum(), r"\sum \left(x + y\right)"),
    (T.sqrt(abs(x)), r"\sqrt{\left|x\right|}"),
    (T.nnet.sigmoid(x), r"\sigma\left(x\right)"),
    (x + 1e-8, "x + 10^{-8}"),
    (x + 2.5e-8, r"x + 2.5 \cdot 10^{-8}"),
    (T.nlinalg.matrix_inverse(X), "{X}^{-1}"),
    (T.cast(x, "float32"), "x"),
    (T.exp(T.dvector("learning_rate")), r"\exp\left(\mathrm{learning\_rate}\right)"),
    (T.dvector("alpha_1") + T.dvector("W2"), r"\alpha_{1} + W_{2}"),
    (T.switch(x > 0, x, y), CASES),
    (T.set_subtensor(x[0], 1.0), r"{x}_{[0] \leftarrow 1}"),
    (T.inc_subtensor(x[1:], y), r"{x}_{[1:] \mathrel{+}= y}"),
    (T.cast(x, "int32"), r"\operatorname{int32}\left(x\right)"),
    (x + np.array([1.5, 2.0]), r"x + \left(1.5, 2.0\right)"),
    (T.arange(3, 10, 2, dtype="int64") + T.lvector("k"), r"\left(3, 5, \ldots\right)_{4} + k"),
]  # fmt: skip


@pytest.mark.parametrize("expression, expected", TEX, ids=[text for _, text in TEX])
def test_latex(expression, expected):
    assert latex(expression) == expected


def test_notebooks():
    assert x._repr_latex_() == "$x$"
    page = repr_html(T.exp(x) < y)
    assert r"$\exp\left(x\right) &lt; y$" in page and "<details>" in page and "lt [id A]" in page
    long = x
    for _ in range(100):
        long = T.tanh(long)
    assert repr_latex(long) is None and "tanh" in repr_html(long)


def test_gradients_are_short():
    cost = T.log(1 + T.exp(x)).sum()
    assert "sigmoid(x)" in pp(symcomp.grad(cost, x))
