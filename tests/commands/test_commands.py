"""python -m symcomp: info and profile."""

import json
import os
import subprocess
import sys

import pytest

from symcomp.__main__ import main
from symcomp.commands import info
from symcomp.config import config

SCRIPT = """
import sys
import numpy as np
import symcomp
import symcomp.tensor as T
assert __name__ == "__main__" and sys.argv[1:] == ["--epochs", "3"], sys.argv
x = T.dvector("x")
f = symcomp.function([x], T.tanh(x * 2).sum(), name="the function")
for _ in range(5):
    f(np.ones(10))
"""


def run(folder, *arguments, **variables):
    flags = {"SYMCOMP_FLAGS": "kernels=False", **variables}
    return subprocess.run(
        [sys.executable, "-m", "symcomp", *arguments],
        cwd=folder, env={**os.environ, **flags}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_info_tells_everything(tmp_path):
    done = run(tmp_path, "info", SYMCOMP_FLAGS="floatX=float32,kernels=False")
    assert done.returncode == 0, done.stderr
    for word in ("Versions", "Compiler", "BLAS", "Processor", "SIMD", "GPU", "Kernel cache"):
        assert word in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.split("\n")]
    assert "floatX 'float32' (SYMCOMP_FLAGS)" in lines
    assert "linker 'cvm' (default)" in lines


def test_info_without_a_compiler_and_with_a_bad_cache(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with config.change_flags(cc="no-such-compiler", compiledir=str(file)):
        text = info.text()
    assert "none: kernels run with NumPy" in text and "cannot be used:" in text
    assert f"{str(file)!r}  (change_flags)" in text


def test_profile_runs_a_script_and_prints_at_exit(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(tmp_path, "profile", "script.py", "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert "the function" in done.stderr and "5 calls" in done.stderr


def test_profile_writes_files(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    names = ["--html", "p.html", "--json", "p.json", "--trace", "t.json", "--output", "p.txt"]
    done = run(tmp_path, "profile", *names, "script.py", "--epochs", "3")
    assert done.returncode == 0 and done.stderr == ""
    assert "5 calls" in (tmp_path / "p.txt").read_text()
    known = json.loads((tmp_path / "p.json").read_text())
    assert known["functions"][0]["calls"] == 5 and known["title"] == "script.py"
    assert json.loads((tmp_path / "t.json").read_text())
    assert (tmp_path / "p.html").read_text().startswith("<!DOCTYPE html>")


def test_what_a_script_raises_is_seen_after_its_profile_is_written(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT + "raise RuntimeError('its own error')\n")
    done = run(tmp_path, "profile", "--json", "p.json", "script.py", "--epochs", "3")
    assert done.returncode == 1 and "its own error" in done.stderr
    assert json.loads((tmp_path / "p.json").read_text())["functions"]


def test_wrong_commands_say_what_there_is(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main([])
    with pytest.raises(SystemExit):
        main(["frobnicate"])
    assert "info" in capsys.readouterr().err
    done = run(tmp_path, "profile", "missing.py")
    assert done.returncode == 2 and "no file missing.py" in done.stderr
