"""debugprint: the contents of its lines."""

import io
import re

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.core.tree import letters
from symcomp.printing import debugprint, min_informative_str


def text(obj, **options):
    return debugprint(obj, file="str", **options)


def test_what_is_used_again_is_shown_once():
    x = T.dvector("x")
    y = T.exp(x)
    lines = text(y * y).split("\n")
    assert lines == ["mul [id A]", " ├─ exp [id B]", " │  └─ x [id C]", " └─ exp [id B] ···"]


@pytest.mark.parametrize(
    "ids, first", [("CHAR", "[id A]"), ("auto", "[id A]"), ("int", "[id 0]"), ("id", "[id 0x")]
)
def test_ids(ids, first):
    assert first in text(T.exp(T.dvector("x")), ids=ids).split("\n")[0]


def test_no_ids_and_unknown_ids():
    assert text(T.exp(T.dvector("x")), ids="") == "exp\n └─ x"
    with pytest.raises(ValueError, match="ids='letters'"):
        text(T.dvector("x"), ids="letters")


def test_labels_go_on_after_z():
    assert [letters(n) for n in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]


def test_depth_and_names_stop():
    x = T.dvector("x")
    y = T.exp(x)
    y.name = "y"
    assert text(T.tanh(y), depth=1) == "tanh [id A]"
    assert text(T.tanh(y), depth=2).split("\n") == ["tanh [id A]", " └─ exp [id B] 'y'"]
    assert text(T.tanh(y), stop_on_name=True) == text(T.tanh(y), depth=2)
    assert "x [id B]" in text(y, stop_on_name=True)


def test_types_sources_clients():
    x = T.dmatrix("x")
    y = T.exp(x)
    shown = text(y.sum() + T.tanh(y).sum(), print_type=True, print_source=True, print_clients=True)
    assert "<float64 matrix>" in shown
    assert "test_debug.py:" in shown and "in test_types_sources_clients]" in shown
    assert "clients: sum{axis=0,1} [id B], tanh" in shown


def test_done_goes_on():
    x = T.dvector("x")
    y = T.exp(x)
    done: dict = {}
    text(y, done=done)
    assert text(T.tanh(y), done=done).split("\n") == ["tanh [id C]", " └─ exp [id A] ···"]


def test_files():
    x = T.dvector("x")
    file = io.StringIO()
    assert debugprint(x, file=file) is file
    assert file.getvalue() == "x [id A]\n"


def test_a_function_has_instructions_storage_views_and_destroyed_inputs():
    x = T.dvector("x")
    w = symcomp.shared(np.arange(3.0), "w")
    mode = symcomp.Mode(linker="cvm_nogc", optimizer="None")
    f = symcomp.function([x], T.exp(x[1:]) * w, mode=mode)
    shown = text(f, print_storage=True)
    assert "w [id" in shown and "= [0., 1., 2.]" in shown
    assert "v={0: [0]}" in shown and "#2" in shown
    f([0.0, 0, 0, 0])
    assert "exp [id B] #1 = [1., 1., 1.]" in text(f, print_storage=True)
    inplace = T.inplace.exp_inplace(T.dvector("y"))
    assert "d={0: [0]}" in text(inplace)
    assert "d=" not in text(inplace, print_destroy_map=False)


def test_a_program_starts_with_its_listing():
    x = T.dvector("x")
    shown = text(symcomp.function([x], T.exp(x)).program)
    assert shown.split("\n")[0].startswith("inputs  s0 = x") and "exp [id A] #0" in shown


def test_inner_graphs_of_loops_and_fused():
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda s: T.tanh(s) * 2, outputs_info=[x], n_steps=3)
    shown = text(states)
    assert "Inner graphs:" in shown and "x[t-1]" in shown.split("Inner graphs:")[1]
    assert "Inner graphs:" not in text(states, print_inner_graphs=False)
    f = symcomp.function([x], T.tanh(T.exp(x) + 1))
    inner = text(f, print_source=True).split("Inner graphs:")[1]
    assert "tanh" in inner and "exp" in inner and "test_debug.py" in inner


def test_what_has_no_graph_is_refused():
    with pytest.raises(TypeError, match="3 is a int"):
        text(3)


def test_deep_graphs():
    x = T.dscalar("x")
    y = x
    for _ in range(5000):
        y = T.exp(y)
    assert text(y).count("\n") == 5000


def test_min_informative_str():
    x = T.dvector("x")
    y = T.exp(x)
    assert min_informative_str(y + y) == "A. add\n B. exp\n  C. x\n <B>"
    assert min_informative_str(np.zeros(2)) == "[0., 0.]"
    values = np.array([[1.0, np.nan, np.inf, -2.0]] * 2)
    assert min_informative_str(values) == "float64 (2, 4), -2 to 1, 2 NaN, 2 inf"
    assert min_informative_str(np.zeros((0, 3))) == "[]"
    assert min_informative_str(None) == "NoneType None"


def test_inner_graphs_say_what_they_read():
    x, xs = T.dvector("x"), T.dmatrix("xs")
    shown = text(symcomp.gradient.jacobian(T.tanh(x) * x, x))
    inner = shown[shown.index("Inner graphs:") :]
    assert "← x [id" in inner and "← tanh [id" in inner and re.search(r"← i \[id \w+\]\n", inner)
    states, _ = symcomp.scan(lambda row, s, w: T.tanh(row * w + s), xs, [x], T.exp(x))
    inner = text(states, print_inner_graphs=True).split("Inner graphs:")[1]
    assert re.search(r"← xs.* ← xs \[id", inner) and re.search(r"← .* ← exp \[id", inner)
