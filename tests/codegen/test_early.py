"""Code that is there early, and what the compiler optimizes meanwhile."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import symcomp
import symcomp.tensor as T
from symcomp.codegen.compiler import driver, early, units
from symcomp.config import config
from symcomp.tests.codegen.running import assert_same_bits

pytestmark = pytest.mark.skipif(
    "-fsanitize" in config.cflags, reason="what has flags of the user's has no early code"
)


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Use an empty cache; even short files get early code."""
    monkeypatch.setattr(early, "LONG", 1)
    flags = {"compiledir": str(tmp_path / "kernels"), "cflags": "", "early_code": True}
    with config.change_flags(kernels=True, **flags):
        yield tmp_path / "kernels"
        early.wait()


@pytest.fixture
def held(monkeypatch):
    """Return an event; nothing is optimized until it is set."""
    event, process = threading.Event(), early._process

    def waiting(jobs):
        assert event.wait(60)
        return process(jobs)

    monkeypatch.setattr(early, "_process", waiting)
    yield event
    event.set()
    early.wait()


def kernels_of(function):
    """Return the callers of the kernels of a function's instructions."""
    return [kernel for kernel in function._machine.new_tally().kernels if kernel is not None]


def codes_of(function):
    """Return the code addresses of a function's kernels."""
    return [kernel.code for kernel in kernels_of(function)]


def early_calls(function):
    """Return how often each kernel was called before it was optimized."""
    return [kernel.early_calls for kernel in kernels_of(function)]


def network():
    """Return a step of training, and values for it."""
    x, y = T.fmatrix("x"), T.ivector("y")
    w = symcomp.shared(np.linspace(-1, 1, 40, dtype="float32").reshape(8, 5))
    loss = -T.nnet.log_softmax(T.tanh(x).dot(w))[T.arange(y.shape[0]), y].mean()
    f = symcomp.function(
        [x, y], [loss, x.sum(axis=0), x.max(1)], updates=[(w, w - symcomp.grad(loss, w))]
    )
    rng = np.random.default_rng(1)
    return f, w, (rng.normal(size=(9, 8)).astype("float32"), rng.integers(0, 5, 9).astype("int32"))


def test_replaced_without_a_change_of_bits(directory, held) -> None:
    f, w, values = network()
    start, codes = w.get_value(), codes_of(f)
    before = [code.address for code in codes]
    assert codes and all(code.early for code in codes)
    first = {entry.path for entry in driver.entries()}
    found = []
    for _ in range(3):
        w.set_value(start)
        found.append([*f(*values), w.get_value()])
    # Numbers of lengths alone are computed once, when the call is planned.
    counted = early_calls(f)
    assert set(counted) <= {1, 3} and 3 in counted
    held.set()
    early.wait()
    assert not any(code.early for code in codes)
    kept = {entry.path for entry in driver.entries()}
    assert first and len(kept) == len(first) and not kept & first
    assert not {code.address for code in codes} & set(before)
    for _ in range(2):
        w.set_value(start)
        found.append([*f(*values), w.get_value()])
    assert early_calls(f) == counted
    for row in found[1:]:
        for got, want in zip(row, found[0], strict=True):
            assert_same_bits(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize(
    ("dtype", "arrays"), [("float64", 1), ("float32", 2), ("float64", 3), ("complex64", 1)]
)
def test_what_early_code_leaves_out(directory, held, dtype, arrays) -> None:
    """Totals of rows, some of which only optimized code takes several of at once."""
    xs = [T.tensor(f"x{i}", dtype=dtype, shape=(None, None)) for i in range(arrays)]
    y = xs[0]
    for x in xs[1:]:
        y = y * x
    totals = [y.sum(axis=0), y.sum(axis=1), y.prod(axis=0)]
    if dtype.startswith("float"):
        totals += [y.max(axis=0), abs(y).max(axis=1)]
    functions = [symcomp.function(xs, total) for total in totals]
    rng = np.random.default_rng(arrays)
    shapes = [(3, 5), (16, 1), (37, 40), (63, 16), (64, 7), (130, 33), (65, 200), (1, 1000), (0, 4)]
    found = []
    for _ in range(2):
        for f in functions:
            for i, shape in enumerate(shapes):
                if 0 in shape and f is not functions[0]:
                    continue
                rng = np.random.default_rng(i)
                values = [rng.uniform(-1.1, 1.1, shape).astype(dtype) for _ in xs]
                values[0][::7] = 0.0 * values[0][::7]
                found.append(np.asarray(f(*values)))
        held.set()
        early.wait()
    half = len(found) // 2
    for got, want in zip(found[half:], found[:half], strict=True):
        assert_same_bits(got, want)


def test_loops_call_what_was_optimized(directory, held) -> None:
    x = T.dvector("x")
    states, _ = symcomp.scan(lambda h: T.tanh(h * 2 + T.exp(-h)), outputs_info=[x], n_steps=50)
    f = symcomp.function([x], states)
    value = np.linspace(-1, 1, 7)
    found = [f(value) for _ in range(3)]
    held.set()
    early.wait()
    assert len(driver.entries()) == 1
    for _ in range(2):
        found.append(f(value))
    for got in found[1:]:
        assert_same_bits(got, found[0])


def test_what_is_kept_is_optimized(directory) -> None:
    network()
    early.wait()
    kept = {entry.path.name for entry in driver.entries()}
    driver._libraries.clear()
    f, _, values = network()
    assert not any(code.early for code in codes_of(f))
    assert f(*values) and {entry.path.name for entry in driver.entries()} == kept
    assert not any(early_calls(f))


@pytest.mark.parametrize(
    "flags", [{"early_code": False}, {"cflags": "-DNOTHING"}], ids=["early_code", "cflags"]
)
def test_only_where_it_is_wanted(directory, flags) -> None:
    with config.change_flags(**flags):
        f, _, _ = network()
    assert not any(code.early for code in codes_of(f))


def test_short_files_and_vector_functions_have_none(directory, monkeypatch) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], T.cosh(x) + x * 2)  # cosh of vectors rounds differently
    assert codes_of(f) and not any(code.early for code in codes_of(f))
    monkeypatch.setattr(early, "LONG", 10**9)
    f = symcomp.function([x], T.exp(x) + x * 2)
    assert codes_of(f) and not any(code.early for code in codes_of(f))


