"""The choice of BLAS and LAPACK, and the width of the integers that each is called with."""

import os
import subprocess
import sys
import textwrap

import pytest

from symcomp.cvm import blas_library
from symcomp.cvm.blas_library import OPENBLAS, WIDE, is_newer


def blas(version, name=OPENBLAS, configuration=WIDE):
    return {"name": name, "version": version, "openblas configuration": configuration}


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [
        (blas("0.3.31.188.0"), blas("0.3.30"), True),
        (blas("0.3.30"), blas("0.3.9"), True),
        (blas("0.3.30"), blas("0.3.30"), False),
        (blas("0.3.29.265"), blas("0.3.30"), False),
        (blas("0.3.31", configuration="DYNAMIC_ARCH"), blas("0.3.30"), False),
        (blas("0.3.31", name="accelerate"), blas("0.3.30"), False),
        (blas("0.3.31"), blas("2025.1", name="mkl-sdl"), False),
        (blas("0.3.31.dev"), blas("0.3.30"), False),
        ({}, {}, False),
    ],
)
def test_the_later_version_is_taken(one, other, newer) -> None:
    assert is_newer(one, other) == newer


def test_versions_are_told_without_importing() -> None:
    program = textwrap.dedent("""
        import sys
        from symcomp.cvm import blas_library
        found = blas_library.library_of_numpy(), blas_library._blas_of("scipy")
        assert "scipy" not in sys.modules
        import scipy.__config__
        assert found[1] == scipy.__config__.CONFIG["Build Dependencies"]["blas"] != {}
        assert blas_library._blas_of("no_such_package") == {}
    """)
    subprocess.run([sys.executable, "-c", program], check=True)


PROGRAM = textwrap.dedent("""
    import numpy as np
    import symcomp, symcomp.tensor as T
    from symcomp.cvm import blas_library, machine
    if SCIPY:
        machine.library_of_numpy = lambda: None
    # Matrices of more than 4 MiB, which code of symcomp's own leaves to the library.
    lengths = {"float32": 1100, "float64": 800, "complex64": 800, "complex128": 600}
    for dtype, n in lengths.items():
        x, y = T.matrices("x", "y", dtype=dtype)
        v, w = T.vectors("v", "w", dtype=dtype)
        f = symcomp.function([x, y, v], [x.dot(y), x.dot(v), v.dot(y), x.T.dot(y.T)])
        update = symcomp.function([x, v, w], x + 2 * T.outer(v, w))
        rng = np.random.default_rng(0)
        shapes = (n, n), (n, n), n
        a, b, u = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in shapes)
        a, b, u = ((z if dtype[0] == "c" else z.real).astype(dtype) for z in (a, b, u))
        tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-10
        wanted = a @ b, a @ u, u @ b, a.T @ b.T
        for got, want in zip(f(a, b, u), wanted, strict=True):
            np.testing.assert_allclose(got, want, tolerance, tolerance)
        np.testing.assert_allclose(update(a, u, u), a + 2 * np.outer(u, u), tolerance, tolerance)
    maps = open("/proc/self/maps").read() if SYSTEM == "linux" else ""
    print(blas_library.library_of_numpy() is not None, "scipy.libs/libscipy_openblas-" in maps)
    from symcomp.ops.linalg.lstsq import Lstsq
    from symcomp.tests.cvm.test_decompositions import (
        DTYPES, OF_ANY, OF_SQUARE, SOLVERS, compare, matrices,
    )
    for dtype in DTYPES:
        a = matrices(rng, (2,), 5, dtype)
        for op in [*OF_SQUARE, *OF_ANY]:
            compare(op, a)
        for op in SOLVERS:
            compare(op, a, a[..., :3])
        compare(Lstsq(), a[0], a[1])
""")


@pytest.mark.parametrize("scipy", [False, True])
def test_products_and_decompositions_by_either(scipy) -> None:
    program = f"SCIPY, SYSTEM = {scipy}, {sys.platform!r}\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"SYMCOMP_FLAGS": "kernels=False"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    has, loaded = (word == "True" for word in done.stdout.split())
    assert has == (blas_library.library_of_numpy() is not None)
    if sys.platform == "linux" and has:
        assert loaded == scipy
