"""A file for the compiler whose function returns 42, and what finds its entry in the cache."""

import ctypes

from symcomp.codegen.compiler import driver

SOURCE = "int answer(void);\nint answer(void)\n{\n    return 42;\n}\n"


def answer(source=SOURCE):
    found = driver.load(source, ["answer"])
    assert found is not None
    return ctypes.CFUNCTYPE(ctypes.c_int)(found[0])()


def key_of(source):
    """Return the name of a source's entry under the current ``config``."""
    return driver.target().key_of(source)


def forget():
    """As a new process begins."""
    driver._libraries.clear()
    driver._room.clear()
