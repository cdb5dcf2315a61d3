"""``theano.config``: the options of symcomp under Theano's names, and options without effect."""

from __future__ import annotations

import configparser
import os
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from symcomp.config import Config, ConfigError, Option
from symcomp.config import config as symcomp_config
from symcomp.lazy import lazy_module

# Options with the same meaning in symcomp.
SAME = frozenset(
    "floatX mode linker optimizer optimizer_including optimizer_excluding optimizer_verbose "
    "on_opt_error allow_gc on_unused_input profile warn_float64 exception_verbosity".split()
)

# Options without effect: their subject does not exist here, or always applies.
WITHOUT_EFFECT: dict[str, Any] = {
    "assert_no_cpu_op": "ignore",
    "base_compiledir": "",
    "blas.check_openmp": True,
    "blas.ldflags": "",
    "cast_policy": "custom",
    "check_input": True,
    "check_stack_trace": "off",
    "cmodule.age_thresh_use": 2073600,
    "cmodule.warn_no_version": False,
    "compile.timeout": 120,
    "compile.wait": 5,
    "compiledir": "",
    "compiledir_format": "",
    "compute_test_value_opt": "off",
    "contexts": "",
    "conv.assert_shape": False,
    "cuda.root": "",
    "cxx": "",
    "cycle_detection": "regular",
    "DebugMode.check_c": True,
    "DebugMode.check_finite": True,
    "DebugMode.check_preallocated_output": "",
    "DebugMode.check_py": True,
    "DebugMode.check_strides": 0,
    "DebugMode.patience": 10,
    "deterministic": "default",
    "dnn.conv.algo_bwd": "",
    "dnn.conv.algo_bwd_data": "",
    "dnn.conv.algo_bwd_filter": "",
    "dnn.conv.algo_fwd": "",
    "dnn.enabled": "False",
    "dnn.include_path": "",
    "dnn.library_path": "",
    "experimental.unpickle_gpu_on_cpu": False,
    "force_device": False,
    "gcc.cxxflags": "",
    "gpuarray.preallocate": 0.0,
    "gpuarray.sched": "default",
    "gpuarray.single_stream": True,
    "init_gpu_device": "",
    "int_division": "int",
    "lib.amdlibm": False,
    "lib.cnmem": 0.0,
    "metaopt.verbose": False,
    "NanGuardMode.action": "raise",
    "NanGuardMode.big_is_error": True,
    "NanGuardMode.inf_is_error": True,
    "NanGuardMode.nan_is_error": True,
    "nocleanup": False,
    "numpy.seterr_all": "ignore",
    "nvcc.compiler_bindir": "",
    "nvcc.fastmath": False,
    "nvcc.flags": "",
    "on_shape_error": "warn",
    "openmp": False,
    "openmp_elemwise_minsize": 200000,
    "optdb.max_use_ratio": 8.0,
    "optdb.position_cutoff": float("inf"),
    "optimizer_requiring": "",
    "pickle_test_value": True,
    "print_active_device": True,
    "print_global_stats": False,
    "print_test_value": False,
    "profile_memory": False,
    "profile_optimizer": False,
    "profiling.debugprint": False,
    "profiling.destination": "stderr",
    "profiling.ignore_first_call": False,
    "profiling.min_memory_size": 1024,
    "profiling.min_peak_memory": False,
    "profiling.n_apply": 20,
    "profiling.n_ops": 20,
    "profiling.time_thunks": True,
    "reoptimize_unpickled_function": False,
    "scan.allow_gc": False,
    "scan.allow_output_prealloc": True,
    "scan.debug": False,
    "tensor.cmp_sloppy": 0,
    "tensor.insert_inplace_optimizer_validate_nb": -1,
    "tensor.local_elemwise_fusion": True,
    "traceback.compile_limit": 0,
    "traceback.limit": 8,
    "unittests.rseed": 666,
    "unpickle_function": True,
    "vm.lazy": None,
    "warn.ignore_bug_before": "0.9",
}
devices = lazy_module("symcomp.gpu.driver.devices")
device_errors = lazy_module("symcomp.gpu.errors")
_DEVICE = re.compile(r"(?:cuda|gpu)(\d*)")
# Options with a fixed set of words as values.
CHOICES = {"compute_test_value": ("off", "ignore", "warn", "raise", "pdb")}
# Warnings about bugs of old versions: any may be named.
OPEN_GROUPS = ("warn",)


