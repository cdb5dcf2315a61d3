"""Without a C compiler everything runs, with one warning; the profile shows what ran in Python."""

import json
import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen import prebuilt
from symcomp.codegen.compiler import driver
from symcomp.config import config

PROGRAM = """
import json, sys, warnings
import numpy as np
import symcomp, symcomp.tensor as T
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    x, w = T.dmatrix("x"), symcomp.shared(np.full((3, 2), 0.5))
    loss = T.nnet.log_softmax(T.tanh(T.dot(x, w)) * 2 + 1).sum()
    f = symcomp.function([x], loss, updates=[(w, w - 0.1 * symcomp.grad(loss, w))])
    total, _ = symcomp.scan(lambda row, sum: T.exp(row) + sum, x, T.zeros(3))
    g = symcomp.function([x], total)
    a = np.arange(12.0).reshape(4, 3) / 12
    results = [f(a), f(a), w.get_value(), g(a)]
print(json.dumps({
    "results": [np.asarray(r).tolist() for r in results],
    "warnings": [[str(c.message), c.filename] for c in caught],
}))
"""


def run(**environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_warning_and_the_same_results(tmp_path) -> None:
    flags = f"compiledir={tmp_path / 'kernels'}"
    expected = run(SYMCOMP_FLAGS=flags)
    assert expected["warnings"] == []
    without = run(SYMCOMP_FLAGS=flags, PATH=str(tmp_path / "empty"))
    named = run(SYMCOMP_FLAGS=f"{flags},cc=no-such-compiler")
    useless = run(SYMCOMP_FLAGS=f"compiledir={tmp_path / 'empty'},cc=false")
    for found in (without, named, useless):
        for value, reference in zip(found["results"], expected["results"], strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-14)
    ((message, file),) = without["warnings"]
    assert message.startswith("No C compiler was found") and "apt install gcc" in message
    assert file == "<string>"
    ((message, _),) = named["warnings"]
    assert message.startswith("The C compiler 'no-such-compiler' of config.cc was not found")
    ((message, _),) = useless["warnings"]
    assert re.match(
        r"(?s)The C compiler .*false does not work: .* It says: .* failed \(1\)", message
    )


def test_a_home_where_nothing_can_be_kept(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    found = run(HOME=str(tmp_path / "file"), XDG_CACHE_HOME="", SYMCOMP_FLAGS="")
    ((message, file),) = found["warnings"]
    assert "choose another directory by config.compiledir. Until then" in message
    assert file == "<string>"


@pytest.fixture
def no_compiler():
    driver._warn_once.cache_clear()
    with (
        config.change_flags(cc="no-such-compiler", kernels=True),
        pytest.warns(RuntimeWarning, match="no-such-compiler"),
    ):
        yield


def test_the_profile_tells_what_ran_where(no_compiler) -> None:
    x = T.dmatrix("x")
    f = symcomp.function([x], T.nnet.softmax(x), profile=True)
    g = symcomp.function([x], T.arctan(x) * T.log1p(x), profile=True)
    for function in (f, g):
        function(np.ones((3, 4)))
    assert re.search(r" kernel +Softmax", f.profile.text())
    assert re.search(r" Python +Fused{arctan", g.profile.text())


@pytest.mark.filterwarnings("ignore:The C compiler:RuntimeWarning")
@pytest.mark.parametrize("dtype", prebuilt.FLOATS)
def test_prebuilt_kernels_give_what_compiled_ones_give(tmp_path, dtype) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((2, 5, 37)).astype(dtype) + 0.5
    x, y = T.matrix("x", dtype=dtype), T.matrix("y", dtype=dtype)
    outputs = [getattr(T, {"abs": "abs_"}.get(n, n))(x) for n in prebuilt.UNARY if hasattr(T, n)]
    outputs += [
        x + y,
        x * y[0],
        x / y[:, 0].dimshuffle(0, "x"),
        T.maximum(x, y),
        x < y,
        x.sum(0),
        x.max(1),
        x.sum(),
    ]
    outputs += [T.nnet.softmax(x), T.nnet.log_softmax(x)]
    results = []
    for cc in ("", "no-such-compiler"):
        with config.change_flags(cc=cc, kernels=True, compiledir=str(tmp_path / "kernels")):
            f = symcomp.function([x, y], outputs, mode=symcomp.Mode().excluding("fusion"))
            results.append(f(a, b))
    for found, expected in zip(*results, strict=True):
        # Vectors of other lengths: each is within 2 units of the truth.
        np.testing.assert_array_max_ulp(found, expected, 4) if found.dtype != bool else (
            np.testing.assert_array_equal(found, expected)
        )


def test_all_that_is_listed_is_in_the_library() -> None:
    names = [kernel.name for kernel in prebuilt.kernels()]
    assert len(names) > 300
    assert prebuilt.addresses(names).keys() == set(names)
    assert prebuilt.addresses(["kernel_of_nothing"]) == {}
