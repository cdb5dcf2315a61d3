"""The cyclic collector is off where it is told to be, and as before afterwards."""

import gc

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
