"""The golden files show the graphs, programs and kernels that the compiler makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symcomp.tests.golden import files
from symcomp.tests.golden.__main__ import main
from symcomp.tests.golden.files import FOLDER, difference, read
from symcomp.tests.golden.registry import BUILDERS
from symcomp.tests.golden.sections import SECTIONS, text_of

# A program that prints the texts of the functions named on its command line.
PRINT = """
import sys
from symcomp.tests.golden.sections import text_of
print(*map(text_of, sys.argv[1:]), sep=chr(0))
"""
# Names of features for NumPy before and after 2.4; the other ones are ignored with a warning.
FEATURES = "AVX2 FMA3 AVX512F AVX512_SKX X86_V3 X86_V4"


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_golden_file(name: str) -> None:
    expected, found = read(name), text_of(name)
    if found != expected:
        pytest.fail(difference(name, expected, found), pytrace=False)


def test_every_file_has_a_function() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(BUILDERS)


def test_text_depends_on_nothing_but_the_compiler() -> None:
    """Neither on the order of the functions, nor on hash seeds, options or the processor."""
    names = sorted(BUILDERS, reverse=True)[::8]
    environment = os.environ | {
        "PYTHONHASHSEED": "1",
        "SYMCOMP_FLAGS": "floatX=float32,optimizer=fast_compile,linker=vm,openmp=True",
        "NPY_DISABLE_CPU_FEATURES": FEATURES,
        "OMP_NUM_THREADS": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", PRINT, *names], env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    for name, text in zip(names, done.stdout.removesuffix("\n").split("\0"), strict=True):
        assert text == read(name), difference(name, read(name), text)


def test_sections_are_in_the_file() -> None:
    heads = [line for line in read("branches").split("\n") if line.startswith("==== ")]
    assert heads == [f"==== {section.__name__} ====" for section in SECTIONS]


def test_difference_is_a_diff_and_tells_what_to_do() -> None:
    text = difference("sum", "one\ntwo\nthree", "one\n2\nthree")
    assert "make golden" in text
    assert text.split("\n")[1:] == [
        "--- tests/golden/sum.txt", "+++ tests/golden/sum.txt now", "@@ -1,3 +1,3 @@", " one",
        "-two", "+2", " three",
    ]  # fmt: skip
    long = difference("sum", "", "\n".join(map(str, range(1000))))
    assert long.endswith("lines more") and len(long.split("\n")) < 500


def test_make_golden_writes_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    (tmp_path / "gone.txt").write_text("")
    main(["single_numbers"])
    assert capsys.readouterr().out == "written: single_numbers.txt\nremoved: gone.txt\n"
    main(["single_numbers"])
    assert capsys.readouterr().out == ""
    assert read("single_numbers").startswith("==== graph ====")
    with pytest.raises(SystemExit):
        main(["no_such_function"])
