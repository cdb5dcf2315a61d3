"""Names of ``symcomp`` for compiling and differentiating, imported on first use."""

import symcomp.gradient as gradient
import symcomp.printing as printing
import symcomp.scan_module as scan_module
from symcomp.autodiff.lop import Lop, grad, subgraph_grad
from symcomp.autodiff.rop import Rop
from symcomp.compile.builders import OpFromGraph
from symcomp.compile.callable import Function
from symcomp.compile.dump import function_dump
from symcomp.compile.function import function
from symcomp.compile.io import In, Out
from symcomp.compile.mode import Mode
from symcomp.compile.saving.files import load, save
from symcomp.compile.shared import SharedVariable, shared, shared_constructor
from symcomp.profiling.stats import ProfileStats
from symcomp.scan_module import (
    OrderedUpdates,
    foldl,
    foldr,
    loop,
    map,
    reduce,
    scan,
    scan_checkpoints,
    until,
)

Param = In

__all__ = [
    "foldl", "foldr", "Function", "function", "function_dump", "grad", "gradient", "In", "load",
    "loop", "Lop", "map", "Mode", "OpFromGraph", "OrderedUpdates", "Out", "Param", "printing",
    "ProfileStats", "reduce", "Rop", "save", "scan", "scan_checkpoints", "scan_module", "shared",
    "shared_constructor", "SharedVariable", "subgraph_grad", "until",
]  # fmt: skip
