"""The compiler and its cache: broken and foreign entries, unusable directories, messages."""

import ctypes
import errno
import os
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

import pytest

from symcomp.codegen.compiler import driver, early
from symcomp.config import config
from symcomp.tests.codegen.answers import SOURCE, answer, forget, key_of


def count_builds(monkeypatch):
    builds = []
    build = driver._build

    def counted(*arguments):
        builds.append(arguments)
        return build(*arguments)

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


def test_the_key_depends_on_all_there_is(directory, monkeypatch):
    keys = {key_of(SOURCE), key_of(SOURCE + " "), driver.target(early=1).key_of(SOURCE)}
    monkeypatch.setattr(driver, "FLAGS", (*driver.FLAGS, "-g"))
    keys.add(key_of(SOURCE))
    monkeypatch.setattr(driver, "_machine", lambda: ("Linux", "x86_64", "flags : sse2"))
    keys.add(key_of(SOURCE))
    monkeypatch.setattr(driver, "_identity", lambda path: (path, "1", "2"))
    keys.add(key_of(SOURCE))
    assert len(keys) == 6


FOREIGN = (
    "mine.so",
    "sub.so",
    f"{'0' * 63}.so",
    f"{'A' * 64}.so",
    f"{'0' * 64}.so.bak",
    "new",
    "new-notes.txt",
)


def test_what_else_is_in_the_directory_stays(directory, monkeypatch):
    answer()
    (one,) = driver.entries()
    for name in FOREIGN:
        (directory / name).mkdir() if name == "sub.so" else (directory / name).write_text("mine")
    (directory / f"{'1' * 64}.so").mkdir()
    (directory / "new-directory").mkdir()
    os.utime(directory / "new-directory", (1, 1))
    assert driver.entries() == [one]
    with config.change_flags(compiledir_size=0):
        answer(SOURCE.replace("42", "45"))
    assert len(driver.clear()) == 1
    left = {path.name for path in directory.iterdir()}
    assert left == {*FOREIGN, f"{'1' * 64}.so", "new-directory"}


def test_a_directory_in_the_place_of_an_entry(directory):
    """A library that cannot be kept is used nevertheless."""
    place = directory / f"{key_of(SOURCE)}.so"
    place.mkdir(parents=True)
    directory.chmod(0o700)
    assert answer() == 42
    assert [*directory.iterdir()] == [place]


def test_entries_that_vanish_at_once(directory, monkeypatch):
    """Another process may remove an entry between any two steps of this one."""
    replace, load = os.replace, ctypes.CDLL

    def replaced(*paths):
        replace(*paths)
        driver.clear()

    monkeypatch.setattr(os, "replace", replaced)
    assert answer() == 42
    assert driver.entries() == []
    monkeypatch.setattr(os, "replace", replace)
    forget()
    answer()
    forget()

    def loaded(name):
        library = load(name)
        driver.clear()
        return library

    monkeypatch.setattr(ctypes, "CDLL", loaded)
    assert answer() == 42
    assert driver.entries() == []


def test_no_compiler(monkeypatch):
    with config.change_flags(cc="no-such-compiler"):
        driver._warn_once.cache_clear()
        with pytest.warns(RuntimeWarning, match=r"no-such-compiler.*apt install gcc"):
            assert driver.load(SOURCE, ["answer"]) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert driver.load(SOURCE, ["answer"]) is None


@pytest.fixture
def broken(tmp_path):
    """Make a compiler without the headers of the C library, and a counter of its calls."""
    path, calls = tmp_path / "broken-cc", tmp_path / "calls"
    path.write_text(f"#!/bin/sh\necho >> {calls}\necho 'math.h: No such file' >&2\nexit 1\n")
    path.chmod(0o700)
    with config.change_flags(cc=str(path)):
        yield lambda: len(calls.read_text())


def test_a_compiler_that_compiles_nothing_is_none(directory, broken):
    with pytest.warns(RuntimeWarning, match=r"(?s)broken-cc.*apt install gcc.*math.h: No such"):
        assert driver.load(SOURCE, ["answer"]) is None
    assert [*directory.iterdir()] == []
    assert broken() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert driver.load(SOURCE.replace("42", "43"), ["answer"]) is None
    assert broken() == 2


def silent(path, when):
    """Make a compiler that succeeds, and writes nothing for some files."""
    real = driver.find_compiler("")
    path.write_text(f'#!/bin/sh\ncase "$*" in {when}) exit 0;; esac\nexec {real} "$@"\n')
    path.chmod(0o700)
    return config.change_flags(cc=str(path))


def test_a_compiler_that_writes_nothing_is_none(directory, tmp_path):
    with (
        silent(tmp_path / "silent-cc", "*"),
        pytest.warns(RuntimeWarning, match=r"(?s)silent-cc does not work.*writes nothing"),
    ):
        assert driver.load(SOURCE, ["answer"]) is None
    assert [*directory.iterdir()] == []


