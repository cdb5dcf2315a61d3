"""Files of kernels have the functions of the headers that they need, and no others."""

import subprocess
import threading
import time

import pytest

from symcomp.codegen.compiler import driver
from symcomp.codegen.kernel import kernel_of
from symcomp.codegen.printers import c_file, c_headers
from symcomp.codegen.printers.c_headers import Header, Headers
from symcomp.config import config
from symcomp.ops.elementwise.elemwise import ROWS
from symcomp.ops.formulas.formula import Formula, Result, Step

ALL = Headers(c_file.FUNCTIONS)
SOME = (
    "g_betaln", "g_gammainc_der", "e_logaddexp", "series_remainder", "product_remainder", "c_div",
    "c_powf", "scatter_float16", "p_cut_exp", "nest_reduction", "merge_sums", "read_positions",
    "philox",
)  # fmt: skip
TEXT = """/* The first header. */
#define PASTED(name) name##_wide + 1
#define DEFINE(name, T) \\
    static T of_##name(T x) \\
    { \\
        return x; \\
    }
enum { FIRST = 1, SECOND };

/* A table. */
TABLE double NUMBERS[] = {
    1, 2};
static int x_wide = 2;
HELPER int unused(int x) { return x; }

/* Calls `unused` in this comment alone. */
INLINE REAL F(calls)(REAL x)
{
    return F(called)(x) + NUMBERS[0];
}

INLINE REAL F(called)(REAL x); /* declared */
INLINE REAL F(called)(REAL x)
{
    return PASTED(x) + FIRST;
}

DEFINE(float, float)
"""


def of_text(words: set[str], real: str | None = "float") -> str:
    headers = Headers((Header("text", real, print=lambda: TEXT),))
    return "".join(headers.text(headers.pieces(words)))


def test_a_function_brings_what_it_calls() -> None:
    found = of_text({"callsf"})
    assert "F(calls)" in found and found.count("F(called)") == 3 and "x_wide = 2" in found
    for other in ("NUMBERS[] = {\n    1, 2};", "enum", "#define REAL float"):
        assert other in found
    for other in ("unused", "DEFINE(float", "/*"):
        assert other not in found


def test_nothing_is_needed() -> None:
    assert of_text({"calls", "something", "REAL"}) == ""
    assert "F(calls)" in of_text({"calls"}, "double")


def test_functions_that_macros_define() -> None:
    assert of_text({"of_float"}).rstrip().endswith("DEFINE(float, float)\n#undef REAL\n#undef F\n"
        "#undef C\n#undef EPSILON\n#undef SPLITTER\n#undef SMALL")  # fmt: skip
    assert "enum" in of_text({"SECOND"}) and "NUMBERS" not in of_text({"SECOND"})


@pytest.mark.parametrize("header", [*ALL._headers.values()], ids=lambda header: header.name)
def test_no_line_is_lost(header: Header) -> None:
    text = header.print() if header.print else c_headers.header(header.name)
    parts, _ = c_headers._divided(header)
    assert "".join(part for part, _ in parts) == c_headers._COMMENT.sub("", text)
    for part, piece in parts:
        assert piece.frame is None or part.count("{") == part.count("}"), part


@pytest.mark.parametrize("text", ["INLINE int f(int x)\n{\n    return x;\n", "static int x[] = {"])
def test_a_header_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="substring not found"):
        Headers((Header("open", print=lambda: text),))


@pytest.mark.parametrize("name", SOME)
def test_each_function_compiles_with_what_it_needs(name: str) -> None:
    headers = c_file._headers_of_files("own")
    text = "\n".join(headers.text(headers.pieces({name})))
    assert name in headers._named
    flags = "-march=native -Wall -Werror -Wno-unused -fsyntax-only -x c -".split()
    compiler = driver.find_compiler(config.cc)
    assert compiler is not None
    done = subprocess.run(
        [compiler, *driver.VALUE_FLAGS, *flags], input=text, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_headers_that_were_read_before_change_nothing() -> None:
    read = c_file._headers_of_files.__wrapped__("own")
    assert [*read.everything()]
    for name, pieces in read._named.items():
        of = [piece.header for piece in pieces]
        words = {name, name.partition("_")[0]}
        # Functions of the same header call the others.
        if all(words & {*h.asked_by} for h in of if h.asked_by or h.name.startswith("tables")):
            new = c_file._headers_of_files.__wrapped__("own")
            found = [[*headers.text(headers.pieces({name}))] for headers in (new, read)]
            assert found[0] == found[1], name


def test_threads_may_read_headers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, headers = Headers._read, Headers(c_file.FUNCTIONS)
    words = {word for header in c_file.FUNCTIONS for word in header.asked_by}

    def read_slowly(self: Headers, header: Header) -> None:
        time.sleep(1e-4)
        read(self, header)

    monkeypatch.setattr(Headers, "_read", read_slowly)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(len(headers.pieces(words)))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and len(set(found)) == 1


def test_the_version_of_loops_is_of_all_that_they_use() -> None:
    headers = c_file._headers_of_files("own")
    found = {piece.header.name for piece in headers.pieces(c_file._EXPORTED)}
    others = {"C library", "names of loops", "loops around bodies"}
    assert found == {*c_file._OF_LOOPS, *others}


def test_simple_files_are_short() -> None:
    step = Step(ROWS["exp"](), (0,), "float64")
    kernel = kernel_of(Formula(("float64",), (), (step,), (Result(1),)), [(False,)])
    assert kernel is not None
    text = c_file.translation_unit([kernel], "shared")
    assert "nest_elementwise" in text and len(text) < 12_000
    for other in ("g_beta", "c_mul", "merge_sumsf(int64_t", "floor_div_i", "complex.h", "scatter_"):
        assert other not in text
