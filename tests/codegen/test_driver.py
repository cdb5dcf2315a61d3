"""The compiler and its cache: broken and foreign entries, killed writers, many writers."""

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest

from symcomp.codegen import driver
from symcomp.config import config

SOURCE = "int answer(void);\nint answer(void)\n{\n    return 42;\n}\n"


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "kernels"
    with config.change_flags(compiledir=str(path)):
        yield path


def answer(source=SOURCE):
    found = driver.load(source, ["answer"])
    assert found is not None
    return ctypes.CFUNCTYPE(ctypes.c_int)(found[0])()


def forget():
    """As a new process begins."""
    driver._libraries.clear()


def count_builds(monkeypatch):
    builds = []
    build = driver._build

    def counted(*arguments):
        builds.append(arguments)
        build(*arguments)

    monkeypatch.setattr(driver, "_build", counted)
    return builds


def test_compiled_once_and_found_again(directory, monkeypatch):
    builds = count_builds(monkeypatch)
    assert answer() == 42
    forget()
    assert answer() == 42
    assert len(builds) == 1
    assert [path.suffix for path in directory.iterdir()] == [".so"]
    assert directory.stat().st_mode & 0o777 == 0o700
    assert answer(SOURCE.replace("42", "43")) == 43
    assert len(driver.entries()) == 2
    driver.clear()
    assert driver.entries() == []


@pytest.mark.parametrize("damage", ["cut", "emptied", "changed", "of another source"])
def test_damaged_entries_are_built_again(directory, monkeypatch, damage):
    answer()
    path = driver.entries()[0].path
    content = path.read_bytes()
    path.unlink()  # a new file: the old one is mapped into this process
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "changed":
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    else:
        answer(SOURCE.replace("42", "43"))
        (other,) = driver.entries()
        path.write_bytes(other.path.read_bytes())
    forget()
    builds = count_builds(monkeypatch)
    assert answer() == 42
    assert len(builds) == 1
    assert content == path.read_bytes() or damage != "of another source"


def test_the_key_depends_on_all_there_is(monkeypatch):
    compiler = driver.find_compiler("")
    keys = {driver.key_of(SOURCE, compiler), driver.key_of(SOURCE + " ", compiler)}
    monkeypatch.setattr(driver, "FLAGS", (*driver.FLAGS, "-g"))
    keys.add(driver.key_of(SOURCE, compiler))
    monkeypatch.setattr(driver, "_machine", lambda: ("Linux", "x86_64", "flags : sse2"))
    keys.add(driver.key_of(SOURCE, compiler))
    monkeypatch.setattr(driver, "_identity", lambda path: (path, "1", "2"))
    keys.add(driver.key_of(SOURCE, compiler))
    assert len(keys) == 5


def test_least_recently_used_are_removed(directory, monkeypatch):
    sources = [SOURCE.replace("42", str(n)) for n in range(6)]
    for n, source in enumerate(sources):
        answer(source)
        path = directory / f"{driver.key_of(source, driver.find_compiler(''))}.so"
        os.utime(path, (1000 + n, 1000 + n))
    forget()
    answer(sources[0])  # used again
    size = driver.entries()[0].size
    monkeypatch.setattr(driver, "MEBIBYTE", size)
    with config.change_flags(compiledir_size=3):
        answer(SOURCE)
    left = {entry.path.stem for entry in driver.entries()}
    compiler = driver.find_compiler("")
    assert left == {driver.key_of(s, compiler) for s in (sources[0], sources[5], SOURCE)}


def test_what_killed_writers_left_is_removed(directory):
    answer()
    old, new = directory / "new-old", directory / "new-young"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * driver.STALE,) * 2)
    answer(SOURCE.replace("42", "44"))
    assert not old.exists() and new.exists()


