"""The cyclic collector is off where it is told to be, and as before afterwards."""

import gc
import subprocess
import sys
from textwrap import dedent

import pytest

from symcomp.core.pause import garbage_collection_off, without_garbage_collection


def test_the_collector_is_off_meanwhile() -> None:
    assert gc.isenabled()
    with garbage_collection_off():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_on_after_an_error() -> None:
    @without_garbage_collection
    def fail() -> None:
        assert not gc.isenabled()
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_the_collector_stays_off_where_it_was_off() -> None:
    with garbage_collection_off():
        with garbage_collection_off():
            pass
        assert not gc.isenabled()


def in_own_process(program: str) -> str:
    """Return what a program prints; ``old()`` in it are the objects of the oldest generation."""
    lines = "import gc; from symcomp.core.pause import age_objects; old = lambda: gc.get_objects(2)"
    command = [sys.executable, "-c", f"{lines}\n{dedent(program)}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_aged_objects_are_old_and_still_collected() -> None:
    program = """
        class Pair: ...
        gc.collect()
        gc.disable()
        pair = Pair()
        pair.itself = pair
        young = any(x is pair for x in old())
        age_objects()
        print(young, any(x is pair for x in old()), gc.get_count()[1:])
        del pair
        gc.collect()
        print(any(isinstance(x, Pair) for x in gc.get_objects()))
    """
    assert in_own_process(program) == "False True (0, 0)\nFalse"


def test_what_a_program_has_frozen_stays_frozen() -> None:
    program = """
        gc.freeze()
        before = gc.get_freeze_count()
        age_objects()
        print(before == gc.get_freeze_count())
    """
    assert in_own_process(program) == "True"
