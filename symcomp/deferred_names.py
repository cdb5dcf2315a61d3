"""Where names of ``symcomp`` are defined; their modules are imported one by one, on first use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import symcomp.gradient as gradient
    import symcomp.printing as printing
    import symcomp.scan_module as scan_module
    from symcomp.autodiff.lop import Lop, grad, subgraph_grad
    from symcomp.autodiff.rop import Rop
    from symcomp.compile.builders import OpFromGraph
    from symcomp.compile.callable import Function
    from symcomp.compile.dump import function_dump
    from symcomp.compile.function import function
    from symcomp.compile.io import In, Out, Param
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

MODULES = ("gradient", "printing", "scan_module")
_NAMES = {
    "symcomp.autodiff.lop": ("Lop", "grad", "subgraph_grad"),
    "symcomp.autodiff.rop": ("Rop",),
    "symcomp.compile.builders": ("OpFromGraph",),
    "symcomp.compile.callable": ("Function",),
    "symcomp.compile.dump": ("function_dump",),
    "symcomp.compile.function": ("function",),
    "symcomp.compile.io": ("In", "Out", "Param"),
    "symcomp.compile.mode": ("Mode",),
    "symcomp.compile.saving.files": ("load", "save"),
    "symcomp.compile.shared": ("SharedVariable", "shared", "shared_constructor"),
    "symcomp.profiling.stats": ("ProfileStats",),
    "symcomp.scan_module": (
        "OrderedUpdates", "foldl", "foldr", "loop", "map", "reduce", "scan", "scan_checkpoints",
        "until",
    ),
}  # fmt: skip
PLACES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "foldl", "foldr", "Function", "function", "function_dump", "grad", "gradient", "In", "load",
    "loop", "Lop", "map", "Mode", "OpFromGraph", "OrderedUpdates", "Out", "Param", "printing",
    "ProfileStats", "reduce", "Rop", "save", "scan", "scan_checkpoints", "scan_module", "shared",
    "shared_constructor", "SharedVariable", "subgraph_grad", "until",
]  # fmt: skip
