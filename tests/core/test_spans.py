"""Spans: nested stages, recorded on request."""

import threading

import pytest

from symcomp.core.spans import recorded, span


def test_stages_within_stages():
    with recorded("all") as top:
        with span("first") as first:
            with span("inner"):
                pass
            first.note = "two"
        with span("second"):
            pass
    assert [(depth, part.name) for depth, part in top.walk()] == [
        (0, "all"),
        (1, "first"),
        (2, "inner"),
        (1, "second"),
    ]
    assert top.inner[0].note == "two"
    assert top.seconds >= sum(part.seconds for part in top.inner) > 0
    assert top.start <= top.inner[0].start <= top.inner[1].start


def test_nobody_asked():
    with span("alone") as part:
        pass
    assert part.duration == 0


def test_errors_close_spans():
    with recorded("all") as top:
        with pytest.raises(ValueError), span("fails"):
            raise ValueError
        with span("goes on"):
            pass
    assert [part.name for part in top.inner] == ["fails", "goes on"]


def test_recordings_do_not_meet():
    with recorded("outer") as outer:
        with recorded("inner") as inner, span("a"):
            pass
        with span("b"):
            pass
        thread = threading.Thread(target=lambda: span("c").__enter__())
        thread.start()
        thread.join()
    assert [part.name for part in inner.inner] == ["a"]
    assert [part.name for part in outer.inner] == ["b"]
