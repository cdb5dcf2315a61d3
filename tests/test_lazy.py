"""Modules that `import symcomp` does not import, and that are there when they are used."""

import ast
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import symcomp
import symcomp.tensor as T
from symcomp.lazy import lazy_module

#: Modules that take long to import, or that an expression which is only built does not need.
LATER = (
    "Cython", "ctypes.util", "importlib.metadata", "mpmath", "numpy.f2py", "numpy.testing",
    "platformdirs", "scipy", "symcomp.autodiff", "symcomp.codegen", "symcomp.compile",
    "symcomp.cvm", "symcomp.rewrite", "symcomp.scan", "symcomp.sparse", "symcomp.vm", "tempfile",
    "tomllib", "unittest",
)  # fmt: skip


def run(program: str) -> str:
    """Run a program in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded_by(program: str) -> set[str]:
    """Return the modules of `LATER` that a program imports and NumPy does not."""
    start = f"import sys, numpy\nLATER = {LATER!r}\nbefore = set(sys.modules)\n"
    end = "\nprint(*(m for m in set(sys.modules) - before if m.startswith(LATER)))"
    return set(run(start + program + end).split())


def test_import_loads_none_of_them() -> None:
    assert loaded_by("import symcomp, symcomp.tensor") == set()


def test_an_expression_loads_none_of_them() -> None:
    program = """
import symcomp.tensor as T
x, w = T.fmatrix("x"), T.fmatrix("w")
T.nnet.softmax(T.tanh(T.dot(x, w)) + T.gammaln(x.sum(axis=0))).mean()
"""
    assert loaded_by(program) == set()


def test_training_loads_no_package_of_scipy() -> None:
    program = """
import numpy as np, symcomp, symcomp.tensor as T
w = symcomp.shared(np.ones((30, 20), "float32"))
x = T.fmatrix("x")
loss = T.nnet.softmax(T.tanh(T.dot(x, w))).sum()
f = symcomp.function([x], loss, updates=[(w, w - symcomp.grad(loss, w))])
f(np.ones((40, 30), "float32"))
"""
    loaded = loaded_by(program)
    assert "symcomp.cvm.machine" in loaded
    assert not {"scipy.linalg", "scipy.special", "numpy.testing", "unittest"} & loaded


def test_importing_loads_what_few_programs_need_on_first_use() -> None:
    loaded = loaded_by("import symcomp.tensor as T")
    assert not {"symcomp.ops.control.debugging", "symcomp.ops.reductions.statistics"} & loaded


def test_blas_taken_alone_is_that_of_scipy() -> None:
    program = """
from symcomp.lazy import import_alone
alone = import_alone("scipy", "linalg", "cython_blas")
import sys
assert "scipy.linalg" not in sys.modules
import scipy.linalg.cython_blas, numpy as np
assert scipy.linalg.cython_blas is alone is import_alone("scipy", "linalg", "cython_blas")
print(scipy.linalg.blas.ddot(np.ones(3), np.ones(3)))
"""
    assert run(program) == "3.0"


@pytest.mark.parametrize("package", [symcomp, T])
def test_every_name_is_there(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_names_are_listed_where_they_are_offered() -> None:
    assert set(symcomp.deferred_names.__all__) < set(symcomp.__all__)
    assert set(symcomp.tensor.deferred_names.__all__) < set(T.__all__)
    for package in (symcomp, T):
        with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute"):
            package.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", [symcomp, T])
def test_names_that_come_later_are_where_they_are_said_to_be(package: Any) -> None:
    listed = package.deferred_names
    tree = ast.parse(Path(listed.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {}
    for node in block.body:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names:
            place = node.module if isinstance(node, ast.ImportFrom) else "module"
            imported[alias.asname or alias.name] = place
    modules = {name for name in imported if name not in listed.PLACES}
    assert modules == set(listed.MODULES)
    assert {name: imported[name] for name in imported.keys() - modules} == listed.PLACES
    assert set(listed.__all__) == imported.keys()
    for name, place in listed.PLACES.items():
        assert getattr(package, name) is getattr(import_module(place), name)


def test_training_loads_nothing_that_draws_or_saves() -> None:
    program = """
import sys, numpy as np, symcomp, symcomp.tensor as T
w = symcomp.shared(np.ones((3, 2)))
x = T.dmatrix("x")
loss = T.sqr(T.dot(x, w)).sum()
symcomp.function([x], loss, updates=[(w, w - symcomp.grad(loss, w))])
print(*(m for m in sys.modules if m.startswith("symcomp.")))
"""
    loaded = run(program).split()
    later = "printing drawing compile.saving compile.debugmode scan scan_module gradient".split()
    assert not {f"symcomp.{name}" for name in later} & set(loaded)


def test_graphs_are_the_same_before_and_after_loops_are_imported() -> None:
    program = """
import sys, symcomp, symcomp.tensor as T
x = T.dmatrix("x")
u = (x - x.mean(axis=0)) / T.sqrt(x.var(axis=0) + 1e-5)
loss = (u**2 * T.exp(x)).sum()
def text():
    f = symcomp.function([x], [loss, symcomp.grad(loss, x)])
    return symcomp.printing.debugprint(f, file="str")
before = text()
assert "symcomp.scan.op" not in sys.modules
import symcomp.scan.op
print(before == text())
"""
    assert run(program) == "True"


def test_jacobians_are_loops_without_an_import() -> None:
    program = """
import symcomp, symcomp.tensor as T
x = T.dvector("x")
f = symcomp.function([x], symcomp.gradient.jacobian(T.cumsum(x) * x.sum(), x))
print(f.maker.trace.phases[3].name, *(type(n.op).__name__ for n in f.maker.fgraph.toposort()))
"""
    found = run(program).split()
    assert found[0] == "scan" and "MapRows" not in found


def test_a_program_whose_kernels_are_there_cannot_start_processes(tmp_path: Path) -> None:
    program = f"""
import sys, symcomp, symcomp.tensor as T
symcomp.config.kernels, symcomp.config.compiledir = True, {str(tmp_path)!r}
x = T.dvector("x")
symcomp.function([x], T.exp(x) * T.tanh(x))
print("subprocess" in sys.modules)
"""
    assert [run(program), run(program)] == ["True", "False"]


def test_scan_is_the_function_whatever_is_imported() -> None:
    program = """
import symcomp, symcomp.scan.op, sys
assert symcomp.scan is symcomp.scan_module.scan
from symcomp import scan
import symcomp.scan
assert symcomp.scan is scan
print(sys.modules["symcomp.scan"].__name__)
"""
    assert run(program) == "symcomp.scan"


def test_star_import_gives_all_names() -> None:
    program = "from symcomp import *\nfrom symcomp.tensor import *\nprint(grad, function, tanh)"
    assert "function grad" in run(program)


def test_a_lazy_module_is_imported_by_its_first_attribute() -> None:
    program = """
import sys
from symcomp.lazy import lazy_module
colors = lazy_module("colorsys")
assert "colorsys" not in sys.modules
assert not hasattr(colors, "__wrapped__") and "colorsys" not in sys.modules
print(colors.rgb_to_hsv(1.0, 0.0, 0.0), "colorsys" in sys.modules)
"""
    assert run(program) == "(0.0, 1.0, 1.0) True"
    with pytest.raises(ImportError):
        _ = lazy_module("no_such_module_of_any_kind").name


def test_threads_may_load_at_once() -> None:
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(lazy_module("scipy.special").erf(0.0)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [0.0] * 8