def test_optimizing_begins_later(directory, monkeypatch) -> None:
    """Waiting for it starts it at once; afterwards the delay applies again."""
    early.wait()
    monkeypatch.setattr(early, "PATIENCE", 100)
    monkeypatch.setattr(early, "_work", early._Work())
    for _ in range(2):
        f, _, values = network()
        f(*values)
        time.sleep(0.3)
        assert early._work.not_begun and all(code.early for code in codes_of(f))
        began = time.monotonic()
        early.wait()
        assert time.monotonic() - began < 90 and not any(code.early for code in codes_of(f))
        driver.clear()
        driver._libraries.clear()
        units._loaded.clear()


def test_much_work_waits(directory, held) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x) * 2 + x)
    (code,) = codes_of(f)
    f(np.zeros(1000))
    assert early_calls(f) == [1]
    timer = threading.Timer(0.2, held.set)
    timer.start()
    f(np.zeros(30_000_000))
    assert not code.early and early_calls(f) == [1]


def test_the_profile_tells(directory, held) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x) * 2 + x, profile=True)
    for _ in range(5):
        f(np.zeros(3))
    held.set()
    early.wait()
    for _ in range(7):
        f(np.zeros(3))
    assert "not optimized 5 of 12" in f.profile.text()
    (row,) = [r for r in f.profile.to_dict()["functions"][0]["instructions"] if r["unoptimized"]]
    assert row["unoptimized"] == 5 and row["count"] == 12


def test_the_profile_counts_each_instruction(directory, held) -> None:
    """Also where several call one kernel."""
    x, y = T.dvectors("x", "y")
    outputs = [T.exp(x) * 2 + x, T.exp(y) * 2 + y]
    f = symcomp.function([x, y], outputs, profile=True)
    assert len({id(code) for code in codes_of(f)}) == 1 and len(codes_of(f)) == 2
    for n in range(5):
        f(np.zeros(3), np.zeros(3))
        held.set() if n == 3 else None
    early.wait()
    f(np.zeros(3), np.zeros(3))
    rows = f.profile.to_dict()["functions"][0]["instructions"]
    assert {row["unoptimized"] for row in rows if row["ran_in"] == "kernel"} <= {4, 5}


def test_without_another_process_a_thread_does_it(directory, monkeypatch) -> None:
    def failing(jobs):
        raise OSError("no more processes")

    monkeypatch.setattr(early, "_process", failing)
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x) * 2 + x)
    early.wait()
    assert not any(code.early for code in codes_of(f))
    np.testing.assert_array_equal(f(np.zeros(3)), 2)


def test_a_directory_in_the_place_of_the_entry(directory, held) -> None:
    x = T.dvector("x")
    f = symcomp.function([x], T.exp(x) * 2 + x)
    (key,) = early._work.jobs
    (directory / f"{key}.so").mkdir()
    held.set()
    early.wait()
    assert not any(code.early for code in codes_of(f))


