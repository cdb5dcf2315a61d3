"""Build symcomp: the packages, and the Cython modules to compile.

Some folders of the package `symcomp` lie at the top of the repository: `rewrite/` is
`symcomp.rewrite`, and so on. The map is in pyproject.toml; a new folder with an `__init__.py`
below one of its folders is found here and needs no entry anywhere.
"""

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).resolve().parent


def find_packages() -> list[str]:
    """Name the packages of pyproject.toml's map, and all that lie below them."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = set()
    for package, folder in pyproject["tool"]["setuptools"]["package-dir"].items():
        for marker in (ROOT / folder).rglob("__init__.py"):
            below = marker.parent.relative_to(ROOT / folder).parts
            packages.add(".".join((package, *below)))
    return sorted(packages)


def find_extensions() -> list[Extension]:
    """Describe every `cvm/*.pyx`, and the C that symcomp prints."""
    sources = native_files("*.pyx")
    if not sources:
        return []
    import numpy

    modules = [
        Extension(
            f"symcomp.cvm.{Path(source).stem}",
            [source, *native_files("*/*.c")],
            include_dirs=[numpy.get_include(), "cvm"],
            define_macros=[
                ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
                ("SYMCOMP_NUMPY", f'"{numpy.__version__}"'),
            ],
            library_dirs=[str(Path(numpy.__file__).parent / "random" / "lib")],
            libraries=["npyrandom"],
            # Without -fwrapv, which CFLAGS may replace, gcc 12 miscompiles sums of int8.
            extra_compile_args=[
                "-std=c11", "-fwrapv", "-fvisibility=hidden", *unless_asked("-g0")
            ],  # fmt: skip
            depends=[
                *native_files("**/*.h"),
                *native_files("*.pxi"),
                *kernel_headers(),
            ],
        )
        for source in sources
    ]
    sys.path.insert(0, str(ROOT))
    headers = numpy.get_include()
    return [*modules, prebuilt_kernels(), compiled_ufuncs(headers), corrected_linalg()]


def translate(extension: Extension) -> None:
    """Replace Cython sources by the C that is generated from them."""
    import numpy
    from Cython.Build import cythonize

    # The generated C goes under build/: C below cvm/ is written by hand. It follows NumPy's
    # declarations, so environments with other versions do not share it.
    folder = f"build/cython-numpy-{numpy.__version__}"
    (done,) = cythonize([extension], language_level=3, build_dir=folder, include_path=["cvm"])
    extension.sources, extension.depends = done.sources, done.depends


class BuildInParallel(build_ext):
    """Compile C files at the same time, on all processors."""

    def build_extensions(self) -> None:
        # Threads without a GIL that import parts of it at the same time wait for one another.
        import Cython.Build  # noqa: F401

        compile_one = self.compiler.compile

        def compile_each(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                return sum(threads.map(lambda one: compile_one([one], **options), sources), [])

        self.compiler.compile = compile_each
        self.parallel = True
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        files = [*extension.sources, *extension.depends]
        is_old = self.force or newer_group(files, self.get_ext_fullpath(extension.name))
        if is_old and any(source.endswith(".pyx") for source in extension.sources):
            translate(extension)
        super().build_extension(extension)


def unless_asked(*flags: str) -> list[str]:
    """Return the flags, without those of a kind (``-O``, ``-g``) that CFLAGS have one of.

    Python's own flags ask for debug information, which takes a quarter of the compiler's time.
    """
    asked = {flag[:2] for flag in os.environ.get("CFLAGS", "").split()}
    return [flag for flag in flags if flag[:2] not in asked]


def prebuilt_kernels() -> Extension:
    """Build the kernels for machines without a compiler, which symcomp itself prints.

    The library is loaded for its functions; it is no module of Python.
    """
    from symcomp.codegen import prebuilt

    return printed_extension(prebuilt.LIBRARY, prebuilt.source(), [])


def compiled_ufuncs(numpy_headers: str) -> Extension:
    """Build the module of NumPy's ufuncs of the C functions that kernels call."""
    from symcomp.codegen import ufunc_module

    return printed_extension(ufunc_module.MODULE, ufunc_module.source(), [numpy_headers])


def corrected_linalg() -> Extension:
    """Build the module of the corrected solutions of linear systems, for NumPy's arrays."""
    return Extension(
        "symcomp.ops.linalg._corrected_linalg",
        ["cvm/corrected_linalg.c"],
        extra_compile_args=["-std=c11", "-fwrapv", "-fvisibility=hidden", *unless_asked("-g0")],
        depends=[*native_files("linalg/*.h"), *kernel_headers()],
    )


def printed_extension(module: str, text: str, include_dirs: list[str]) -> Extension:
    """Build C that symcomp prints, with the flags of kernels, for any processor."""
    from symcomp.codegen.compiler import driver

    path = ROOT / "build" / f"{module.rpartition('.')[2].lstrip('_')}.c"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Extension(
        module,
        [path.relative_to(ROOT).as_posix()],
        include_dirs=include_dirs,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
        extra_compile_args=[
            *driver.VALUE_FLAGS, *unless_asked("-O1", "-g0"), "-ftree-vectorize"
        ],  # fmt: skip
        libraries=["m"],
    )


def native_files(pattern: str) -> list[str]:
    """List the files of `cvm/` that match, relative to the root as setuptools wants them."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "cvm").glob(pattern))


def kernel_headers() -> list[str]:
    """Return the headers of kernels, some of which the machine includes, too."""
    found = (ROOT / "symcomp" / "codegen").glob("*/*.h")
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


setup(
    packages=find_packages(),
    cmdclass={"build_ext": BuildInParallel},
    package_data={"": ["py.typed", "*.h", "*.pyx", "*.pxi", "*.pyi", "*.js", "*.css"]},
    ext_modules=find_extensions(),
)