def test_a_compiler_that_wrote_nothing(directory, tmp_path):
    with (
        silent(tmp_path / "some-cc", "*new-*"),
        pytest.raises(driver.CompilerError, match="some-cc .*succeeds, but writes nothing"),
    ):
        driver.load(SOURCE, ["answer"])


def test_a_compiler_that_cannot_be_started_is_none(directory, tmp_path):
    path = tmp_path / "no-program"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o700)
    with (
        config.change_flags(cc=str(path)),
        pytest.warns(RuntimeWarning, match="no-program does not work.*Exec format error"),
    ):
        assert driver.load(SOURCE, ["answer"]) is None


def test_kernels_need_no_headers_of_the_system():
    folder = Path(driver.__file__).parents[1]
    headers = [*folder.glob("functions/*.h"), *folder.glob("loops/*.h")]
    texts = [path.read_text() for path in headers]
    found = {line for text in texts for line in text.splitlines() if "#include <" in line}
    assert found == {"#include <features.h>"}  # if it is there


def test_functions_that_are_not_declared_are_refused(directory):
    with pytest.raises(driver.CompilerError, match="implicit declaration"):
        driver.load("int answer(void);\nint answer(void) { return other(); }\n", ["answer"])


def test_what_the_compiler_refuses_is_shown(directory):
    with pytest.raises(driver.CompilerError, match="undeclared"):
        driver.load("int answer(void) { return nothing; }\n", ["answer"])
    assert list(directory.iterdir()) == []


UNUSED = SOURCE.replace("    return", "    int nothing;\n    return")


@pytest.mark.skipif("-Werror" not in config.cflags, reason="SYMCOMP_FLAGS has other cflags")
def test_warnings_are_errors_in_these_tests(directory):
    with pytest.raises(driver.CompilerError, match="nothing"):
        answer(UNUSED)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where names are global")