@pytest.fixture
def refused(monkeypatch):
    """Make optimizing fail."""
    load_all = driver.load_all

    def refusing(files, how):
        if files and how != driver.target(early=1):
            raise driver.CompilerError("no such option")
        return load_all(files, how)

    monkeypatch.setattr(driver, "load_all", refusing)


def test_what_the_compiler_says_of_optimized_code_is_told(directory, refused) -> None:
    x = T.dvector("x")
    with pytest.warns(RuntimeWarning, match=r"kernels stay slow.*no such option"):
        f = symcomp.function([x], T.exp(x) * 2 + x)
        early.wait()
    assert stays(f)


@pytest.mark.filterwarnings("error")
def test_nobody_waits_for_ever(directory, refused, held, monkeypatch, capfd) -> None:
    """Errors of all kinds: here a warning is an error, and the compiler has changed."""
    identity, x = driver._identity, T.dvector("x")
    f = symcomp.function([x], T.exp(x) * 2 + x)
    monkeypatch.setattr(driver, "_identity", lambda path: (*identity(path), "new"))
    held.set()
    early.wait()
    assert stays(f) and not early._work.jobs
    assert "kernels stay slow" in capfd.readouterr().err


def stays(function) -> bool:
    """Tell whether early code is still called, even where there is much work."""
    (code,) = codes_of(function)
    code.wait()
    np.testing.assert_allclose(function(np.zeros(30_000_000))[:3], 2)
    return bool(code.early) and early_calls(function) == [1]


def test_equal_files_are_optimized_once(directory, held, monkeypatch) -> None:
    begun, process = [], early._process
    monkeypatch.setattr(early, "_process", lambda jobs: begun.append(jobs) or process(jobs))
    x = T.dvector("x")
    one, two = (symcomp.function([x], T.exp(x) * 2 + x) for _ in range(2))
    held.set()
    early.wait()
    assert len(begun) == 1
    assert not any(code.early for f in (one, two) for code in codes_of(f))


def test_an_error_of_the_c_file_is_one_at_once(directory) -> None:
    with pytest.raises(driver.CompilerError, match="undeclared"):
        early.load_codes([("int f(void) { return x; }\n", ["f"])])
    assert not early._work.jobs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_forked_process_optimizes_for_itself(directory) -> None:
    program = textwrap.dedent("""
        import os, threading
        import numpy as np
        import symcomp, symcomp.tensor as T
        from symcomp.codegen.compiler import driver, early, units
        early.LONG = 1
        parent, event, process = os.getpid(), threading.Event(), early._process
        def waiting(jobs):
            if os.getpid() == parent:
                event.wait()
            return process(jobs)
        early._process = waiting
        x = T.dvector("x")
        f = symcomp.function([x], T.exp(x) * 2 + x)
        before = f(np.arange(3.0))
        (code,) = [k.code for k in f._machine.new_tally().kernels if k]
        child = os.fork()
        if child == 0:
            early.wait()
            os._exit(0 if not code.early and (f(np.arange(3.0)) == before).all() else 1)
        _, status = os.waitpid(child, 0)
        assert code.early and len(driver.entries()) == 1
        event.set()
        print(os.waitstatus_to_exitcode(status))
    """)
    flags = f"compiledir={directory}"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"SYMCOMP_FLAGS": flags}, text=True,
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["0"], done.stderr


def test_what_a_process_began_goes_on_when_it_ends(directory) -> None:
    program = textwrap.dedent("""
        import numpy as np
        import symcomp, symcomp.tensor as T
        from symcomp.codegen.compiler import driver, early, units
        early.LONG = 1
        driver.processors = lambda: 1  # what is compiled last is not begun when it ends
        x = T.dvector("x")
        for n in range(2):
            f = symcomp.function([x], T.exp(x) * 2 + x + n * T.log(x + 1))
            print([k.code.early for k in f._machine.new_tally().kernels if k], f(np.zeros(2)))
        print(*[job.early.path_of(job.file[0]).name for job in [*early._work.jobs.values()]])
    """)
    flags, found = f"compiledir={directory}", []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"SYMCOMP_FLAGS": flags},
            text=True, capture_output=True, check=True, timeout=120,
        )  # fmt: skip
        *lines, replaced = done.stdout.split("\n")[:-1]
        found.append(lines)
        deadline = time.time() + 60
        while len(driver.entries()) != 2 or {*replaced.split()} & {
            path.name for path in directory.iterdir()
        }:
            assert time.time() < deadline, [*directory.iterdir()]
            time.sleep(0.05)
    assert found == [[f"[{early}] [2. 2.]"] * 2 for early in (1, 0)]