def device_of(word: str) -> str | None:
    """Return the device that Theano's word stands for, earlier versions' "gpu0" included; None if
    there are none of the kind, as of OpenCL.
    """
    if word in ("cpu", "emu"):
        return word
    found = _DEVICE.fullmatch(word)
    return None if found is None else f"cuda{found[1] or 0}"


class ConfigVariable:
    """An option, in the list of all: its name, and how it is read and set."""

    def __init__(self, fullname: str, owner: TheanoConfig) -> None:
        self.fullname = fullname
        self._owner = owner

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        return self._owner.get(self.fullname)

    def __set__(self, instance: Any, value: Any) -> None:
        self._owner.set(self.fullname, value)


class TheanoConfig:
    """The options as attributes, those with a dot in nested groups.

    Options of symcomp are those of ``symcomp.config``. The others are remembered and have no
    effect. ``device`` is that of symcomp, under Theano's names: ``"cuda0"``, earlier ``"gpu0"``.
    """

    def __init__(self, target: Config = symcomp_config) -> None:
        own = {"device": "cpu", "compute_test_value": "off", **WITHOUT_EFFECT}
        object.__setattr__(self, "_target", target)
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "_choices", dict(CHOICES))
        variables = [ConfigVariable(name, self) for name in sorted([*SAME, *own])]
        object.__setattr__(self, "_variables", variables)

    # -- by full name
    # -------------------------------------------------------------------------------------

    def get(self, name: str) -> Any:
        """Return the value of an option, by its full name."""
        if name in SAME:
            return getattr(self._target, name)
        if name == "device" and device_of(self._own[name]) != self._target.device:
            return self._target.device  # set by symcomp's own name
        if name in self._own:
            return self._own[name]
        if name.partition(".")[0] in OPEN_GROUPS:
            return False
        raise AttributeError(f"theano.config has no option {name!r}")

    def set(self, name: str, value: Any) -> None:
        """Set an option, by its full name."""
        if name in SAME:
            setattr(self._target, name, value)
        elif name == "device":
            self.use(value, self._own["force_device"])
        elif name == "contexts":
            for word, arrow, device in (pair.partition("->") for pair in value.split(";") if pair):
                if not arrow:
                    raise ConfigError(
                        f"theano.config.contexts={value!r}: name->device;name->device is needed"
                    )
                devices.name_device(word.strip(), device_of(device.strip()) or device.strip())
            self._own[name] = value
        elif name in self._own:
            self._own[name] = self._checked(name, value)
        elif name.partition(".")[0] in OPEN_GROUPS:
            self._own[name] = value
        else:
            raise ConfigError(f"theano.config has no option {name!r}")

    def _checked(self, name: str, value: Any) -> Any:
        kind = type(self._own[name])
        if name in self._choices or (isinstance(value, str) and kind in (bool, int, float)):
            option = Option(name, None, self._choices.get(name, kind), "")
            return option.parse(value, "theano.config")
        return value

    def use(self, device: str, force: bool = False) -> None:
        """Compute on a device from now on; unless ``force``, one that cannot be used is a warning,
        and the CPU is used.

        Raises
        ------
        DeviceUnavailable, ConfigError
            If it cannot be used, or is none, and ``force``.
        """
        found = device_of(device)
        problem = f"there are no devices of the kind {device!r} here"
        if found is not None and found != "cpu":
            try:
                devices.driver_of(found)
                problem = ""
            except device_errors.DeviceUnavailable as error:
                if force:
                    raise
                problem = str(error)
        elif found is None and force:
            raise ConfigError(f"theano.config.device={device!r}: {problem}")
        if found != "cpu" and problem:
            warnings.warn(
                f"theano.config.device={device!r}: symcomp computes on the CPU, as {problem}",
                stacklevel=4,
            )
            device = found = "cpu"
        self._target.device = found
        self._own["device"] = device

    def add(self, name: str, default: Any, choices: tuple[Any, ...] = ()) -> None:
        """Add an option of the user's; with ``choices``, one of these."""
        if name in SAME or name in self._own:
            raise AttributeError(f"theano.config has the option {name!r} already")
        self._own[name] = default
        self._variables.append(ConfigVariable(name, self))
        if choices:
            self._choices[name] = choices

    def remove(self, name: str) -> None:
        """Remove an option of the user's."""
        del self._own[name]
        self._variables[:] = [option for option in self._variables if option.fullname != name]
        self._choices.pop(name, None)

    # -- as attributes
    # ------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy looks names up before there are options
            raise AttributeError(name)
        if name in SAME or name in self._own:
            return self.get(name)
        if name in OPEN_GROUPS or any(known.startswith(name + ".") for known in self._own):
            return _Group(self, name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.set(name, value)

    def __str__(self) -> str:
        names = sorted([*SAME, *self._own])
        return "\n".join(f"{name} = {self.get(name)!r}" for name in names)

    @contextmanager
    def change_flags(self, *flags: Any, **more: Any) -> Iterator[None]:
        """Set options, given as a dict, pairs or by name, inside a ``with`` block or decorated
        function.

        Examples
        --------
        >>> from symcomp.compat.config import TheanoConfig
        >>> config = TheanoConfig()
        >>> with config.change_flags({"scan.allow_gc": True}, compute_test_value="warn"):
        ...     config.scan.allow_gc
        True
        >>> config.scan.allow_gc
        False
        """
        wanted = {name: value for given in (*flags, more) for name, value in dict(given).items()}
        before = {name: self.get(name) for name in wanted}
        try:
            for name, value in wanted.items():
                self.set(name, value)
            yield
        finally:
            for name, value in before.items():
                self.set(name, value)


class _Group:
    """The options whose names start with ``name`` and a dot."""

    def __init__(self, owner: TheanoConfig, name: str) -> None:
        object.__setattr__(self, "_owner", owner)
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner, f"{self._name}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._owner.set(f"{self._name}.{name}", value)


config = TheanoConfig()


def change_flags(*args: Any, **kwargs: Any) -> Any:
    """Set options temporarily: ``theano.configparser.change_flags``, a context manager and
    decorator.
    """
    return config.change_flags(*args, **kwargs)


def read_environment(environ: Mapping[str, str], owner: TheanoConfig = config) -> None:
    """Set options from the files named by ``THEANORC`` (``~/.theanorc``) and from ``THEANO_FLAGS``.

    An option that does not exist is a warning.
    """
    default = os.path.join(environ.get("HOME", ""), ".theanorc")
    for path in environ.get("THEANORC", default).split(os.pathsep):
        if pathlib.Path(path).is_file():
            _read_file(path, owner)
    for pair in filter(None, (part.strip() for part in environ.get("THEANO_FLAGS", "").split(","))):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"THEANO_FLAGS: {pair!r} is not of the form option=value")
        _set_or_warn(owner, name.strip(), value.strip(), "THEANO_FLAGS")


