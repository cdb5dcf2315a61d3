"""``symcomp.scan_module``: loops under Theano's names, and the op Scan."""

from symcomp.scan.build import scan
from symcomp.scan.loop import loop
from symcomp.scan.op import Scan
from symcomp.scan.updates import OrderedUpdates, until
from symcomp.scan.wrappers import foldl, foldr, map, reduce, scan_checkpoints

__all__ = [
    "foldl", "foldr", "loop", "map", "OrderedUpdates", "reduce", "Scan", "scan",
    "scan_checkpoints", "until",
]  # fmt: skip
