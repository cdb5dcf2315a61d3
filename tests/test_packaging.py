"""Builds of the repository are complete: archive, wheel, and an import from elsewhere."""

import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy
import pytest
import setuptools

from symcomp.tests.repository import ROOT, folder_of_package

NOT_SOURCES = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "*.so", "build", "dist", "_build", "venv*"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("build") is None or importlib.util.find_spec("Cython") is None,
        reason="needs build and Cython: pip install -e '.[test]'",
    ),
]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return what it prints; a failure shows all of it."""
    # The environment must not lead to files of this clone.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the archive and, from it, the wheel with the compiled modules of this clone: to compile
    them again takes longer than all other steps.
    """
    folder = tmp_path_factory.mktemp("packaging")
    source, target = folder / "source", folder / "dist"
    shutil.copytree(ROOT, source, ignore=NOT_SOURCES)
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", target)
    run(*build, "--sdist", cwd=source)
    (archive,) = target.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    place_compiled_modules(unpacked)
    run(*build, "--wheel", cwd=unpacked)
    return target


def place_compiled_modules(source: Path) -> None:
    """Copy the compiled modules of this clone to where a build of these sources leaves its own."""
    later = time.time() + 3600  # than the C that the build prints
    name = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for package, folder in folder_of_package().items():
        for module in folder.rglob("*.so"):
            path = source / "build" / name / package.replace(".", "/") / module.relative_to(folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(module, path)
            os.utime(path, (later, later))


def test_setup_names_every_header_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cython copies the named headers to the C that it writes, and copies include one another."""
    given: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path("setup.py")
    (machine,) = (one for one in given["ext_modules"] if one.name == "symcomp.cvm.machine")
    named = {*machine.sources, *machine.depends}
    included = re.compile(r'^#include "(?!numpy/)(.+)"$', re.MULTILINE)
    for path in map(Path, sorted(named)):
        for name in included.findall(path.read_text(encoding="utf-8")):
            beside = os.path.normpath(path.parent / name)
            assert named & {beside, os.path.normpath(Path("cvm") / name)}, f"{path} includes {name}"


def files_of(package: str, pattern: str) -> set[str]:
    """List files of a package as the wheel names them."""
    folder = folder_of_package()[package]
    prefix = package.replace(".", "/")
    return {
        f"{prefix}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob(pattern)
        if (path.parent / "__init__.py").exists()
    }


def test_wheel_has_every_python_file(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = set().union(*(files_of(package, "*.py") for package in folder_of_package()))
    assert expected - names == set()
    headers = files_of("symcomp", "*.h")  # kernels are printed with their text
    assert headers > {"symcomp/codegen/functions/gamma.h", "symcomp/codegen/loops/nest.h"}
    assert headers - names == set()
    assert {"symcomp/py.typed", "symcomp/drawing/page.css", "symcomp/drawing/page.js"} <= {*names}


def test_archive_has_what_a_clone_has(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "setup.py", "pyproject.toml"}
    expected |= {"docs/conf.py", "tests/test_packaging.py", "rewrite/__init__.py"}
    for pattern in ("*.p[yx][xi]", "*.[ch]"):
        expected |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "cvm").rglob(pattern)}
    assert expected - names == set()


def test_wheel_imports_outside_of_the_clone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    (packages,) = environment.glob("lib/python*/site-packages")
    # NumPy and SciPy come from the environment of this test, after what the wheel brought; a
    # folder named in a .pth file does not have its own .pth files read, so no editable install.
    (packages / "dependencies.pth").write_text(f"{Path(numpy.__file__).parent.parent}\n")
    program = (
        "import symcomp, symcomp.vm, symcomp.rewrite, symcomp.cvm, symcomp.tensor\n"
        "print(symcomp.__file__, symcomp.vm.__file__)"
    )
    where = run(python, "-c", program, cwd=tmp_path).split()
    assert where == [str(packages / "symcomp" / part) for part in ("__init__.py", "vm/__init__.py")]
