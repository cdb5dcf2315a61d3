"""Calls of kept plans ask the C library for no memory. What they need while they run lies in the
arena, and is in the report.
"""

import json
import os
import platform
import subprocess
import sys

import pytest

from symcomp.codegen.compiler.driver import find_compiler
from symcomp.config import config

COUNTER = """
#include <stddef.h>
static size_t largest;
static int counts;
#define COUNT(n) if (counts && (n) > largest) largest = (n)
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { COUNT(n); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { COUNT(n * m); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { COUNT(n); return __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { COUNT(n); return __libc_memalign(a, n); }
void begin_to_count(void) { largest = 0; counts = 1; }
size_t end_to_count(void) { counts = 0; return largest; }
"""

# With results of a few bytes.
CALLS = """
import ctypes, json, sys
import numpy as np
import scipy.sparse as sp
import symcomp, symcomp.tensor as T
from symcomp import sparse
import symcomp.tensor.nlinalg as nl, symcomp.tensor.slinalg as sl
library, rng = ctypes.CDLL(None), np.random.default_rng(0)
library.end_to_count.restype = ctypes.c_size_t
x, i, b, c = T.dmatrix("x"), T.lmatrix("i"), T.dtensor3("b"), T.fmatrix("c")
plus = T.dot(x, x.T) + T.eye(x.shape[0])
a, p = sparse.csr_matrix("a"), sparse.csr_matrix("p")
entries = lambda z: sparse.csm_data(z).sum()
images = x.reshape((4, 1, 60, 15))
kernel = x[:6, :4].reshape((2, 1, 3, 4))
y = T.tanh(T.dot(x.reshape((3600, 1)), x.reshape((1, 3600))[:, :500]))
RESULTS = {
    "argsort": T.argsort(x, axis=0)[3, 4],
    "argsort of a vector": T.argsort(x.flatten())[3],
    "convolution": T.nnet.conv2d(images, kernel)[0, 0, 0, 0],
    "determinant": nl.det(x),
    "eig": nl.eig(x)[0].real.sum(),
    "eigh": nl.eigh(plus)[0].sum(),
    "eigh of single numbers": nl.eigh(T.dot(c, c.T))[0].sum(),
    "gather": x.flatten()[i].sum(),
    "losses of labels": T.nnet.categorical_crossentropy(
        T.nnet.softmax(x.reshape((1800, 2))), i.flatten()[:1800] % 2
    ).sum(),
    "inverse": nl.matrix_inverse(x)[2, 3],
    "pseudo-inverse": nl.pinv(x)[2, 3],
    "qr": nl.qr(x)[1][2, 3],
    "scatter": T.inc_subtensor(x.flatten()[i], 2.0)[3],
    "solve": sl.solve(plus, x, assume_a="sym")[3, 4],
    "sort": T.sort(x, axis=0)[3, 4],
    "sparse blocks": sparse.csm_data(sparse.tobsr(a, (2, 3)))[0, 0, 0],
    "sparse product": entries(a @ p),
    "sparse product at a pattern": entries((a @ p) * a),
    "sparse triplets": entries(
        sparse.from_triplets(x.flatten(), i.flatten(), i.T.flatten(), (4000, 4000))
    ),
    "stack": nl.matrix_inverse(b)[1, 2, 3],
    "svd": nl.svd(x)[1].sum(),
    "sums of columns": y.sum(axis=0).max(),
    "sums and largest of columns": (y.sum(axis=0) / y.max(axis=0)).prod(),
    "topk": T.argtopk(x, 50, axis=0)[3, 4],
    "unique": T.unique(x)[2],
    "unique with positions": T.unique(x, return_index=True)[1][2],
}
values = {
    "x": rng.normal(size=(60, 60)), "i": rng.integers(0, 3600, (60, 60)),
    "b": rng.normal(size=(5, 40, 40)), "c": rng.normal(size=(60, 60)).astype("float32"),
    "a": sp.random_array((900, 900), density=0.01, rng=rng, format="csr"),
    "p": sp.random_array((900, 900), density=0.01, rng=rng, format="csr"),
}
found = {}
for name, result in RESULTS.items():
    shares = "sum" in name
    with symcomp.config.change_flags(kernels=True, linker="cvm", early_code=False, openmp=shares):
        f = symcomp.function([x, i, b, c, a, p], result, on_unused_input="ignore")
    arguments = [values[v] for v in "xibcap"]
    for _ in range(3):
        f(*arguments)
    library.begin_to_count()
    f(*arguments)
    most = library.end_to_count()
    assert f.repeated == 3, name
    f.free()
    library.begin_to_count()
    f(*arguments)
    found[name] = most, library.end_to_count(), f.memory_report(*arguments).allocated
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """For each call: the most bytes that it asks for at once, with a kept arena and without, and
    what the report tells.
    """
    compiler = find_compiler(config.cc)
    if compiler is None or platform.libc_ver()[0] != "glibc":
        pytest.skip("there is no compiler, or another C library")
    directory = tmp_path_factory.mktemp("counter")
    source, library = directory / "counter.c", directory / "counter.so"
    source.write_text(COUNTER)
    command = [compiler, "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", library, source]
    subprocess.run(command, check=True)
    environment = {
        **os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "2",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", CALLS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_calls_ask_for_no_memory(counted):
    assert {name: most for name, (most, _, _) in counted.items() if most > 4000} == {}


def test_reports_tell_what_calls_need(counted):
    wrong = {
        name: (arena, told)
        for name, (_, arena, told) in counted.items()
        if not 8000 < arena <= told + 64 < arena + 4000
    }
    assert wrong == {}
