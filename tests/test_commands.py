"""The commands of `python -m symcomp`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from symcomp.__main__ import main
from symcomp.codegen.compiler import driver
from symcomp.config import config

SOURCE = "int answer(void);\nint answer(void)\n{\n    return 42;\n}\n"


@pytest.fixture
def directory(tmp_path: Path):
    path = tmp_path / "kernels"
    with config.change_flags(compiledir=str(path)):
        yield path


def test_cache(directory: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(directory)
    for number in ("42", "43"):
        driver.load(SOURCE.replace("42", number), ["answer"])
    (directory / "sub.so").mkdir()
    assert main(["cache", "list"]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line, entry in zip(lines, driver.entries(), strict=True):
        assert re.fullmatch(rf"{entry.path.stem} +[\d.]+ KiB  used \d+ (s|min) ago", line)
    assert total.startswith("2 entries, 0.0 MiB of 512 in ")
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 2 entries, 0.0 MiB, from ")
    assert [path.name for path in directory.iterdir()] == ["sub.so"]
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out.startswith("0 entries")


def test_a_directory_that_cannot_be_is_no_traceback(
    directory: Path, capsys: pytest.CaptureFixture
) -> None:
    directory.write_text("")
    assert main(["cache", "list"]) == 1
    assert capsys.readouterr().err.startswith("symcomp: compiled kernels cannot be kept in ")


@pytest.mark.parametrize("arguments", [[], ["cache"], ["no-such"], ["cache", "no-such"]])
def test_what_is_not_understood(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m symcomp" in capsys.readouterr().err


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "symcomp", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "what is kept of compiled kernels" in done.stdout