def _read_file(path: str, owner: TheanoConfig) -> None:
    reader = configparser.ConfigParser(interpolation=None)
    reader.optionxform = str  # type: ignore[method-assign, assignment]
    reader.read(path, encoding="utf-8")
    for section in reader.sections():
        for name, value in reader.items(section):
            _set_or_warn(owner, name if section == "global" else f"{section}.{name}", value, path)


def _set_or_warn(owner: TheanoConfig, name: str, value: str, origin: str) -> None:
    known = name in SAME or name in owner._own or name.partition(".")[0] in OPEN_GROUPS
    if known:
        owner.set(name, value)
    else:
        warnings.warn(f"{origin}: Theano's option {name!r} is unknown here", stacklevel=3)


# -- options of users


class TypedParam:
    """An option to add with ``AddConfigVar``: its default, and its choices."""

    choices: tuple[Any, ...] = ()

    def __init__(
        self,
        default: Any,
        is_valid: Any = None,
        allow_override: bool = True,
        filter: Callable[[Any], Any] | None = None,
    ) -> None:
        self.default = default if filter is None else filter(default)


BoolParam = IntParam = FloatParam = StrParam = ConfigParam = TypedParam


class EnumStr(TypedParam):
    """An option that is one of several strings, the default first."""

    def __init__(self, default: str, *options: str, **settings: Any) -> None:
        super().__init__(default)
        self.choices = (default, *options)


def AddConfigVar(
    name: str, doc: str, configparam: TypedParam, root: Any = config, in_c_key: bool = True
) -> None:
    """Add an option to ``theano.config``."""
    config.add(name, configparam.default, configparam.choices)
