"""Functions whose independent calls run side by side, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from symcomp.config import config
from symcomp.cvm import machine


@contextmanager
def threads_side_by_side(threads: int) -> Iterator[None]:
    """Compile functions for ``threads``; plans made within have all sections that are possible."""
    before = machine.make_all_sections(threads > 1)
    try:
        with config.change_flags(
            openmp=threads > 1, openmp_threads=threads, openmp_elemwise_minsize=1
        ):
            yield
    finally:
        machine.make_all_sections(before)
