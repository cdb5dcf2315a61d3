"""``symcomp.typed_list``: lists whose elements are of one type, as values of graphs."""

from symcomp.ops.typed_list import *  # noqa: F403
