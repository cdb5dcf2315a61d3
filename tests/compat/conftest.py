"""Theano's modules are there for one test, and gone after it."""

import sys
from collections.abc import Iterator

import pytest

from symcomp.compat import install_as_theano
from symcomp.compat.modules import DEFAULTS, PATCHES
from symcomp.config import config


@pytest.fixture(autouse=True)
def theano(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    before = set(sys.modules)
    for name in DEFAULTS:
        monkeypatch.setitem(config.values, name, config._options[name].default)
        monkeypatch.setitem(config._origins, name, "default")
    for kind, members in PATCHES.items():
        for name, member in members.items():
            monkeypatch.setattr(kind, name, member, raising=False)
    install_as_theano()
    yield sys.modules["theano"]
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "theano":
            del sys.modules[name]
