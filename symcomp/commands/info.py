"""``python -m symcomp info``: print the libraries found on this machine and the configuration."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy

from symcomp.codegen.compiler.driver import (
    CompilerError,
    cache_directory,
    entries,
    find_compiler,
    flags_of,
)
from symcomp.config import config
from symcomp.cvm.blas_library import library_of_numpy
from symcomp.gpu.driver.compiler import find_nvcc, find_nvrtc
from symcomp.gpu.driver.cuda import describe_cards
from symcomp.gpu.libraries.finding import found_and_missing
from symcomp.profiling.text import size

SUMMARY = "tell versions, compiler, BLAS, threads, SIMD, GPU, cache and options with their origins"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command takes no arguments."""


def run(options: argparse.Namespace) -> int:
    """Print everything."""
    print(text())
    return 0


def text() -> str:
    """Return the whole report."""
    parts = [
        ("Versions", [*versions()]),
        ("Compiler", [*compiler()]),
        ("BLAS", [*blas()]),
        ("Processor", [*processor()]),
        ("GPU", [*devices()]),
        ("Kernel cache", [*cache()]),
        ("Options", [*options_set()]),
    ]
    lines = []
    for title, rows in parts:
        lines.append(title)
        width = max(len(name) for name, _ in rows)
        lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return "\n".join(lines)


def versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of symcomp and of the libraries it needs, or may use."""
    try:
        yield "symcomp", version("symcomp")
    except PackageNotFoundError:
        yield "symcomp", "not installed"
    implementation = platform.python_implementation()
    yield "Python", f"{platform.python_version()} ({implementation}), {sys.executable}"
    yield "NumPy", np.__version__
    yield "SciPy", scipy.__version__
    yield "ml_dtypes", _version_of("ml_dtypes", "bfloat16")
    yield "system", platform.platform()


def compiler() -> Iterator[tuple[str, str]]:
    """Yield the C compiler and its version."""
    found = find_compiler(config.cc)
    if found is None:
        yield "path", "none: kernels run with NumPy (install gcc or clang, or set config.cc)"
        return
    yield "path", found
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    yield "version", (done.stdout or done.stderr).partition("\n")[0] or "unknown"
    yield "flags", " ".join(flags_of(found))
    yield "kernels", "generated C" if config.kernels else "off (config.kernels): NumPy"


def blas() -> Iterator[tuple[str, str]]:
    """Yield the BLAS library that computes matrix products."""
    called = "NumPy's" if library_of_numpy() else "SciPy's"
    for name, module in (("SciPy's", scipy), ("NumPy's", np)):
        name += ", which the machine calls" if name == called else ""
        built: Any = module.show_config(mode="dicts")
        known = built.get("Build Dependencies", {}).get("blas", {})
        details = known.get("openblas configuration") or known.get("version", "")
        yield name, f"{known.get('name', 'unknown')} {details}".strip()


def processor() -> Iterator[tuple[str, str]]:
    """Yield cores, threads and SIMD extensions."""
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    yield "name", _processor_name()
    yield "cores", f"{cores}, of which this process may use {usable}"
    chosen = [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if name in os.environ]
    yield "threads", ", ".join(chosen) or "as the libraries choose: OMP_NUM_THREADS is not set"
    found: Any = np.show_config(mode="dicts")
    extensions = found.get("SIMD Extensions", {})
    names = [*extensions.get("baseline", ()), *extensions.get("found", ())]
    yield "SIMD", " ".join(names) or "unknown"


def _processor_name() -> str:
    if os.path.isfile("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def devices() -> Iterator[tuple[str, str]]:
    """Yield cards, and the libraries that cards need."""
    yield from describe_cards()
    nvrtc, nvcc = find_nvrtc(), find_nvcc()
    yield "NVRTC", "none (pip install symcomp[cuda])" if nvrtc is None else nvrtc.path
    yield "nvcc", "none" if nvcc is None else f"{nvcc.version}, {nvcc.path}"
    yield from found_and_missing()
    yield "PyCUDA", _version_of("pycuda", "cuda")


def _version_of(name: str, extra: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return f"not installed (pip install symcomp[{extra}])"


def cache() -> Iterator[tuple[str, str]]:
    """Yield the directory of compiled kernels and its size."""
    try:
        directory, found = cache_directory(), entries()
    except CompilerError as problem:
        yield "directory", f"cannot be used: {problem}"
        return
    yield "directory", str(directory)
    used = sum(entry.size for entry in found)
    yield "kept", f"{len(found)} files, {size(used)} of at most {config.compiledir_size} MiB"


def options_set() -> Iterator[tuple[str, str]]:
    """Yield the value of every option and its origin."""
    for name in config.names():
        yield name, f"{getattr(config, name)!r}  ({config.origin(name)})"
