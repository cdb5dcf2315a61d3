"""Compile graphs to functions: arguments, modes, shared variables, the pipeline, the callable."""

from symcomp.compile.builders import OpFromGraph
from symcomp.compile.callable import Function
from symcomp.compile.container import Container
from symcomp.compile.debugmode import DebugMode
from symcomp.compile.function import function
from symcomp.compile.io import In, Out
from symcomp.compile.mode import Mode, get_default_mode, get_mode, register_mode
from symcomp.compile.monitormode import MonitorMode, detect_nan
from symcomp.compile.nanguardmode import NanGuardMode
from symcomp.compile.shared import SharedVariable, shared, shared_constructor
from symcomp.profiling.stats import ProfileStats

register_mode("DebugMode", DebugMode)
register_mode("DEBUG_MODE", DebugMode)
register_mode("NanGuardMode", NanGuardMode)

__all__ = [
    "Container", "DebugMode", "detect_nan", "Function", "function", "get_default_mode", "get_mode",
    "In", "Mode", "MonitorMode", "NanGuardMode", "OpFromGraph", "Out", "ProfileStats",
    "register_mode", "shared", "shared_constructor", "SharedVariable",
]  # fmt: skip
