"""Theano's modules are there for one test, and gone after it."""

import sys
from collections.abc import Iterator

import pytest

from symcomp.compat import install_as_theano
from symcomp.compat.modules import DEFAULTS
from symcomp.compat.tensor import MEMBERS
from symcomp.config import config
from symcomp.core.tensor import TensorVariable


@pytest.fixture(autouse=True)
def theano(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    before = set(sys.modules)
    for name in DEFAULTS:
        monkeypatch.setitem(config._values, name, config._options[name].default)
        monkeypatch.setitem(config._origins, name, "default")
    for name in MEMBERS:
        monkeypatch.setattr(TensorVariable, name, vars(TensorVariable)[name])
    install_as_theano()
    yield sys.modules["theano"]
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "theano":
            del sys.modules[name]