def test_functions_call_those_of_their_own_file(directory, tmp_path):
    """Though a library that is loaded for all has others of the same names."""
    part = "int symcomp_part(void);\nint symcomp_part(void)\n{\n    return NUMBER;\n}\n"
    whole = "int whole(void);\nint whole(void)\n{\n    return symcomp_part();\n}\n"
    (tmp_path / "other.c").write_text(part.replace("NUMBER", "1"))
    command = [driver.find_compiler(""), "-shared", "-fPIC", "other.c", "-o", "other.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    other = ctypes.CDLL(str(tmp_path / "other.so"), mode=ctypes.RTLD_GLOBAL)
    found = driver.load(part.replace("NUMBER", "2") + whole, ["whole"])
    assert other.symcomp_part() == 1
    assert found is not None and ctypes.CFUNCTYPE(ctypes.c_int)(found[0])() == 2


def test_flags_of_the_user_come_last(directory):
    with config.change_flags(cflags="-Wall -Werror"):
        with pytest.raises(driver.CompilerError, match=r"(?s)-Wall -Werror .*nothing"):
            answer(UNUSED)
        before = key_of(SOURCE)
    with config.change_flags(cflags="-D 'A=\"a b\"'"):
        assert driver.flags_of("gcc")[-2:] == ("-D", 'A="a b"')
        assert key_of(SOURCE) != before
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
        from symcomp.codegen.compiler.driver import load
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


@pytest.fixture
def default(tmp_path, monkeypatch):
    """Return a place for the default directory; temporary files have another."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(driver, "_default_directory", lambda: tmp_path / "home" / "kernels")
    driver._warn_once.cache_clear()
    with config.change_flags(compiledir=""):
        yield tmp_path / "home" / "kernels"
    assert [*temporary.iterdir()] == []


def check_nothing_is_kept():
    """There is one warning for two kernels."""
    with pytest.warns(RuntimeWarning, match=r"config\.compiledir") as caught:
        assert answer() == 42
        assert answer(SOURCE.replace("42", "46")) == 46
    assert len(caught) == 1
    forget()
    assert answer() == 42


def test_a_default_directory_that_cannot_be(default):
    default.parent.write_text("")
    check_nothing_is_kept()


def test_a_default_directory_of_another_user(default, monkeypatch):
    default.mkdir(mode=0o700, parents=True)
    monkeypatch.setattr(os, "getuid", lambda: default.stat().st_uid + 1)
    check_nothing_is_kept()
    assert [*default.iterdir()] == []


def test_a_default_directory_that_can_only_be_read(default, monkeypatch):
    other = SOURCE.replace("42", "47")
    answer(other)
    forget()
    monkeypatch.setattr(os, "access", lambda *_: False)
    builds = count_builds(monkeypatch)
    monkeypatch.setattr(os, "utime", refuse)
    assert answer(other) == 47
    assert builds == []
    check_nothing_is_kept()
    assert len([*default.iterdir()]) == 1


def refuse(*_):
    raise PermissionError("only to be read")


def test_a_directory_that_can_only_be_read(directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(driver.CompilerError, match=r"cannot be written: .*compiledir"):
        answer()


def fail_in(monkeypatch, directory, failure):
    """Make an operation on files of a directory raise: "write", "replace" or "load"."""
    seal, load, replace = driver.seal, ctypes.CDLL, os.replace

    def is_there(name):
        return str(name).startswith(str(directory))

    def sealed(name, key):
        if failure == "write" and is_there(name):
            raise OSError(errno.ENOSPC, "No space left on device")
        seal(name, key)

    def loaded(name, *rest, **options):
        if failure == "load" and is_there(name):
            raise OSError(f"{name}: failed to map segment from shared object")
        return load(name, *rest, **options)

    def replaced(name, other):
        if failure == "replace":
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        replace(name, other)

    monkeypatch.setattr(driver, "seal", sealed)
    monkeypatch.setattr(ctypes, "CDLL", loaded)
    monkeypatch.setattr(os, "replace", replaced)


@pytest.fixture(params=["write", "replace", "load"])
def failure(request, monkeypatch):
    monkeypatch.setattr(driver, "_given_up", {})
    driver._warn_once.cache_clear()
    return request.param


def test_a_full_or_noexec_default_directory(default, monkeypatch, failure):
    fail_in(monkeypatch, default, failure)
    check_nothing_is_kept()
    assert [*default.iterdir()] == []


def test_a_full_or_noexec_directory(directory, monkeypatch, failure):
    """The user's directory, too, may become full while a program runs."""
    fail_in(monkeypatch, directory, failure)
    check_nothing_is_kept()
    assert [*directory.iterdir()] == []


def test_early_code_of_a_full_directory(directory, monkeypatch, failure):
    """The background process optimizes it for this process alone."""
    fail_in(monkeypatch, directory, failure)
    monkeypatch.setattr(early, "LONG", 1)
    monkeypatch.setattr(early, "PATIENCE", 0.0)
    with config.change_flags(cflags=""), pytest.warns(RuntimeWarning, match="Until then every"):
        ((code,),) = early.load_codes([(SOURCE, ["answer"])])
        early.wait()
    assert ctypes.CFUNCTYPE(ctypes.c_int)(code.address)() == 42 and not code.early


def test_nothing_can_be_loaded(directory, monkeypatch):
    """Then it is as without a compiler."""
    monkeypatch.setattr(driver, "_broken", set())
    driver._warn_once.cache_clear()
    fail_in(monkeypatch, "", "load")
    with pytest.warns(RuntimeWarning, match=r"does not work.* run .* NumPy.*failed to map"):
        assert driver.load(SOURCE, ["answer"]) is None
    assert driver.target() is None


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """Return a function that mounts a small file system in memory."""
    place = tmp_path / "mounted"
    place.mkdir()
    monkeypatch.setattr(driver, "_given_up", {})
    driver._warn_once.cache_clear()

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "symcomp", str(place)]
        try:
            done = subprocess.run(command, check=False, capture_output=True).returncode == 0
        except OSError:
            done = False
        if not done:
            pytest.skip("file systems cannot be mounted")
        return place

    yield mount
    if os.path.ismount(place):
        # Lazily: the loader does not unmap what it could not load.
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("options", ["noexec,size=4m", "size=4k"])
def test_a_file_system_without_execution_or_space(mounted, options):
    with config.change_flags(compiledir=str(mounted(options))):
        check_nothing_is_kept()


@pytest.mark.parametrize("how", ["writable", "of another user", "link"])
def test_entries_that_others_may_write_are_built_again(directory, monkeypatch, how):
    builds = count_builds(monkeypatch)
    answer()
    forget()
    (entry,) = driver.entries()
    if how == "writable":
        entry.path.chmod(0o722)
    elif how == "link":
        elsewhere = directory.parent / "elsewhere.so"
        entry.path.rename(elsewhere)
        entry.path.symlink_to(elsewhere)
    elif os.getuid() == 0:
        os.chown(entry.path, 65534, -1)
    else:
        pytest.skip("only the superuser can give files to others")
    assert answer() == 42
    assert len(builds) == 2
    forget()
    answer()
    assert len(builds) == 2
    assert entry.path.lstat().st_mode & 0o777 == 0o700


def test_entries_do_not_depend_on_the_umask(directory, monkeypatch):
    builds = count_builds(monkeypatch)
    before = os.umask(0)
    try:
        answer()
    finally:
        os.umask(before)
    forget()
    assert answer() == 42
    assert len(builds) == 1