WRITER = """
    import ctypes, sys
    from symcomp.codegen.driver import load
    for n in range(int(sys.argv[1]), int(sys.argv[2])):
        source = f"int answer(void);\\nint answer(void)\\n{{\\n    return {n};\\n}}\\n"
        (address,) = load(source, ["answer"])
        assert ctypes.CFUNCTYPE(ctypes.c_int)(address)() == n
        print(n, flush=True)
"""


def writer(directory, start, stop):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(start), str(stop)],
        env={**os.environ, "SYMCOMP_FLAGS": f"compiledir={directory}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_share_the_directory(directory):
    processes = [writer(directory, 0, 4), writer(directory, 0, 4)]
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0 and output.split() == ["0", "1", "2", "3"]
    assert len(driver.entries()) == 4


def test_a_killed_writer_leaves_nothing_broken(directory):
    process = writer(directory, 0, 10_000)
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    complete = len(driver.entries())
    assert complete >= 3
    for entry in driver.entries():
        assert driver._open(entry.path, entry.path.stem) is not None
    second = writer(directory, 0, complete + 2)
    output, _ = second.communicate(timeout=120)
    assert second.returncode == 0 and len(output.split()) == complete + 2


def test_no_compiler(monkeypatch):
    with config.change_flags(cc="no-such-compiler"):
        driver._warn_no_compiler.cache_clear()
        with pytest.warns(RuntimeWarning, match=r"no-such-compiler.*apt install gcc"):
            assert driver.load(SOURCE, ["answer"]) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert driver.load(SOURCE, ["answer"]) is None


def test_what_the_compiler_refuses_is_shown(directory):
    with pytest.raises(driver.CompilerError, match="undeclared"):
        driver.load("int answer(void) { return nothing; }\n", ["answer"])
    assert list(directory.iterdir()) == []


UNUSED = SOURCE.replace("    return", "    int nothing;\n    return")


@pytest.mark.skipif("-Werror" not in config.cflags, reason="SYMCOMP_FLAGS has other cflags")
def test_warnings_are_errors_in_these_tests(directory):
    with pytest.raises(driver.CompilerError, match="nothing"):
        answer(UNUSED)


def test_flags_of_the_user_come_last(directory):
    with config.change_flags(cflags="-Wall -Werror"):
        with pytest.raises(driver.CompilerError, match=r"(?s)-Wall -Werror .*nothing"):
            answer(UNUSED)
        before = driver.key_of(SOURCE, driver.find_compiler(""))
    with config.change_flags(cflags="-D 'A=\"a b\"'"):
        assert driver.flags_of("gcc")[-2:] == ("-D", 'A="a b"')
        assert driver.key_of(SOURCE, driver.find_compiler("")) != before
        assert answer(UNUSED) == 42


@pytest.mark.skipif("-fsanitize=address" not in config.cflags, reason="only by make sanitize")
@pytest.mark.parametrize(
    ("expression", "said"),
    [("p[n]", "heap-buffer-overflow"), ("1 << n", "shift exponent 4096 is too large")],
)
def test_sanitizers_find_what_is_wrong(directory, expression, said):
    source = f"int f(const char *p, int n); int f(const char *p, int n) {{ return {expression}; }}"
    program = f"""
        import ctypes
        from symcomp.codegen.driver import load
        (address,) = load({source!r}, ["f"])
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(address)
        buffer = ctypes.create_string_buffer(4096)
        function(ctypes.addressof(buffer), 4096)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={
            **os.environ,
            "SYMCOMP_FLAGS": f"compiledir={directory},cflags={config.cflags} -Wno-unused-parameter",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr


def test_others_may_not_write(directory):
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(driver.CompilerError, match="chmod go-w"):
        answer()


def test_a_directory_of_another_user(directory, monkeypatch):
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: directory.stat().st_uid + 1)
    with pytest.raises(driver.CompilerError, match="belongs to another user"):
        answer()


def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        config.change_flags(compiledir=str(tmp_path / "file" / "kernels")),
        pytest.raises(driver.CompilerError, match="compiledir"),
    ):
        answer()
