"""Tests of PyTensor and PyMC in mode SYMCOMP: where they name another mode, and by default.

    python -m pytest -p symcomp.tests.pytensor_backend.plugin FILES

The files are those of PyTensor's and PyMC's repositories. Modes NUMBA and JAX, and the functions of
tests/link that compare a backend with Python, are replaced. docs/pymc.md lists the results.
"""

import importlib
from importlib.util import find_spec

import numpy as np
import pytensor
import pytensor.compile.mode as modes
from pytensor.compile.mode import Mode

import symcomp.pytensor_backend as backend

pytensor.config.mode = backend.SYMCOMP
for _name in ("NUMBA", "JAX"):
    modes.predefined_modes[_name] = backend.SYMCOMP
    setattr(modes, _name, backend.SYMCOMP)

#: Module -> the names of its function that compares, and of its mode.
COMPARED = {
    "tests.link.numba.test_basic": ("compare_numba_and_py", "numba_mode"),
    "tests.link.jax.test_basic": ("compare_jax_and_py", "jax_mode"),
}


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-4)


def fresh(values):
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


def compare(inputs, outputs, values, *, assert_fn=close, updates=None, inplace=False, **_others):
    """Check a graph in mode SYMCOMP; returns what the replaced functions do."""
    values = list(values)
    how = {"accept_inplace": inplace, "updates": updates}
    wanted = pytensor.function(inputs, outputs, mode=Mode("py", None), **how)(*fresh(values))
    f = pytensor.function(inputs, outputs, mode=backend.SYMCOMP, **how)
    given = fresh(values)
    found = f(*given)
    for before, after in zip(values, given, strict=True):
        if not inplace and isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)
    several = isinstance(outputs, list | tuple)
    pairs = zip(found, wanted, strict=True) if several else [(found, wanted)]
    for x, y in pairs:
        assert_fn(x, y)
    return f, found


def pytest_configure(config):
    for module, (function, mode) in COMPARED.items():
        folder = module.rpartition(".")[0]
        try:
            there = find_spec(folder) is not None and find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if there:
            found = importlib.import_module(module)
            setattr(found, function, compare)
            setattr(found, mode, backend.SYMCOMP)
