"""Kernels are found in the files that they share with others."""

import os
import subprocess
import sys
import textwrap

import pytest

from symcomp.codegen.compiler import driver, early, units
from symcomp.codegen.printers.c_file import translation_unit
from symcomp.config import config
from symcomp.tests.codegen import answers
from symcomp.tests.codegen.test_units import kernel

pytestmark = pytest.mark.skipif(
    "-fsanitize" in config.cflags, reason="what has flags of the user's has no early code"
)
SOME = [kernel(name) for name in ("exp", "log", "tanh")]
OTHER = kernel("sin")


@pytest.fixture(autouse=True)
def one_file(directory, monkeypatch):
    """Put all kernels of a program into one file; end with nothing at work."""
    monkeypatch.setattr(units, "processors", lambda: 1)
    yield
    early.wait()
    units._loaded.clear()


def forget() -> None:
    """Be as a process that has loaded nothing."""
    answers.forget()
    units._loaded.clear()


def files() -> int:
    """Return how many files have been compiled."""
    return len(driver.entries())


def links(directory):
    """Return the names of links, and of the entries that they lead to."""
    found = [path for path in directory.iterdir() if path.is_symlink()]
    return {path.name: os.readlink(path) for path in found}


def link_of(directory, one):
    """Return the link of a kernel."""
    nest = "shared" if units.prebuilt.shares_loops() else "own"
    return directory / f"{driver.target().key_of(translation_unit([one], nest))}.in"


def test_a_new_process_compiles_what_is_new(directory) -> None:
    units.load_kernels(SOME)
    assert files() == 1 and len(links(directory)) == len(SOME)
    forget()
    units.load_kernels(SOME[1:])
    assert files() == 1
    units.load_kernels([*SOME, OTHER])
    # A kernel with a file of its own needs no link.
    assert files() == 2 and len(links(directory)) == len(SOME)
    forget()
    found = units.load_kernels([OTHER, SOME[0]])
    assert files() == 2 and len({code.address for code in found.values()}) == 2


def test_this_process_loads_each_kernel_once(directory) -> None:
    before = units.load_kernels(SOME)
    driver.clear()
    again = units.load_kernels([*SOME, OTHER])
    assert files() == 1 and all(again[name] is code for name, code in before.items())


def test_other_flags_are_other_kernels(directory) -> None:
    before = units.load_kernels(SOME)
    with config.change_flags(cflags=f"{config.cflags} -DOTHER"):
        again = units.load_kernels(SOME)
    assert files() == 2 and all(again[name] is not code for name, code in before.items())


@pytest.mark.parametrize("target", ["0" * 64 + ".so", "nothing.so", "../away.so", ".", "/"])
def test_links_that_lead_nowhere_are_replaced(directory, target) -> None:
    units.load_kernels(SOME)
    entry = driver.entries()[0].path.name
    link = link_of(directory, SOME[0])
    assert os.readlink(link) == entry
    os.unlink(link)
    os.symlink(target, link)
    forget()
    units.load_kernels(SOME[:2])
    assert files() == 2  # the kernel is compiled, alone
    forget()
    driver.clear()
    os.symlink(target, link)
    assert units.load_kernels(SOME).keys() == {one.name for one in SOME}
    assert os.readlink(link) == entry


def test_a_link_to_the_entry_of_other_kernels(directory) -> None:
    """Functions are looked for by their names, too."""
    units.load_kernels(SOME)
    units.load_kernels([OTHER, kernel("cos")])
    entry = os.readlink(link_of(directory, OTHER))
    link = link_of(directory, SOME[0])
    os.unlink(link)
    os.symlink(entry, link)
    forget()
    assert SOME[0].name in units.load_kernels(SOME[:1])
    assert files() == 3


def test_a_damaged_entry_is_compiled_again(directory) -> None:
    units.load_kernels(SOME)
    path = driver.entries()[0].path
    path.write_bytes(path.read_bytes()[:-1])
    forget()
    assert units.load_kernels(SOME).keys() == {one.name for one in SOME}
    forget()
    units.load_kernels(SOME[:1])
    assert files() == 1


def test_links_go_with_their_entries(directory, monkeypatch) -> None:
    units.load_kernels(SOME)
    other = directory / f"other{driver.LINK_SUFFIX}"
    other.write_text("of somebody else")
    size = driver.entries()[0].size
    monkeypatch.setattr(driver, "MEBIBYTE", size)
    with config.change_flags(compiledir_size=1):
        units.load_kernels([OTHER, kernel("cos")])
    assert files() == 1 and len(links(directory)) == 2
    driver.clear()
    assert [path.name for path in directory.iterdir()] == [other.name]


def test_what_is_optimized_later_is_shared(directory, monkeypatch) -> None:
    """Functions call the optimized code of one another's kernels when it is there."""
    monkeypatch.setattr(early, "LONG", 1)
    monkeypatch.setattr(early, "PATIENCE", 100)
    monkeypatch.setattr(early, "_work", early._Work())
    with config.change_flags(cflags="", early_code=True):
        one = units.load_kernels(SOME)
        two = units.load_kernels([*SOME[:1], OTHER])
        assert all(code.early for code in (*one.values(), *two.values()))
        with config.change_flags(early_code=False):
            (code,) = units.load_kernels(SOME[:1]).values()
        assert not code.early and code is two[SOME[0].name]
        early.wait()
        assert not any(code.early for code in (*one.values(), *two.values()))
        forget()
        units.load_kernels([*SOME, OTHER])
        assert files() == 2


def test_a_kernel_that_could_not_be_optimized_is_compiled_again(directory, monkeypatch) -> None:
    monkeypatch.setattr(early, "LONG", 1)
    with config.change_flags(cflags="", early_code=True):
        with monkeypatch.context() as patch:
            patch.setattr(early._Job, "work", lambda job: early._work.finish(job, ()))
            (code,) = units.load_kernels(SOME[:1]).values()
            early.wait()
        assert code.early
        (again,) = units.load_kernels(SOME[:1]).values()
        early.wait()
    assert again is not code and not again.early


def test_values_do_not_depend_on_the_file(directory, tmp_path) -> None:
    """A changed program, in another process, has the numbers of one that is compiled as a whole."""
    program = textwrap.dedent(
        """
        import sys, numpy as np, symcomp, symcomp.tensor as T
        x, w = T.fmatrix("x"), symcomp.shared(np.linspace(-1, 1, 20, dtype="f4").reshape(4, 5))
        loss = T.nnet.softmax(T.tanh(x.dot(w)), axis=-1).max(axis=0).sum()
        found = [loss, *([x.std(axis=0)] if sys.argv[1] == "more" else [])]
        f = symcomp.function([x], found, updates=[(w, w - symcomp.grad(loss, w))])
        given = np.random.default_rng(0).normal(size=(6, 4)).astype("f4")
        print([z.tolist() for z in f(given)], w.get_value().tolist())
        """
    )

    def run(folder, *what):
        environment = os.environ | {"SYMCOMP_FLAGS": f"compiledir={tmp_path / folder}"}
        return [
            subprocess.run(
                [sys.executable, "-c", program, one], env=environment, capture_output=True,
                text=True, check=True,
            ).stdout
            for one in what
        ]  # fmt: skip

    assert run("both", "few", "more", "few")[1:] == run("more", "more") + run("few", "few")
