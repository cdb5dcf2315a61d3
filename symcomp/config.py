"""The options: one table, read from (highest first) code, SYMCOMP_FLAGS, a TOML file, and the
defaults.

The TOML file is the one named by ``SYMCOMPRC``, else ``symcomp/config.toml`` in
``$XDG_CONFIG_HOME``
(``~/.config``).
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from symcomp.errors import SymcompError
from symcomp.lazy import lazy_module

tomllib, shlex = lazy_module("tomllib"), lazy_module("shlex")

__all__ = ["Config", "ConfigError", "Option", "config"]


class ConfigError(SymcompError, ValueError):
    """An option does not exist or cannot have that value."""


_DEVICE = re.compile(r"cpu|emu\d*|cuda\d*")


@dataclass(frozen=True)
class Option:
    """An option: name, default, allowed values (or the type of free values), description, and the
    least and largest number allowed.
    """

    name: str
    default: Any
    choices: tuple[Any, ...] | type
    doc: str
    least: int = 0
    most: int = 2**63 - 1

    def parse(self, value: Any, origin: str) -> Any:
        """Check ``value``, read from text where needed, and return it."""
        if self.choices is int:
            return self._parse_number(value, origin)
        if isinstance(self.choices, type):
            return self._parse_free(value, self.choices, origin)
        for choice in self.choices:
            if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                return choice
            if isinstance(value, str) and value.lower() == str(choice).lower():
                return choice
        allowed = ", ".join(str(choice) for choice in self.choices)
        raise ConfigError(f"{self.name}={value!r} (from {origin}): must be one of {allowed}")

    def _parse_number(self, value: Any, origin: str) -> int:
        number: int = self._parse_free(value, int, origin)
        if self.least <= number <= self.most:
            return number
        allowed = f"at least {self.least}" if number < self.least else f"at most {self.most}"
        raise ConfigError(f"{self.name}={value!r} (from {origin}): must be {allowed}. {self.doc}")

    def _parse_free(self, value: Any, kind: type, origin: str) -> Any:
        if kind is bool:
            words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
            if isinstance(value, bool):
                return value
            if str(value).lower() in words:
                return words[str(value).lower()]
        elif isinstance(value, kind) and not isinstance(value, bool):
            self._check_text(value, origin)
            return value
        elif isinstance(value, str) or isinstance(value, kind):
            try:
                return kind(value)
            except ValueError:
                pass
        raise ConfigError(f"{self.name}={value!r} (from {origin}): must be a {kind.__name__}")

    def _check_text(self, value: Any, origin: str) -> None:
        """Raise ConfigError if a text is not a valid value for the option."""
        problem = "it has a NUL character" if isinstance(value, str) and "\0" in value else ""
        if self.name == "device" and not _DEVICE.fullmatch(value):
            problem = "must be cpu, cuda, cuda0, cuda1 .., emu, emu1 .."
        if self.name == "cflags" and not problem:
            try:
                shlex.split(value)
            except ValueError as error:
                problem = f"it cannot be split into flags, as a shell does: {error}"
        if problem:
            raise ConfigError(f"{self.name}={value!r} (from {origin}): {problem}")


OPTIONS = (
    Option(
        "floatX",
        "float64",
        ("float64", "float32", "float16"),
        "Dtype of tensors made without one, and of Python floats.",
    ),
    Option(
        "cast_policy",
        "numpy+floatX",
        ("numpy+floatX", "numpy", "theano"),
        "Dtype of a Python float met by an integer tensor: floatX, or float64 as in NumPy; theano: "
        "floatX, which NumPy's float64 scalars and quotients of integers are then, too.",
    ),
    Option("mode", "Mode", str, "The mode of functions compiled without one."),
    Option(
        "linker",
        "cvm",
        ("cvm", "cvm_nogc", "vm", "vm_nogc", "py", "c", "c|py", "c|py_nogc"),
        "The machine of Mode().",
    ),
    Option(
        "optimizer",
        "fast_run",
        (
            "fast_run",
            "stabilize",
            "fast_compile",
            "merge",
            "None",
            "unsafe",
            "o1",
            "o2",
            "o3",
            "o4",
        ),
        "Which rewrites Mode() applies.",
    ),
    Option("optimizer_including", "", str, "Tags that Mode() includes, separated by colons."),
    Option("optimizer_excluding", "", str, "Tags that Mode() excludes, separated by colons."),
    Option(
        "optimizer_verbose", False, bool, "Print what was rewritten in every function compiled."
    ),
    Option(
        "on_opt_error",
        "warn",
        ("warn", "raise", "ignore"),
        "What to do about a rewrite that fails: it is skipped, or an error.",
    ),
    Option(
        "allow_gc", True, bool, "Drop intermediate values as soon as they are no longer needed."
    ),
    Option(
        "kernels",
        True,
        bool,
        "Whether the native machine runs generated C; if not, or without a compiler, NumPy.",
    ),
    Option("cc", "", str, "The C compiler; by default the first of cc, gcc and clang there is."),
    Option("cflags", "", str, "Further flags of the C compiler."),
    Option(
        "early_code",
        True,
        bool,
        "Whether long kernels run as soon as they are translated, and are optimized meanwhile.",
    ),
    Option(
        "straight_after",
        4_000_000,
        int,
        "After how many calls of a plan that has run a sixteenth as often those on few elements "
        "are compiled together; 0: never.",
    ),
    Option(
        "compiledir", "", str, "Where compiled kernels are kept; by default in the user's caches."
    ),
    Option(
        "compiledir_size",
        512,
        int,
        "How many MiB of compiled kernels are kept; 0: only the last.",
    ),
    Option(
        "device",
        "cpu",
        str,
        "Where arrays of floats are computed and shared variables live: cpu, cuda, cuda0, cuda1 .. "
        "or emu, an emulator of cards for programs without one.",
    ),
    Option(
        "gpu_atomics",
        False,
        bool,
        "Whether functions that are compiled now may add floats by atomics on devices: at "
        "positions that occur twice, and sums of chunks. This is faster, but the order of "
        "additions, and so the last bits, differ from run to run.",
    ),
    Option(
        "gpu_check",
        False,
        bool,
        "Whether each call waits for devices, so that an error comes with the call that caused it.",
    ),
    Option(
        "gpu_graphs",
        True,
        bool,
        "Whether regions that are enqueued again with the same addresses are CUDA graphs.",
    ),
    Option(
        "gpu_products",
        "full",
        ("full", "tf32", "bf16"),
        "How functions that are compiled now multiply float32 on cards by cuBLAS: in full; or, "
        "faster, numbers that may be rounded to 10 bits after the point (tf32) or to 7 (bf16), "
        "added up in float32.",
    ),
    Option(
        "openmp",
        False,
        bool,
        "Whether kernels of large arrays share the work among threads.",
    ),
    Option(
        "openmp_threads",
        0,
        int,
        "How many threads; 0: OMP_NUM_THREADS, or else as many as there are processors. More than "
        "64 are used only where there are so many processors.",
        most=1024,
    ),
    Option(
        "openmp_elemwise_minsize",
        200_000,
        int,
        "Loops over fewer elements are done by one thread.",
    ),
    Option(
        "blas_threads",
        0,
        int,
        "How many threads BLAS uses within functions; 0: with openmp one, else as many as "
        "BLAS was started with.",
        most=1024,
    ),
    Option(
        "flush_denormals",
        False,
        bool,
        "Whether functions take numbers below the least normal one, 1.2e-38 for float32, for 0.",
    ),
    Option(
        "most_plans",
        48,
        int,
        "How many plans a function keeps, for different layouts of inputs and branches; 0: none.",
        most=10_000,
    ),
    Option(
        "random_generator",
        "pcg64",
        ("pcg64", "philox"),
        "What streams of random numbers draw with: NumPy's PCG64, or Philox, on devices, too.",
    ),
    Option(
        "on_unused_input",
        "raise",
        ("raise", "warn", "ignore"),
        "What function() does about an input that no output needs.",
    ),
    Option(
        "nan_guard",
        "user_ops",
        ("user_ops", "all", "off"),
        "Whose making of a NaN out of numbers is an error: ops written by users, all, none.",
    ),
    Option(
        "exception_verbosity",
        "low",
        ("low", "high"),
        "What errors of calls tell: a screenful; all that f.explain_last_error() tells.",
    ),
    Option("profile", False, bool, "Profile every function compiled; print it at exit."),
    Option(
        "profile_destination",
        "stderr",
        str,
        "Where profiles are printed at exit: stderr, stdout or the path of a file.",
    ),
    Option(
        "warn_float64",
        "ignore",
        ("ignore", "warn", "raise"),
        "What to do when a float64 tensor is made while floatX is smaller.",
    ),
)


class Config:
    """The options as attributes; assigning checks the value.

    Attributes
    ----------
    values : dict of str to object
        By the names of the options, for readers in C.

    Examples
    --------
    >>> from symcomp import config
    >>> config.floatX
    'float64'
    >>> with config.change_flags(floatX="float32"):
    ...     config.floatX
    'float32'
    """

    values: dict[str, Any]
    _options: dict[str, Option]
    _origins: dict[str, str]

    floatX: str
    cast_policy: str
    mode: str
    linker: str
    optimizer: str
    optimizer_including: str
    optimizer_excluding: str
    optimizer_verbose: bool
    on_opt_error: str
    allow_gc: bool
    kernels: bool
    cc: str
    cflags: str
    early_code: bool
    straight_after: int
    compiledir: str
    compiledir_size: int
    device: str
    gpu_atomics: bool
    gpu_check: bool
    gpu_graphs: bool
    gpu_products: str
    flush_denormals: bool
    most_plans: int
    random_generator: str
    on_unused_input: str
    nan_guard: str
    exception_verbosity: str
    profile: bool
    profile_destination: str
    warn_float64: str

    def __init__(self, environ: Mapping[str, str], options: tuple[Option, ...] = OPTIONS) -> None:
        object.__setattr__(self, "_options", {option.name: option for option in options})
        object.__setattr__(self, "values", {o.name: o.default for o in options})
        object.__setattr__(self, "_origins", {o.name: "default" for o in options})
        self._read_file(environ)
        self._read_flags(environ.get("SYMCOMP_FLAGS", ""))

    def _read_file(self, environ: Mapping[str, str]) -> None:
        named = environ.get("SYMCOMPRC")
        base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
        path = pathlib.Path(named or os.path.join(base, "symcomp", "config.toml"))
        if not path.is_file():
            if named:
                raise ConfigError(f"SYMCOMPRC names {named}, which is no file")
            return
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ConfigError(f"{path} is not valid TOML: {problem}") from None
        for name, value in content.items():
            self._set(name, value, str(path))

    def _read_flags(self, flags: str) -> None:
        for pair in filter(None, (part.strip() for part in flags.split(","))):
            name, equals, value = pair.partition("=")
            if not equals:
                raise ConfigError(f"SYMCOMP_FLAGS: {pair!r} is not of the form option=value")
            self._set(name.strip(), value.strip(), "SYMCOMP_FLAGS")

    def _set(self, name: str, value: Any, origin: str) -> None:
        if name not in self._options:
            known = ", ".join(self._options)
            raise ConfigError(f"there is no option {name!r} (from {origin}); there are {known}")
        self.values[name] = self._options[name].parse(value, origin)
        self._origins[name] = origin

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            known = ", ".join(self._options)
            raise AttributeError(f"there is no option {name!r}; there are {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._set(name, value, "code")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._options]

    @contextmanager
    def _changed(self, flags: Mapping[str, Any]) -> Iterator[None]:
        parsed = {}
        for name, value in flags.items():
            if name not in self._options:
                self._set(name, value, "change_flags")
            parsed[name] = self._options[name].parse(value, "change_flags")
        before = {name: (self.values[name], self._origins[name]) for name in parsed}
        self.values.update(parsed)
        self._origins.update(dict.fromkeys(parsed, "change_flags"))
        try:
            yield
        finally:
            for name, (value, origin) in before.items():
                self.values[name], self._origins[name] = value, origin

    def change_flags(self, **flags: Any) -> _ChangedFlags:
        """Set options for the duration of a ``with`` block, or of each call of a decorated
        function.

        Parameters
        ----------
        **flags
            Option names and values.

        Raises
        ------
        ConfigError
            If an option does not exist or cannot have that value; then none is changed.
        """
        return _ChangedFlags(self, flags)

    def names(self) -> list[str]:
        """Return the names of all options."""
        return list(self._options)

    def origin(self, name: str) -> str:
        """Return where the value of an option comes from: default, a file, SYMCOMP_FLAGS, code."""
        return self._origins[name]

    def __str__(self) -> str:
        return "\n".join(
            f"{name} = {self.values[name]!r} ({self._origins[name]})\n    {option.doc}"
            for name, option in self._options.items()
        )


class _ChangedFlags:
    """Context manager and decorator of ``change_flags``: usable once per ``with``, any number of
    times as decorator.
    """

    def __init__(self, owner: Config, flags: dict[str, Any]) -> None:
        self._owner, self._flags = owner, flags
        self._open: list[Any] = []

    def __enter__(self) -> None:
        block = self._owner._changed(self._flags)
        block.__enter__()
        self._open.append(block)

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._owner._changed(self._flags):
                return function(*args, **kwargs)

        return wrapped


config = Config(os.environ)
