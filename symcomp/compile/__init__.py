"""Compile graphs to functions: arguments, modes, shared variables, the pipeline, the callable."""

from typing import TYPE_CHECKING

from symcomp.compile.builders import OpFromGraph
from symcomp.compile.callable import Function
from symcomp.compile.container import Container
from symcomp.compile.function import function
from symcomp.compile.io import In, Out
from symcomp.compile.mode import Mode, get_default_mode, get_mode, register_mode
from symcomp.compile.shared import SharedVariable, shared, shared_constructor
from symcomp.lazy import lazy_module, lazy_names
from symcomp.profiling.stats import ProfileStats

_CHECKS = {
    "DebugMode": "symcomp.compile.debugmode",
    "detect_nan": "symcomp.compile.monitormode",
    "MonitorMode": "symcomp.compile.monitormode",
    "NanGuardMode": "symcomp.compile.nanguardmode",
}
if TYPE_CHECKING:
    from symcomp.compile.debugmode import DebugMode
    from symcomp.compile.monitormode import MonitorMode, detect_nan
    from symcomp.compile.nanguardmode import NanGuardMode
else:
    __getattr__, __dir__ = lazy_names(__name__, _CHECKS)

_debugmode, _nanguardmode = (lazy_module(_CHECKS[name]) for name in ("DebugMode", "NanGuardMode"))
register_mode("DebugMode", lambda: _debugmode.DebugMode())
register_mode("DEBUG_MODE", lambda: _debugmode.DebugMode())
register_mode("NanGuardMode", lambda: _nanguardmode.NanGuardMode())

__all__ = [
    "Container", "DebugMode", "detect_nan", "Function", "function", "get_default_mode", "get_mode",
    "In", "Mode", "MonitorMode", "NanGuardMode", "OpFromGraph", "Out", "ProfileStats",
    "register_mode", "shared", "shared_constructor", "SharedVariable",
]  # fmt: skip
