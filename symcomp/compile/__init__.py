"""From a graph to a function: arguments, modes, shared variables, the pipeline, the callable."""

from symcomp.compile.builders import OpFromGraph
from symcomp.compile.callable import Function
from symcomp.compile.container import Container
from symcomp.compile.function import function
from symcomp.compile.io import In, Out
from symcomp.compile.mode import Mode, get_default_mode, get_mode, register_mode
from symcomp.compile.shared import SharedVariable, shared, shared_constructor
from symcomp.profiling.stats import ProfileStats

__all__ = [
    "Container", "Function", "function", "get_default_mode", "get_mode", "In", "Mode",
    "OpFromGraph", "Out", "ProfileStats", "register_mode", "shared", "shared_constructor",
    "SharedVariable",
]  # fmt: skip
